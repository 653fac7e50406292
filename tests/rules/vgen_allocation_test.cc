// SPDX-License-Identifier: Apache-2.0
//
// Where allocations and virtual memory meet: neither takes the other's addresses.
// Covers: REL-05, RESV-12, RESV-16, VGEN-05, VGEN-09.
#include <cstdint>
#include <ios>
#include <vector>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

class AllocationsBesideReservations : public HostMemoryTest {};

TEST(AllocationRangeInDeviceMode, VGEN_05_AddressRangeWorksForAllocations) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i-rc"});
  const DeviceSession session;
  const MallocedMemory device_memory(kPage);
  const HostBlock host_block(2 * kPage);
  for (const size_t offset : {size_t{0}, size_t{1}, kPage - 1}) {
    expect_address_range(device_memory.at(offset), device_memory.data(), kPage + 32);
    expect_address_range(host_block.at(offset), host_block.data(), 2 * kPage);
  }
  expect_address_range(host_block.at(2 * kPage - 1), host_block.data(), 2 * kPage);
}

void expect_free_refused(void* start) {
  SCOPED_TRACE(start);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(start));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(start));
}

TEST_F(AllocationsBesideReservations, VGEN_09_FreeLeavesAReservationAlone) {
  void* const range = reserve(3 * kGranule);
  for (const size_t offset : {size_t{0}, size_t{1}, kGranule, 3 * kGranule - 1}) {
    expect_free_refused(at(range, offset));
  }
  // Still one reservation, good for a mapping.
  const aclrtDrvMemHandle block = create_block(kGranule);
  EXPECT_SUCCESS(aclrtMapMem(range, kGranule, 0, block, 0));
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_F(AllocationsBesideReservations, VGEN_09_FreeLeavesMappingsAlone) {
  const LiveMapping device_block;
  const LiveMapping host_block(kGranule, host_property());
  for (const LiveMapping* mapping : {&device_block, &host_block}) {
    copy_in(mapping->data(), pattern(kGranule, 3));
    const MemoryFigures before = memory_figures();
    for (const size_t offset : {size_t{0}, kPage, kGranule - 1}) {
      expect_free_refused(mapping->at(offset));
    }
    EXPECT_EQ(memory_figures(), before);
    EXPECT_TRUE(copy_out(mapping->data(), kGranule) == pattern(kGranule, 3));
    expect_address_range(mapping->data(), mapping->data(), kGranule);
  }
}

TEST_F(AllocationsBesideReservations, VGEN_09_RefusalNeedsNoContext) {
  const LiveMapping mapping;
  on_bare_thread([&] { expect_free_refused(mapping.data()); });
  expect_at_device(mapping.data(), 0, kGranule);
}

// Addresses in use, each with what it may touch.
class UsedAddresses {
 public:
  void add(const void* start, size_t size) {
    const uint64_t mine = number(start);
    for (const Part& other : parts_) {
      EXPECT_TRUE(mine + size <= other.start || other.start + other.size <= mine)
          << std::hex << mine << " and " << other.start;
    }
    parts_.push_back({mine, size});
  }

 private:
  struct Part {
    uint64_t start;
    size_t size;
  };
  std::vector<Part> parts_;
};

TEST_F(AllocationsBesideReservations, RESV_12_LiveRangesOfAllKindsNeverOverlap) {
  UsedAddresses used;
  std::vector<void*> ranges;
  std::vector<void*> device_blocks;
  std::vector<HostBlock> host_blocks;
  for (const size_t size : {size_t{100}, kPage, 3 * kMiB, 20 * kMiB, size_t{1}, kMiB}) {
    ranges.push_back(reserve(size));
    used.add(ranges.back(), align_up(size, kGranule));
    for (const aclrtMemMallocPolicy policy :
         {ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY,
          ACL_MEM_MALLOC_HUGE1G_ONLY}) {
      void* start = nullptr;
      ASSERT_SUCCESS(aclrtMalloc(&start, size, policy));
      device_blocks.push_back(start);
      size_t padded = 0;
      EXPECT_SUCCESS(aclrtMemGetAddressRange(start, nullptr, &padded));
      used.add(start, padded);
    }
    host_blocks.emplace_back(size);
    used.add(host_blocks.back().data(), size);
  }
  ranges.push_back(reserve(kTiB));
  used.add(ranges.back(), kTiB);

  for (void* range : ranges) EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  for (void* block : device_blocks) EXPECT_SUCCESS(aclrtFree(block));
}

TEST_F(AllocationsBesideReservations, RESV_12_AllocationsStayOutOfAHugeReservation) {
  void* const range = reserve(kTiB);
  const MallocedMemory device_memory(kGiB, ACL_MEM_MALLOC_HUGE1G_ONLY);
  const HostBlock host_block(3 * kMiB);
  UsedAddresses used;
  used.add(range, kTiB);
  used.add(device_memory.data(), kGiB);
  used.add(host_block.data(), host_block.size());
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_F(AllocationsBesideReservations, RESV_12_RESV_16_WishForTheAddressOfAnAllocationIsRefused) {
  const MallocedMemory device_memory(kGranule, ACL_MEM_MALLOC_HUGE_ONLY);
  const HostBlock host_block(kGranule);
  copy_in(device_memory.data(), pattern(kPage, 4));
  store(host_block.data(), pattern(kPage, 5));
  for (void* taken : {device_memory.data(), host_block.data()}) {
    void* range = host_sentinel();
    void* const wish = address(number(taken) / kGranule * kGranule);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReserveMemAddress(&range, kGranule, 0, wish, 0));
    EXPECT_EQ(range, host_sentinel());
  }
  EXPECT_TRUE(copy_out(device_memory.data(), kPage) == pattern(kPage, 4));
  EXPECT_TRUE(holds(host_block.data(), pattern(kPage, 5)));
}

TEST_F(AllocationsBesideReservations, REL_05_AllocationsAreNoReservations) {
  const OwnMemory memory(kPage);
  const HostBlock host_block(kGranule);
  void* device_address = nullptr;
  ASSERT_SUCCESS(
      aclrtHostRegister(memory.data(), kPage, ACL_HOST_REGISTER_MAPPED, &device_address));
  store(memory.data(), pattern(kPage, 6));
  store(host_block.data(), pattern(kGranule, 7));
  for (const aclrtMemMallocPolicy policy :
       {ACL_MEM_MALLOC_NORMAL_ONLY, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_HUGE1G_ONLY}) {
    SCOPED_TRACE(policy);
    const MallocedMemory device_memory(kGranule, policy);
    copy_in(device_memory.data(), pattern(kPage, 8));
    const MemoryFigures before = memory_figures();
    for (void* start : {device_memory.data(), device_memory.at(kPage), host_block.data(),
                        host_block.at(kPage), memory.data()}) {
      SCOPED_TRACE(start);
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(start));
    }
    EXPECT_EQ(memory_figures(), before);
    EXPECT_TRUE(copy_out(device_memory.data(), kPage) == pattern(kPage, 8));
  }
  EXPECT_TRUE(holds(memory.data(), pattern(kPage, 6)));
  EXPECT_TRUE(holds(host_block.data(), pattern(kGranule, 7)));
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
}

TEST_F(AllocationsBesideReservations, REL_05_FreedAllocationIsNoReservationEither) {
  MallocedMemory device_memory(kGranule);
  void* const start = device_memory.give_up();
  EXPECT_SUCCESS(aclrtFree(start));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(start));
}

}  // namespace
}  // namespace understudy_test
