// SPDX-License-Identifier: Apache-2.0
//
// Host memory of the program's own that it registered: page-locked, visible to devices, or both.
// The memory stays the program's. Rules: HREG. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/address_arena.h"
#include "memory/hazard_pointers.h"
#include "memory/pinned_memory.h"

namespace understudy {

struct RegistrationRequest {
  VirtualRange range;
  bool mapped = false;        // devices see it
  bool lock = false;          // its pages are to be locked
  bool same_address = false;  // devices see it where the host does
};

class RegisteredMemory {
 public:
  RegisteredMemory(const Settings& settings, AddressArena& addresses, PinnedMemory& pinned)
      : settings_(settings), addresses_(addresses), pinned_(pinned) {}

  // Gives the device address; 0 if the memory is not mapped.
  Result<VirtualAddress> add(const RegistrationRequest& request);
  // Waits for copies that use the memory at this moment: it is the program's, which may free it.
  Result<void> remove(VirtualAddress base);
  // The device address of memory that is registered from `base` on and mapped.
  Result<VirtualAddress> device_address(VirtualAddress base);

  // Keeps the range registered while the pin holds it. False if it is not in one registered range.
  bool pin(VirtualRange range, HazardPin& pin);
  // The registered range around an address.
  std::optional<VirtualRange> find(VirtualAddress address);
  bool overlaps(VirtualRange range);

 private:
  enum class State : uint8_t { kLocking, kLocked, kUnlocked };
  struct Registration {
    VirtualRange range;
    VirtualAddress device = 0;
    VirtualRange taken;  // device addresses to give back; may be empty
    State state = State::kUnlocked;
  };
  using Registrations = std::map<VirtualAddress, Registration>;

  // A registration that has bytes in the range, or the end.
  Registrations::iterator around_locked(VirtualRange range) US_REQUIRES(mutex_);
  // The one that starts there, once it is complete.
  Registrations::iterator at_locked(VirtualAddress base) US_REQUIRES(mutex_);
  void leave_locked(Registrations::iterator registration) US_REQUIRES(mutex_);
  // Locks the pages of a registration that is entered as being locked, without the lock held.
  Result<void> lock(VirtualRange range);
  void count_edges_locked(VirtualRange range) US_REQUIRES(mutex_);
  void unlock_locked(VirtualRange range) US_REQUIRES(mutex_);
  void drop_edge_locked(VirtualAddress page) US_REQUIRES(mutex_);

  const Settings& settings_;
  AddressArena& addresses_;
  PinnedMemory& pinned_;
  std::atomic<size_t> count_{0};  // no lock is taken where nothing is registered
  Mutex mutex_{LockRank::kPinnedMemory};
  Registrations by_base_ US_GUARDED_BY(mutex_);
  // How many registrations lock a page. Locks do not nest, and neighbours may share their first and
  // last pages; only those are counted.
  std::map<VirtualAddress, unsigned> edge_locks_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
