// SPDX-License-Identifier: Apache-2.0
//
// aclrtMallocHost: arguments, what the block is good for, and what happens when memory is short.
// Covers: HOST-01, HOST-02, HOST-03, HOST-04, HOST-06, HOST-07, HOST-10, HOST-11, HOST-21, HOST-22.
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

class HostAllocation : public HostMemoryTest {};

constexpr size_t kSizes[] = {1,         31,        32,       63,        64,
                             65,        kPage - 1, kPage,    kPage + 1, 64 * kKiB,
                             kMiB - 64, kMiB + 1,  kGranule, 3 * kMiB,  5 * kMiB + 17};

TEST_F(HostAllocation, HOST_01_NullOutputIsRefused) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(nullptr, kPage));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(nullptr, 0));
}

TEST_F(HostAllocation, HOST_02_SizeZeroIsRefused) {
  void* data = host_sentinel();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(&data, 0));
  EXPECT_EQ(data, host_sentinel());
}

TEST_F(HostAllocation, HOST_03_ThreadWithoutContextIsRefused) {
  on_bare_thread([] {
    void* data = host_sentinel();
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMallocHost(&data, kPage));
    EXPECT_EQ(data, host_sentinel());
  });
}

TEST_F(HostAllocation, HOST_01_HOST_02_HOST_03_ArgumentsAreCheckedBeforeTheContext) {
  on_bare_thread([] {
    void* data = host_sentinel();
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(nullptr, kPage));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(&data, 0));
    EXPECT_EQ(data, host_sentinel());
  });
}

TEST_F(HostAllocation, HOST_04_StartIsAMultipleOf64) {
  std::vector<HostBlock> blocks;
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    for (int repeat = 0; repeat < 3; ++repeat) {
      blocks.emplace_back(size);
      EXPECT_EQ(number(blocks.back().data()) % 64, 0u);
    }
  }
}

TEST_F(HostAllocation, HOST_04_BlockIsHostMemoryAndTakesNoneOfTheDevice) {
  const MemoryFigures before = memory_figures();
  const HostBlock small(100);
  const HostBlock large(3 * kMiB);
  EXPECT_EQ(memory_figures(), before);
  expect_at_host(small.data());
  expect_at_host(large.data());
}

TEST_F(HostAllocation, HOST_04_BlockDoesNotBelongToADevice) {
  const HostBlock block(kPage);
  store(block.data(), pattern(kPage, 3));
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_TRUE(holds(block.data(), pattern(kPage, 3)));
  {
    const MallocedMemory device_memory(kPage);
    EXPECT_SUCCESS(
        aclrtMemcpy(device_memory.data(), kPage, block.data(), kPage, ACL_MEMCPY_HOST_TO_DEVICE));
    EXPECT_TRUE(copy_out(device_memory.data(), kPage) == pattern(kPage, 3));
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
}

TEST_F(HostAllocation, HOST_06_MemsetInitialisesTheBlock) {
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    const HostBlock block(size);
    EXPECT_SUCCESS(aclrtMemset(block.data(), size, 0x1C3, size));
    EXPECT_TRUE(holds(block.data(), std::vector<uint8_t>(size, 0xC3)));
  }
}

TEST_F(HostAllocation, HOST_06_MemsetOfAPartLeavesTheRest) {
  const HostBlock block(3 * kPage);
  std::vector<uint8_t> expected = pattern(3 * kPage, 5);
  store(block.data(), expected);
  EXPECT_SUCCESS(aclrtMemset(block.at(kPage - 1), 2 * kPage, 0, kPage + 2));
  for (size_t i = kPage - 1; i < 2 * kPage + 1; ++i) expected[i] = 0;
  EXPECT_TRUE(holds(block.data(), expected));

  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(block.data(), kPage, 7, kPage + 1));
  EXPECT_TRUE(holds(block.data(), expected));
}

TEST_F(HostAllocation, HOST_07_BlockIsUsableOnReturnByAnyThread) {
  const HostBlock block(2 * kPage);
  on_bare_thread([&] {
    store(block.data(), pattern(2 * kPage, 9));
    EXPECT_TRUE(cpu_can_read(block.at(2 * kPage - 1)));
  });
  EXPECT_TRUE(holds(block.data(), pattern(2 * kPage, 9)));
}

