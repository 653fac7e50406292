// SPDX-License-Identifier: Apache-2.0
//
// The check `order`: whether something puts two uses of the same bytes in order, if one of them
// writes. Streams say what they do; the relation is kept by vector clocks of positions.
//
//   - The tasks of a stream come one behind the other.
//   - A task comes behind everything that the program knew to be done when it queued the task.
//   - A stream that has waited for an event or a notify comes behind the task that recorded it.
//   - The program comes behind what it has waited for, and what called one of its functions.
//   - A wait for something that other processes or the CPU may change comes behind everything.
//
// All threads of the program count as one: how they wait for each other cannot be seen here. So
// what one of them knows, all know, and calls come in the order in which they are made. What is
// told is in disorder for certain; disorder between two threads is not told.
//
// Ranges are addresses: two addresses of one block are two ranges. A fork child begins with
// nothing. Any thread may call anything, also with locks. Where the check is not chosen, callers do
// not call. Without memory the check gives up: what it does not know of might make it tell what is
// in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/virtual_range.h"
#include "observe/access_map.h"
#include "observe/check.h"
#include "observe/history.h"
#include "observe/object_life.h"
#include "observe/queued_task.h"

namespace understudy {

inline bool is_order_checked() { return is_checked(Check::kOrder); }

class Order {
 public:
  Order() = delete;

  // ---- Calls of the program.
  // Before the task can run. REQUIRES: tasks of a stream come in the order of their positions.
  static void note_queued(uint32_t stream, QueuedTask task) noexcept;
  // The next task of `stream` comes behind `behind`, without a task that waits for it.
  static void note_behind(uint32_t stream, uint64_t last_queued, StreamTask behind) noexcept;
  // Memory of a pool is free for others when the stream has done `last`, or has already.
  static void note_freed(StreamTask last, VirtualRange range) noexcept;
  // The next task of `stream` comes behind all that is done, as another process may have said.
  static void note_behind_all(uint32_t stream, uint64_t last_queued) noexcept;
  // The program knows that the task is done, or that it will never run.
  static void note_known(StreamTask task) noexcept;
  // It is about to wait for the task, without a limit. Tells if that cannot end.
  static void note_wait(StreamTask task) noexcept;
  // It was told so by another process, which may know of anything.
  static void note_all_known() noexcept;
  // A call that uses memory itself, before it does.
  static void note_call(std::span<const MemoryUse> uses) noexcept;
  // An object with addresses is about to end. What is wrong with that is told by confirm_end, on
  // the same thread, if it does end.
  static void note_end(ObjectKind kind, VirtualAddress address) noexcept;
  static void confirm_end() noexcept;
  // Memory begins at these addresses.
  static void note_begin(VirtualRange range) noexcept;

  // ---- The owner of a stream, while it runs the task.
  static void note_recorded(StreamTask record) noexcept;
  static void note_waited(uint32_t stream, StreamTask record) noexcept;
  static void note_waited_for_others(uint32_t stream) noexcept;
  static void note_notify_changed(StreamTask task, uint32_t notify) noexcept;
  static void note_notify_waited(uint32_t stream, uint32_t notify) noexcept;
  // Other processes may set it from now on.
  static void note_notify_shared(uint32_t notify) noexcept;
  // It calls a function of the program, which then knows where the stream is. A stream that waits
  // for the function goes on behind it, and so behind what the program knows by then.
  static void note_function_begun(StreamTask task) noexcept;
  enum class AfterFunction : uint8_t { kWent, kWaits };  // whether the stream waits for its end
  static void note_function_ended(uint32_t stream, AfterFunction after) noexcept;
  // It writes a value that the program may look at.
  static void note_told(StreamTask task) noexcept;
  // Ranges that were not known when the task was queued.
  static void note_found(StreamTask task, std::span<const MemoryUse> uses) noexcept;
  // The task is about to end what it uses.
  static void note_ending(StreamTask task) noexcept;
  enum class Outcome : uint8_t { kDone, kFailed };
  static void note_done(StreamTask task, Outcome outcome) noexcept;

  // There is no memory to say what happens: nothing is told from now on.
  static void give_up() noexcept;

 private:
  struct State;
  // May throw std::bad_alloc, as what comes next.
  static State* state();
  template <typename Change>
  static auto with_relation(Change change);
  template <typename Step>
  static void attempt(Step step) noexcept;
  static void forget_in_fork_child();

  static std::atomic<State*> state_;
  static std::atomic<bool> has_given_up_;
  static const bool registered_;
};

// An object with addresses that may be about to end, as ObjectEnd, while streams may use it.
class MemoryEnd {
 public:
  MemoryEnd(ObjectKind kind, VirtualAddress address) noexcept : end_(kind, address) {
    if (is_order_checked()) [[unlikely]]
      Order::note_end(kind, address);
  }
  void confirm() const noexcept {
    end_.confirm();
    if (is_order_checked()) [[unlikely]]
      Order::confirm_end();
  }

 private:
  const ObjectEnd end_;
};

}  // namespace understudy
