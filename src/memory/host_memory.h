// SPDX-License-Identifier: Apache-2.0
//
// Memory of the host as programs see it: page-locked blocks they are given, and memory of their own
// that they register. Where a program runs on the device, host memory is device memory (HOST-05).
// Rules: HOST, HREG. Any thread may call anything.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/address_space.h"
#include "memory/device_memory.h"
#include "memory/pinned_memory.h"
#include "memory/registered_memory.h"

namespace understudy {

// How the program's own memory is registered; at least one of them.
struct RegistrationKind {
  bool mapped = false;
  bool pinned = false;
};

class HostMemory {
 public:
  HostMemory(const Settings& settings, BackingPools& pools, AddressSpace& space,
             DeviceMemory& device_memory);

  // `device` is the one whose memory it is where the program runs on the device.
  Result<VirtualAddress> allocate(uint64_t size, DeviceAddress address, unsigned device);
  Result<void> free(VirtualAddress address);

  // Gives the device address, or 0 for memory that is not mapped.
  Result<VirtualAddress> add_registration(VirtualRange range, RegistrationKind kind);
  Result<void> remove_registration(VirtualAddress base);
  Result<VirtualAddress> device_address(VirtualAddress base) {
    return registered_.device_address(base);
  }

  // The page-locked block around an address, or the registered range.
  std::optional<VirtualRange> find(VirtualAddress address);
  // Keeps page-locked memory from being taken away while the pin holds it. False if not all of the
  // range is in one block or one registered range.
  bool pin(VirtualRange range, HazardPin& pin) {
    return pinned_.pin(range, pin) || registered_.pin(range, pin);
  }
  // The block alone.
  std::optional<VirtualRange> find_block(VirtualAddress address);

  PinnedFigures figures() const { return pinned_.figures(); }
  uint64_t count_blocks() const { return pinned_.count(); }

 private:
  Result<void> check_range(VirtualRange range, RegistrationKind kind);
  Error not_a_block(VirtualAddress address);

  const Settings& settings_;
  AddressSpace& space_;
  DeviceMemory& device_memory_;
  PinnedMemory pinned_;
  RegisteredMemory registered_;
};

}  // namespace understudy
