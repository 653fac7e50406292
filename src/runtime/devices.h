// SPDX-License-Identifier: Apache-2.0
//
// What this process does with its devices: how often each is set, the contexts on it, which peers
// it may reach, and settings that are remembered for it. Rules: DEV, PEER, VPEER, CTX.
// Any thread may call anything. No user callback runs under the lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "device/settings.h"
#include "memory/device_memory.h"
#include "memory/object_pool.h"
#include "runtime/context.h"
#include "stream/events.h"
#include "stream/streams.h"

namespace understudy {

class Devices {
 public:
  Devices(const Settings& settings, DeviceMemory& memory, Streams& streams, Events& events)
      : settings_(settings), memory_(memory), streams_(streams), events_(events) {}

  unsigned count() const { return settings_.devices; }
  // Refuses numbers that no device has. `name` is what the caller calls the number.
  Result<unsigned> check(int64_t device, const char* name,
                         ErrorCode code = ErrorCode::kInvalidDevice) const;

  // Counts one more use. Gives the default context, unless the product has none.
  Result<std::optional<ContextReference>> set(unsigned device);
  // Counts one use less; at zero all contexts, streams, events and allocations of the device end,
  // after the tasks queued so far (DEV-07, DEV-11).
  Result<void> reset(unsigned device);
  // The same whatever the count, and tasks that have not begun are dropped.
  Result<void> reset_at_once(unsigned device);
  // Ends every use of every device, in that way.
  void reset_all();
  bool is_set(unsigned device) const;
  bool has_default_context(unsigned device) const;

  Result<ContextReference> create_context(unsigned device);
  // After the tasks of its streams.
  Result<void> destroy_context(uint64_t handle);
  // Refuses handles of contexts that ended or never were.
  Result<ContextReference> find_context(uint64_t handle);

  void set_peer_access(unsigned device, unsigned peer, bool enabled);
  bool has_peer_access(unsigned device, unsigned peer) const;

  std::optional<uint32_t> core_limit(unsigned device, unsigned kind) const;
  void set_core_limit(unsigned device, unsigned kind, uint32_t value);
  void clear_core_limits(unsigned device);

  std::optional<int64_t> option(const ContextReference& context, unsigned number) const;
  void set_option(const ContextReference& context, unsigned number, int64_t value);

  int32_t overflow_mode(unsigned device) const;
  void set_overflow_mode(unsigned device, int32_t mode);

 private:
  struct Use {
    uint64_t sets = 0;
    ContextReference default_context;
    uint32_t peers = 0;  // bit per device that this one may reach
    CoreLimits limits;
    int32_t overflow_mode = 0;
  };

  Result<ContextReference> make_context_locked(unsigned device, ContextKind kind)
      US_REQUIRES(mutex_);
  void end_context_locked(Context& context) US_REQUIRES(mutex_);
  // Marks a device that nobody has set as ending. False if that is not so, or it is already.
  bool begin_ending(unsigned device);
  // Ends everything of a device that the caller has marked so.
  void end_use(unsigned device);
  // The handles of the contexts of a device.
  std::vector<uint64_t> contexts_of(unsigned device) const;
  // While a device ends, nothing new begins on it.
  void wait_while_ending(unsigned device) const { ending_[device].wait(true); }
  Error not_set(unsigned device) const;

  const Settings& settings_;
  DeviceMemory& memory_;
  Streams& streams_;
  Events& events_;
  ObjectPool<Context> pool_;
  mutable Mutex mutex_{LockRank::kDeviceUse};
  std::array<Use, kMaxDevices> uses_ US_GUARDED_BY(mutex_);
  std::array<std::atomic<bool>, kMaxDevices> ending_{};  // changed under the lock
  uint32_t highest_context_ US_GUARDED_BY(mutex_) = 0;   // one past the highest slot ever used
};

}  // namespace understudy
