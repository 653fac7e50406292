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

#include "base/handle_table.h"
#include "base/mutex.h"
#include "base/result.h"
#include "device/settings.h"
#include "memory/device_memory.h"
#include "runtime/context.h"
#include "stream/events.h"
#include "stream/notifies.h"
#include "stream/streams.h"

namespace understudy {

class Devices {
 public:
  Devices(const Settings& settings, DeviceMemory& memory, Streams& streams, Events& events,
          Notifies& notifies)
      : settings_(settings),
        memory_(memory),
        streams_(streams),
        events_(events),
        notifies_(notifies) {}

  unsigned count() const { return settings_.devices; }
  // Refuses numbers that no device has. `name` is what the caller calls the number.
  Result<unsigned> check(int64_t device, const char* name,
                         ErrorCode code = ErrorCode::kInvalidDevice) const;

  // The device that has the number on its server; programs call it the logic id.
  Result<unsigned> with_logic_id(uint32_t id, const char* name, ErrorCode code) const;

  // Counts one more use. Gives the default context, unless the product has none.
  Result<std::optional<ContextReference>> set(unsigned device);
  // Counts one use less; at zero all contexts, streams, events and allocations of the device end,
  // after the tasks queued so far (DEV-07, DEV-11).
  Result<void> reset(unsigned device);
  // The same whatever the count, and tasks that have not begun are dropped.
  Result<void> reset_at_once(unsigned device);
  // Ends every use of every device, in that way. REQUIRES: the calling thread has prepared it.
  void reset_all();
  // Takes the memory that a reset needs, so that none stops half way.
  static void prepare_reset();
  bool is_set(unsigned device) const;
  bool has_default_context(unsigned device) const;
  // Bit per device that is set or has a context.
  uint32_t in_use() const;

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

  // Memory in which a context tells of overflows; 0 if it has none yet.
  VirtualAddress overflow_status(const ContextReference& context) const;
  // Gives a context such memory, internal to the library, which ends with it. Gives what it has
  // then, which may be what another thread gave it; 0 if it has ended.
  VirtualAddress keep_overflow_status(const ContextReference& context, VirtualAddress address);

  // What the program chose last for a device, or what the product does; streams keep what holds
  // when they are made (DEV-43).
  OverflowMode overflow_mode(unsigned device) const;
  Result<void> set_overflow_mode(unsigned device, OverflowMode mode);

 private:
  struct Use {
    uint64_t sets = 0;
    ContextReference default_context;
    uint32_t peers = 0;  // bit per device that this one may reach
    CoreLimits limits;
    std::optional<OverflowMode> overflow_mode;
  };

  Result<ContextReference> make_context_locked(unsigned device, ContextKind kind)
      US_REQUIRES(mutex_);
  void end_context_locked(Context& context) US_REQUIRES(mutex_);
  OverflowMode overflow_mode_locked(unsigned device) const US_REQUIRES(mutex_) {
    return uses_[device].overflow_mode.value_or(settings_.product.overflow_mode());
  }
  // Marks a device that no context uses as ending. False if that is not so, or it is already.
  bool begin_ending(unsigned device);
  // Ends everything of a device that the caller has marked so. Allocates nothing: it cannot stop
  // half way.
  void end_use(unsigned device);
  // While a device ends, nothing new begins on it.
  void wait_while_ending(unsigned device) const {
    // wait() counts the waiting thread before it looks.
    if (ending_[device].load()) [[unlikely]]
      ending_[device].wait(true);
  }
  Error not_set(unsigned device) const;

  const Settings& settings_;
  DeviceMemory& memory_;
  Streams& streams_;
  Events& events_;
  Notifies& notifies_;
  HandleTable<Context> contexts_{HandleTag::kContext, {"context", "created", "destroyed"}};
  mutable Mutex mutex_{LockRank::kDeviceUse};
  std::array<Use, kMaxDevices> uses_ US_GUARDED_BY(mutex_);
  std::array<std::atomic<bool>, kMaxDevices> ending_{};  // changed under the lock
};

}  // namespace understudy