// Every thread fills what it allocates, so that a block handed out twice shows.
TEST_F(HostAllocation, HOST_07_HOST_21_ManyThreadsAllocateAndFreeAtOnce) {
  aclrtContext context = nullptr;
  ASSERT_SUCCESS(aclrtGetCurrentContext(&context));
  const auto work = [context](uint8_t seed) {
    ASSERT_SUCCESS(aclrtSetCurrentContext(context));
    for (size_t round = 0; round < 20; ++round) {
      std::vector<HostBlock> blocks;
      for (size_t i = 0; i < 8; ++i) {
        blocks.emplace_back(1 + i * 700);
        store(blocks.back().data(), pattern(blocks.back().size(), seed));
      }
      for (const HostBlock& block : blocks) {
        EXPECT_TRUE(holds(block.data(), pattern(block.size(), seed)));
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint8_t seed = 1; seed <= 6; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(HostAllocation, HOST_11_CpuReadsAndWritesEveryByte) {
  uint8_t seed = 0;
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    const HostBlock block(size);
    EXPECT_TRUE(cpu_can_write(block.data()));
    EXPECT_TRUE(cpu_can_write(block.at(size - 1)));
    store(block.data(), pattern(size, ++seed));
    EXPECT_TRUE(holds(block.data(), pattern(size, seed)));
  }
}

TEST_F(HostAllocation, HOST_11_LiveBlocksShareNoByte) {
  std::vector<HostBlock> blocks;
  uint8_t seed = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const size_t size : kSizes) {
      blocks.emplace_back(size);
      store(blocks.back().data(), pattern(size, ++seed));
    }
  }
  seed = 0;
  for (const HostBlock& block : blocks) {
    SCOPED_TRACE(block.size());
    EXPECT_TRUE(holds(block.data(), pattern(block.size(), ++seed)));
  }
}

TEST_F(HostAllocation, HOST_11_EveryByteCanBeCopiedToAndFromTheDevice) {
  constexpr size_t kSize = 3 * kMiB + 77;
  const HostBlock there(kSize);
  const HostBlock back(kSize);
  const MallocedMemory device_memory(kSize);
  store(there.data(), pattern(kSize, 21));
  memset(back.data(), 0, kSize);
  EXPECT_SUCCESS(
      aclrtMemcpy(device_memory.data(), kSize, there.data(), kSize, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_SUCCESS(
      aclrtMemcpy(back.data(), kSize, device_memory.data(), kSize, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_TRUE(holds(back.data(), pattern(kSize, 21)));
}

void expect_host_memory_is_short(size_t size) {
  SCOPED_TRACE(size);
  void* data = host_sentinel();
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMallocHost(&data, size));
  EXPECT_EQ(data, host_sentinel());
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMallocHostWithCfg(&data, size, nullptr));
  EXPECT_EQ(data, host_sentinel());
}

TEST_F(HostAllocation, HOST_10_MoreThanTheHostHasIsOutOfMemory) {
  const HostBlock neighbour(kPage);
  store(neighbour.data(), pattern(kPage, 8));
  for (const size_t size : {64 * kTiB, 4096 * kTiB, SIZE_MAX / 2}) {
    expect_host_memory_is_short(size);
  }
  EXPECT_TRUE(holds(neighbour.data(), pattern(kPage, 8)));
  const HostBlock still_served(kPage);
}

TEST(HostAllocationInABudget, HOST_10_BudgetIsTheEndOfHostMemoryAndComesBack) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "32M"});
  const DeviceSession session;
  constexpr size_t kSize = 4 * kMiB;
  expect_host_memory_is_short(40 * kMiB);
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE(round);
    std::vector<HostBlock> blocks;
    void* data = nullptr;
    aclError result = ACL_SUCCESS;
    while (blocks.size() <= 8 && (result = aclrtMallocHost(&data, kSize)) == ACL_SUCCESS) {
      blocks.emplace_back(data, kSize);
    }
    EXPECT_EQ(result, ACL_ERROR_RT_MEMORY_ALLOCATION);
    EXPECT_GE(blocks.size(), 1u);
    EXPECT_LE(blocks.size(), 8u);
  }
}

TEST(HostAllocationOnIpv350, HOST_01_HOST_02_NotSupportedAfterTheOuterChecks) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"});
  void* data = host_sentinel();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(nullptr, kPage));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(&data, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHostWithCfg(&data, 0, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFreeHost(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFreeHostWithDevSync(nullptr));

  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtMallocHost(&data, kPage));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtMallocHostWithCfg(&data, kPage, nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtFreeHost(&data));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtFreeHostWithDevSync(&data));
  EXPECT_EQ(data, host_sentinel());
}

class HostAllocationOnProduct : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, HostAllocationOnProduct,
                         testing::Values("a3", "inf", "trn", "200i", "950"), host_product_name);

TEST_P(HostAllocationOnProduct, HOST_04_HOST_11_HOST_22_HostFormOfEveryProductServesIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  const HostBlock block(kMiB + 1);
  EXPECT_EQ(number(block.data()) % 64, 0u);
  EXPECT_EQ(memory_figures(), before);
  expect_at_host(block.at(kMiB));
  store(block.data(), pattern(block.size(), 2));
  EXPECT_TRUE(holds(block.data(), pattern(block.size(), 2)));
}

}  // namespace
}  // namespace understudy_test
