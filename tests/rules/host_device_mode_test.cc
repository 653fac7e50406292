// SPDX-License-Identifier: Apache-2.0
//
// The RC form (product 200i-rc): the program runs on the device, so aclrtMallocHost hands out
// device memory on normal pages, which the CPU reaches directly.
// Covers: HOST-01, HOST-02, HOST-03, HOST-05, HOST-06, HOST-08, HOST-09, HOST-10, HOST-11, HOST-13,
// HOST-20, HOST-21.
#include <cstdint>
#include <vector>

#include "rules/host_objects.h"

#define US_IN_DEVICE_MODE()                            \
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i-rc"}); \
  const DeviceSession session

namespace understudy_test {
namespace {

struct Kinds {
  size_t normal = free_bytes(ACL_MEM_NORMAL);
  size_t huge = free_bytes(ACL_MEM_HUGE);
};

TEST(HostDeviceMode, HOST_05_ProgramRunsOnTheDevice) {
  US_IN_DEVICE_MODE();
  aclrtRunMode mode = ACL_HOST;
  EXPECT_SUCCESS(aclrtGetRunMode(&mode));
  EXPECT_EQ(mode, ACL_DEVICE);
}

TEST(HostDeviceMode, HOST_01_HOST_02_HOST_03_ArgumentsAreCheckedAsOnAHost) {
  US_IN_DEVICE_MODE();
  const MemoryFigures before = memory_figures();
  void* data = host_sentinel();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(nullptr, kPage));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(&data, 0));
  on_bare_thread(
      [&data] { EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMallocHost(&data, kPage)); });
  EXPECT_EQ(data, host_sentinel());
  EXPECT_EQ(memory_figures(), before);
}

TEST(HostDeviceMode, HOST_05_BlockIsDeviceMemoryOnNormalPages) {
  US_IN_DEVICE_MODE();
  for (const size_t size : {size_t{1}, kPage, kPage + 1, kMiB, kGranule, 3 * kMiB + 5}) {
    SCOPED_TRACE(size);
    const MemoryFigures figures = memory_figures();
    const Kinds before;
    {
      const HostBlock block(size);
      expect_at_device(block.data(), 0, kPage);
      expect_at_device(block.at(size - 1), 0, kPage);
      const Kinds after;
      EXPECT_EQ(after.normal, before.normal - align_up(align_up(size, 32), kPage));
      EXPECT_EQ(after.huge, before.huge);
    }
    EXPECT_EQ(memory_figures(), figures);
  }
}

TEST(HostDeviceMode, HOST_05_HOST_13_ConfiguredBlockIsTheSame) {
  US_IN_DEVICE_MODE();
  HostConfiguration module = {host_attribute(ACL_RT_MEM_ATTR_MODULE_ID, 9)};
  for (aclrtMallocConfig* config : {static_cast<aclrtMallocConfig*>(nullptr), module.get()}) {
    const Kinds before;
    const HostBlock block(allocate_host_with(kGranule, config), kGranule);
    expect_at_device(block.at(kPage), 0, kPage);
    EXPECT_EQ(free_bytes(ACL_MEM_NORMAL), before.normal - kGranule);
    EXPECT_EQ(free_bytes(ACL_MEM_HUGE), before.huge);
  }
}

TEST(HostDeviceMode, HOST_05_HOST_10_NormalPagesAreAllThereIs) {
  US_IN_DEVICE_MODE();
  const MemoryFigures before = memory_figures();
  void* data = host_sentinel();
  const size_t too_much = free_bytes(ACL_MEM_NORMAL) / kPage * kPage + kPage;
  ASSERT_GT(free_bytes(ACL_MEM_HUGE), too_much);
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMallocHost(&data, too_much));
  EXPECT_EQ(data, host_sentinel());
  EXPECT_EQ(memory_figures(), before);
}

TEST(HostDeviceMode, HOST_05_HOST_11_CpuAndDeviceSeeTheSameBytes) {
  US_IN_DEVICE_MODE();
  constexpr size_t kSize = 3 * kPage + 7;
  const HostBlock block(kSize);
  ASSERT_TRUE(cpu_can_write(block.data()));
  ASSERT_TRUE(cpu_can_write(block.at(kSize - 1)));
  store(block.data(), pattern(kSize, 2));
  EXPECT_TRUE(copy_out(block.data(), kSize) == pattern(kSize, 2));
  copy_in(block.data(), pattern(kSize, 3));
  EXPECT_TRUE(holds(block.data(), pattern(kSize, 3)));
}

