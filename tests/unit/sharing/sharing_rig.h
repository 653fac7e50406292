// SPDX-License-Identifier: Apache-2.0
//
// The memory system of a process of a test server, with all it shares with others. A process that
// exports has a thread from then on, so it is a child that ends with its test.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "memory/address_space.h"
#include "memory/device_memory.h"
#include "memory/host_memory.h"
#include "memory/transfer.h"
#include "platform/address_window.h"
#include "sharing/ipc_keys.h"
#include "sharing/sharing.h"
#include "unit/memory/memory_rig.h"
#include "unit/test_server.h"

namespace understudy {

struct SharingRig {
  explicit SharingRig(const TestServer& server)
      : joined(server.join()),
        capacity(joined->capacity()),
        pools(settings, *joined),
        physical(settings, capacity, pools),
        space(settings, physical, pools),
        device_memory(settings, capacity, pools, physical, space),
        host_memory(settings, pools, space, device_memory),
        transfer(settings, space, pools),
        sharing(*joined, {capacity, pools, physical, device_memory}) {}
  ~SharingRig() {
    for (const VirtualRange range : reserved) {
      if (space.reservations().contains(range.base)) (void)platform::vacate(range);
    }
    device_memory.addresses().for_each_range(
        [](VirtualRange arena) { (void)platform::vacate(arena); });
  }
  SharingRig(const SharingRig&) = delete;
  SharingRig& operator=(const SharingRig&) = delete;

  // Addresses with a block behind them.
  VirtualAddress map(BlockHandle handle, uint64_t size) {
    const VirtualAddress base =
        value_of(space.reservations().reserve(size, ReservedPages::kHuge, std::nullopt));
    reserved.push_back({base, size});
    EXPECT_TRUE(is_ok(space.mapper().map({.range = {base, size}, .handle = handle})));
    return base;
  }
  BlockHandle create(uint64_t size) {
    return value_of(physical.create({size, BlockAttribute::kHuge, kDevice0}));
  }
  VirtualAddress allocate(uint64_t size) {
    return value_of(device_memory.allocate({.asked = size, .usable = size}));
  }
  void fill(VirtualAddress to, uint64_t size, uint8_t value) {
    const std::vector<uint8_t> bytes(size, value);
    EXPECT_TRUE(is_ok(transfer.copy(to, to_address(bytes.data()), size, 0)));
  }
  // The byte that a whole range has; 0 if there are several.
  uint8_t content(VirtualAddress from, uint64_t size) {
    std::vector<uint8_t> bytes(size);
    EXPECT_TRUE(is_ok(transfer.copy(to_address(bytes.data()), from, size, 0)));
    for (const uint8_t byte : bytes) {
      if (byte != bytes.front()) return 0;
    }
    return bytes.front();
  }
  // Of all processes.
  uint64_t used(PageKind kind = PageKind::kHuge) const {
    const PoolFigures figures = capacity.figures(0, kind);
    return figures.total - figures.free;
  }

  const Settings settings = rig_settings();
  std::unique_ptr<Server> joined;
  Capacity& capacity;
  BackingPools pools;
  PhysicalMemory physical;
  AddressSpace space;
  DeviceMemory device_memory;
  HostMemory host_memory;
  Transfer transfer;
  Sharing sharing;
  std::vector<VirtualRange> reserved;
};

}  // namespace understudy
