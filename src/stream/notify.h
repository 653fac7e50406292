// SPDX-License-Identifier: Apache-2.0
//
// A notify: a number that tasks of streams change and wait for. A plain one is a flag, 0 or 1,
// which can be shared with other processes; a counting one is all of 32 bits. Slots are
// type-stable. The handle of the program and every queued task are users of the slot, so that tasks
// still work when the handle is gone.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/handle.h"
#include "base/mutex.h"
#include "stream/wait_links.h"

namespace understudy {

class Notifies;
class SharedNotifyLink;

enum class NotifyFamily : uint8_t { kFlag, kCounting };

// What a record does to the number, in one step.
enum class NotifyUpdate : uint8_t { kSet, kAdd, kOr, kAnd };
struct NotifyChange {
  NotifyUpdate update = NotifyUpdate::kSet;
  uint32_t value = 0;
};
inline constexpr NotifyChange kSetFlag{NotifyUpdate::kSet, 1};
inline constexpr NotifyChange kClearNotify{NotifyUpdate::kSet, 0};

// Which numbers end a wait.
enum class NotifyComparison : uint8_t { kLess, kEqual, kGreater, kAtLeast, kAllBits };
struct NotifyCondition {
  NotifyComparison comparison = NotifyComparison::kEqual;
  bool clears = false;  // the number is 0 again when the wait ends
  uint32_t value = 0;
};
inline constexpr NotifyCondition kTakeFlag{NotifyComparison::kEqual, true, 1};

struct Notify {
  std::atomic<uint32_t> state{0};  // a SlotState
  uint32_t index = 0;
  uint32_t pool_next = 0;
  Notifies* home = nullptr;  // where the slot goes back to
  // Constant while it lives; atomic for threads that hold a stale handle.
  std::atomic<uint32_t> device{0};
  std::atomic<NotifyFamily> family{NotifyFamily::kFlag};
  std::atomic<bool> is_imported{false};

  BriefMutex mutex{LockRank::kNotify};
  unsigned users US_GUARDED_BY(mutex) = 0;  // the handle and the tasks
  uint32_t number US_GUARDED_BY(mutex) = 0;
  // Once it is shared the number is there, until there is no user any more.
  SharedNotifyLink* shared US_GUARDED_BY(mutex) = nullptr;

  std::atomic<uint32_t> changes{0};
  ParkedStreams waits;  // until the next change, while it is not shared

  SlotLife life() const { return SlotState::life(state.load(std::memory_order_acquire)); }
};

// A notify as a caller remembers it. The functions REQUIRE that it was valid once, and tell of
// another notify if the slot is used again.
struct NotifyReference {
  Notify* notify = nullptr;
  uint32_t state = 0;

  uint32_t id() const { return notify->index; }
  bool is_imported() const { return notify->is_imported.load(); }
};

}  // namespace understudy