TEST(HostDeviceMode, HOST_05_MemoryOfAclrtMallocIsTheCpusToo) {
  US_IN_DEVICE_MODE();
  for (const aclrtMemMallocPolicy policy :
       {ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY}) {
    SCOPED_TRACE(policy);
    const MallocedMemory block(2 * kPage, policy);
    ASSERT_TRUE(cpu_can_write(block.data()));
    store(block.data(), pattern(block.size(), 4));
    EXPECT_TRUE(copy_out(block.data(), block.size()) == pattern(block.size(), 4));
    copy_in(block.data(), pattern(block.size(), 5));
    EXPECT_TRUE(holds(block.data(), pattern(block.size(), 5)));
  }
}

TEST(HostDeviceMode, HOST_06_MemsetInitialisesTheBlock) {
  US_IN_DEVICE_MODE();
  const HostBlock block(kPage + 5);
  EXPECT_SUCCESS(aclrtMemset(block.data(), block.size(), 0x5A, block.size()));
  EXPECT_TRUE(holds(block.data(), std::vector<uint8_t>(block.size(), 0x5A)));
}

TEST(HostDeviceMode, HOST_05_HOST_08_EveryFreeCallTakesIt) {
  US_IN_DEVICE_MODE();
  const MemoryFigures before = memory_figures();
  EXPECT_SUCCESS(aclrtFreeHost(allocate_host(kMiB)));
  EXPECT_SUCCESS(aclrtFreeHostWithDevSync(allocate_host(kMiB)));
  EXPECT_SUCCESS(aclrtFree(allocate_host(kMiB)));
  EXPECT_EQ(memory_figures(), before);
}

TEST(HostDeviceMode, HOST_05_HOST_20_FreedAndInteriorAddressesAreRefused) {
  US_IN_DEVICE_MODE();
  HostBlock block(2 * kPage);
  store(block.data(), pattern(2 * kPage, 6));
  const MemoryFigures before = memory_figures();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFreeHost(nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(block.at(kPage)));
  EXPECT_EQ(memory_figures(), before);
  EXPECT_TRUE(holds(block.data(), pattern(2 * kPage, 6)));

  void* const data = block.give_up();
  EXPECT_SUCCESS(aclrtFreeHost(data));
  const MemoryFigures after = memory_figures();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(data));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(data));
  EXPECT_EQ(memory_figures(), after);
  expect_unknown_place(data);
}

TEST(HostDeviceMode, HOST_05_HOST_21_ThreadWithoutContextFrees) {
  US_IN_DEVICE_MODE();
  const MemoryFigures before = memory_figures();
  HostBlock block(kMiB);
  on_bare_thread([&] { EXPECT_SUCCESS(aclrtFreeHost(block.give_up())); });
  EXPECT_EQ(memory_figures(), before);
}

// Without an alignment promise the program rounds the start up itself.
TEST(HostDeviceMode, HOST_05_HOST_09_SegmentsOfABlockAlignedByHandNeverInterfere) {
  US_IN_DEVICE_MODE();
  const std::vector<size_t> lengths = {1, 32, 33, 64, 65, 100, kPage - 1, kPage, 20000};
  const HostBlock block(room_for_segments(lengths) + 63);
  void* const aligned = address(align_up(number(block.data()), 64));
  const std::vector<HostSegment> segments = cut_into_segments(aligned, lengths);
  for (const HostSegment& segment : segments) {
    EXPECT_EQ(number(segment.start) % 64, 0u);
    store(segment.start, pattern(segment.length, segment.seed));
  }
  expect_segments_intact(segments);
  for (const HostSegment& segment : segments) {
    copy_in(segment.start, pattern(segment.length, segment.seed));
    EXPECT_TRUE(copy_out(segment.start, segment.length) == pattern(segment.length, segment.seed));
  }
  expect_segments_intact(segments);
}

}  // namespace
}  // namespace understudy_test
