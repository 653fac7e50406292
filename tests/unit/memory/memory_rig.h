// SPDX-License-Identifier: Apache-2.0
//
// The memory system of a process, put together by hand: two devices with small pools, ordinary
// pages and a fixed budget, so that every figure is known exactly.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "device/settings.h"
#include "memory/address_space.h"
#include "memory/backing_pools.h"
#include "memory/device_memory.h"
#include "memory/host_memory.h"
#include "memory/physical_memory.h"
#include "memory/transfer.h"
#include "platform/address_window.h"
#include "unit/expect_result.h"
#include "unit/local_capacity.h"

namespace understudy {

inline constexpr uint64_t kRigNormalMemory = 32 * kMiB;
inline constexpr uint64_t kRigHugeMemory = 4 * kGiB;
inline constexpr uint64_t kRigBudget = 64 * kMiB;

inline constexpr Location kDevice0{LocationKind::kDevice, 0};
inline constexpr Location kDevice1{LocationKind::kDevice, 1};
inline constexpr Location kHostLocation{LocationKind::kHost, 0};

inline Settings rig_settings(std::string_view product = "a2") {
  Settings settings;
  settings.product = *find_product(product);
  settings.devices = 2;
  settings.memory = 16 * kMiB;  // decides the size of the backing files alone
  settings.backing = Backing::kSmall;
  settings.host_budget = kRigBudget;
  return settings;
}

// For extent allocators alone: no process attaches to their backing files.
inline const Server& rig_server() {
  static LocalCapacity capacity(1, kRigNormalMemory, kRigHugeMemory);
  return capacity.server();
}

struct MemoryRig {
  explicit MemoryRig(const Settings& wanted = rig_settings())
      : settings(wanted),
        capacity(settings.devices, kRigNormalMemory, kRigHugeMemory),
        pools(settings, capacity.server()),
        physical(settings, capacity, pools),
        space(settings, physical, pools),
        device_memory(settings, capacity, pools, physical, space),
        host_memory(settings, pools, space, device_memory),
        transfer(settings, space, pools) {}
  // The runtime never ends, so nothing else gives the addresses back that a test leaves reserved.
  ~MemoryRig() {
    for (const VirtualRange range : reserved) {
      if (space.reservations().contains(range.base)) (void)platform::vacate(range);
    }
    device_memory.addresses().for_each_range(
        [](VirtualRange arena) { (void)platform::vacate(arena); });
  }
  MemoryRig(const MemoryRig&) = delete;
  MemoryRig& operator=(const MemoryRig&) = delete;

  BlockHandle create(uint64_t size = kGranule, Location location = kDevice0) {
    return value_of(physical.create({size, BlockAttribute::kHuge, location}));
  }
  VirtualAddress reserve(uint64_t size) {
    const VirtualAddress base =
        value_of(space.reservations().reserve(size, ReservedPages::kHuge, std::nullopt));
    reserved.push_back({base, size});
    return base;
  }
  Result<void> map(VirtualAddress base, uint64_t size, BlockHandle handle,
                   InitialAccess access = InitialAccess::kOwner) {
    return space.mapper().map(
        {.range = {base, size}, .offset = 0, .handle = handle, .access = access});
  }
  // A block that lives as long as its mapping.
  void map_fresh(VirtualAddress base, uint64_t size = kGranule, Location location = kDevice0) {
    const BlockHandle handle = create(size, location);
    EXPECT_TRUE(is_ok(map(base, size, handle)));
    EXPECT_TRUE(is_ok(physical.free(handle)));
  }

  std::vector<uint8_t> read(VirtualAddress from, uint64_t count) {
    std::vector<uint8_t> bytes(count, 0xEE);
    EXPECT_TRUE(is_ok(transfer.copy(to_address(bytes.data()), from, count, 0)));
    return bytes;
  }
  void write(VirtualAddress to, const std::vector<uint8_t>& bytes) {
    EXPECT_TRUE(is_ok(transfer.copy(to, to_address(bytes.data()), bytes.size(), 0)));
  }
  uint8_t byte_at(VirtualAddress address) { return read(address, 1).front(); }

  uint64_t charged(unsigned device = 0, PageKind kind = PageKind::kHuge) const {
    const PoolFigures figures = capacity.figures(device, kind);
    return figures.total - figures.free;
  }
  // Host memory behind blocks and behind what is cached of freed ones.
  uint64_t host_bytes() const { return pools.budget().taken(); }
  // The same without the cached part. What ended while it was in use counts until it is drained.
  uint64_t host_bytes_in_use() {
    for (const Location location : {kDevice0, kDevice1, kHostLocation}) pools.trim(location);
    return host_bytes();
  }

  const Settings settings;
  LocalCapacity capacity;
  BackingPools pools;
  PhysicalMemory physical;
  AddressSpace space;
  DeviceMemory device_memory;
  HostMemory host_memory;
  Transfer transfer;
  std::vector<VirtualRange> reserved;
};

}  // namespace understudy
