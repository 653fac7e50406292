// SPDX-License-Identifier: Apache-2.0
//
// The streams that there are: slots and handles, how many a device may have, and what programs set
// for them. It runs nothing. Any thread may call anything.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <vector>

#include "base/handle_table.h"
#include "base/mutex.h"
#include "base/result.h"
#include "device/settings.h"
#include "server/own_figures.h"
#include "stream/stream.h"

namespace understudy {

struct StreamDescription {
  uint64_t owner = 0;  // the context, by its handle
  unsigned device = 0;
  uint32_t priority = 0;
  uint32_t flags = 0;  // read back by the program
  bool is_default = false;
  bool is_unattended = false;
  bool holds_tasks = false;
  OverflowMode overflow_mode = OverflowMode::kSaturation;
};

enum class FailureMode : uint8_t { kContinue, kStop };

class StreamRegistry {
 public:
  // `figures` hear of streams; null: no one wants to know.
  StreamRegistry(const Settings& settings, const OwnFigures* figures)
      : settings_(settings), figures_(figures) {}

  Result<StreamReference> create(const StreamDescription& description);
  // Refuses handles of streams that ended or never were.
  Result<StreamReference> find(uint64_t handle) const;
  // How many can still be made on a device.
  unsigned available(unsigned device) const;
  // How many there are on all devices, without the default streams of contexts.
  uint64_t count_created() const;

  // Streams that live.
  std::vector<StreamReference> streams_of(uint64_t owner) const;
  std::vector<StreamReference> streams_on(unsigned device) const;
  // Calls visit(reference) for each stream of a context, or of a device. Allocates nothing.
  template <typename Visit>
  void for_each_of(uint64_t owner, Visit visit) const {
    for_each_alive([&](const StreamReference& found) {
      // What matched may have been another stream.
      if (found.stream->owner.load() == owner && found.valid()) visit(found);
    });
  }
  template <typename Visit>
  void for_each_on(unsigned device, Visit visit) const {
    for_each_alive([&](const StreamReference& found) {
      if (found.stream->device.load() == device && found.valid()) visit(found);
    });
  }

  // The same for all streams.
  template <typename Visit>
  void for_each(Visit visit) const {
    for_each_alive(visit);
  }

  // The stream's handle is stale: it does not count any more.
  void note_closed(const Stream& stream);
  // The slot of a stream that was closed can be used again. REQUIRES: no thread owns it.
  void recycle(Stream& stream);

  // Once a context stops on failures, it stays so until it ends.
  Result<void> set_failure_mode(const StreamReference& reference, FailureMode mode);
  void forget_owner(uint64_t owner);
  void set_priority(const StreamReference& reference, uint32_t priority);
  StreamSettings settings_of(const StreamReference& reference);
  template <typename Change>
  void change_settings(const StreamReference& reference, Change change) {
    MutexLock lock(mutex_);
    if (reference.valid()) change(settings_locked(*reference.stream));
  }

 private:
  StreamSettings& settings_locked(Stream& stream) US_REQUIRES(mutex_) {
    return stream.settings.value;
  }
  template <typename Visit>
  void for_each_alive(Visit visit) const {
    streams_.for_each([&](Stream& stream) {
      const uint32_t state = stream.state.load(std::memory_order_acquire);
      if (SlotState::alive(state)) visit(StreamReference{&stream, state});
    });
  }

  void begin_figures(Stream& stream) const;

  const Settings& settings_;
  const OwnFigures* const figures_;
  // A stream is large, and programs have few.
  HandleTable<Stream, 32> streams_{HandleTag::kStream, {"stream", "created", "destroyed"}};
  std::array<std::atomic<uint32_t>, kMaxDevices> created_{};
  Mutex mutex_{LockRank::kStreamRegistry};
  std::set<uint64_t> stopping_owners_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
