// SPDX-License-Identifier: Apache-2.0
//
// aclrtFree, aclrtFreeWithDevSync, aclrtMemFlush and aclrtMemInvalidate.
// Covers: FREE-01, FREE-02, FREE-03, FREE-04, FREE-05, FREE-06, FREE-08, FREE-09, FREE-10, FREE-11.
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

using Free = DeviceTest;

// The two functions that free, as a test parameter.
struct FreeFunction {
  const char* name;
  aclError (*call)(void* data);

  friend std::ostream& operator<<(std::ostream& out, const FreeFunction& function) {
    return out << function.name;
  }
};

class EitherFree : public DeviceTest, public testing::WithParamInterface<FreeFunction> {
 protected:
  static void expect_refused(aclError code, void* data) {
    (void)recent_error();
    EXPECT_TRUE(fails_with(code, GetParam().call(data), GetParam().name)) << data;
  }
};
INSTANTIATE_TEST_SUITE_P(, EitherFree,
                         testing::Values(FreeFunction{"aclrtFree", aclrtFree},
                                         FreeFunction{"aclrtFreeWithDevSync",
                                                      aclrtFreeWithDevSync}),
                         [](const testing::TestParamInfo<FreeFunction>& parameter) {
                           return std::string(parameter.param.name);
                         });

TEST_P(EitherFree, FREE_01_FREE_08_NullPointerIsRefused) {
  const Bystander bystander;
  const DeviceBlock block(kMiB);
  const MemoryFigures before = memory_figures();
  expect_refused(ACL_ERROR_INVALID_PARAM, nullptr);
  EXPECT_EQ(memory_figures(), before);
  bystander.expect_bytes_unchanged();
  on_bare_thread([] { expect_refused(ACL_ERROR_INVALID_PARAM, nullptr); });
}

TEST_P(EitherFree, FREE_02_FREE_09_TakesTheBlockOfEveryMallocFunction) {
  const MemoryFigures before = memory_figures();
  for (const DeviceMalloc& function : kDeviceMallocs) {
    for (const aclrtMemMallocPolicy policy : kBasePolicies) {
      SCOPED_TRACE(testing::Message() << function.name << ", policy " << policy);
      DeviceBlock block(100, policy, function);
      EXPECT_SUCCESS(GetParam().call(block.release()));
      EXPECT_EQ(memory_figures(), before);
    }
  }
}

// Nothing is kept back for later: the pages serve the next block before any other call.
TEST_P(EitherFree, FREE_03_FREE_09_MemoryIsFreeOnReturn) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"}, {"UNDERSTUDY_NORMAL_MEMORY", "64M"});
  const size_t huge = free_bytes(ACL_HBM_MEM_HUGE);
  const size_t normal = free_bytes(ACL_HBM_MEM_NORMAL);
  for (int round = 0; round < 10; ++round) {
    DeviceBlock all_huge(huge, ACL_MEM_MALLOC_HUGE_ONLY, kMallocAlign32);
    DeviceBlock all_normal(normal, ACL_MEM_MALLOC_NORMAL_ONLY, kMallocAlign32);
    void* const data = all_huge.release();
    EXPECT_SUCCESS(GetParam().call(data));
    expect_no_known_memory(data);
    EXPECT_SUCCESS(GetParam().call(all_normal.release()));
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge);
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), normal);
  }
}

// A pool that was freed in pieces is whole again: no piece is lost to its neighbours.
TEST_P(EitherFree, FREE_03_FREE_05_PiecesFreedInAnyOrderMakeTheWholeAgain) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"}, {"UNDERSTUDY_NORMAL_MEMORY", "64M"});
  const MemoryFigures before = memory_figures();
  const size_t huge = free_bytes(ACL_HBM_MEM_HUGE);
  std::deque<DeviceBlock> pieces;
  while (free_bytes(ACL_HBM_MEM_HUGE) >= kHugePage) {
    pieces.emplace_back(kHugePage, ACL_MEM_MALLOC_HUGE_ONLY, kMallocAlign32);
  }
  ASSERT_EQ(pieces.size(), huge / kHugePage);
  for (const size_t start : {size_t{1}, size_t{0}}) {
    for (size_t i = start; i < pieces.size(); i += 2) {
      EXPECT_SUCCESS(GetParam().call(pieces[i].release()));
    }
  }
  EXPECT_EQ(memory_figures(), before);
  const DeviceBlock whole(huge, ACL_MEM_MALLOC_HUGE_ONLY, kMallocAlign32);
}

TEST_F(Free, FREE_03_FREE_04_AnyThreadMayFreeWithoutAContext) {
  const MemoryFigures before = memory_figures();
  for (const DeviceMalloc& function : kDeviceMallocs) {
    SCOPED_TRACE(function.name);
    DeviceBlock block(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, function);
    void* const data = block.release();
    on_bare_thread([data] { EXPECT_SUCCESS(aclrtFree(data)); });
    EXPECT_EQ(memory_figures(), before);
    expect_no_known_memory(data);
  }
}

TEST_F(Free, FREE_04_MemoryOfAnotherDeviceIsFreedThere) {
  const MemoryFigures device_0 = memory_figures();
  ASSERT_SUCCESS(aclrtSetDevice(1));
  const MemoryFigures device_1 = memory_figures();
  DeviceBlock block(3 * kMiB);
  EXPECT_NE(memory_figures(), device_1);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtFree(block.release()));
  EXPECT_EQ(memory_figures(), device_0);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_EQ(memory_figures(), device_1);
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
}

TEST_P(EitherFree, FREE_05_FiguresGrowByExactlyWhatTheBlockTook) {
  const MemoryFigures before = memory_figures();
  for (const DeviceMalloc& function : kDeviceMallocs) {
    for (const size_t size : {size_t{1}, size_t{4065}, kMiB, kMiB + 1, 2 * kMiB, kGiB + 1}) {
      SCOPED_TRACE(testing::Message() << function.name << " of " << size << " bytes");
      const DeviceBlock neighbour(5000);
      const MemoryFigures with_neighbour = memory_figures();
      DeviceBlock block(size, ACL_MEM_MALLOC_HUGE_FIRST, function);
      EXPECT_NE(memory_figures(), with_neighbour);
      EXPECT_SUCCESS(GetParam().call(block.release()));
      EXPECT_EQ(memory_figures(), with_neighbour);
    }
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_P(EitherFree, FREE_06_FREE_09_InteriorAndUnknownAddressesAreRefused) {
  const Bystander bystander;
  const DeviceBlock large(3 * kMiB);
  const DeviceBlock small(100);
  copy_in(large.data(), pattern(kNormalPage, 2));
  copy_in(small.data(), pattern(100, 3));
  void* const reserved = reserve(kGranule);
  int on_stack = 0;
  static int in_image = 0;
  const auto on_heap = std::make_unique<char[]>(kPage);
  const MemoryFigures before = memory_figures();

  for (void* const wrong : {large.at(1), large.at(64), large.at(kNormalPage), large.at(kHugePage),
                            large.at(large.size() - 1), large.at(large.size()), small.at(1),
                            small.at(64), bystander.mapping().data(), bystander.mapping().at(kPage),
                            reserved, address(1), address(4096), address(UINT64_MAX),
                            address(uint64_t{1} << 63), static_cast<void*>(&on_stack),
                            static_cast<void*>(&in_image), static_cast<void*>(on_heap.get())}) {
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, wrong);
    EXPECT_EQ(memory_figures(), before);
  }
  EXPECT_EQ(copy_out(large.data(), kNormalPage), pattern(kNormalPage, 2));
  EXPECT_EQ(copy_out(small.data(), 100), pattern(100, 3));
  bystander.expect_bytes_unchanged();
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

TEST_P(EitherFree, FREE_06_FREE_09_HostMemoryIsRefused) {
  const MemoryFigures before = memory_figures();
  void* host = nullptr;
  ASSERT_SUCCESS(aclrtMallocHost(&host, kNormalPage));
  memset(host, 0x21, kNormalPage);
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, host);
  EXPECT_EQ(static_cast<uint8_t*>(host)[kNormalPage - 1], 0x21);
  EXPECT_EQ(memory_figures(), before);
  EXPECT_SUCCESS(aclrtFreeHost(host));
}

TEST_P(EitherFree, FREE_06_FREE_09_FreedBlockIsRefused) {
  for (const size_t size : {size_t{100}, 3 * kMiB, kGiB}) {
    SCOPED_TRACE(size);
    const Bystander bystander;
    DeviceBlock block(size);
    void* const data = block.release();
    ASSERT_SUCCESS(aclrtFree(data));
    for (int again = 0; again < 3; ++again) expect_refused(ACL_ERROR_RT_PARAM_INVALID, data);
    bystander.expect_unchanged();
  }
}

TEST_P(EitherFree, FREE_06_RacingFreesOfOneBlockGiveOneSuccess) {
  const MemoryFigures before = memory_figures();
  for (int round = 0; round < 50; ++round) {
    DeviceBlock block(round % 2 == 0 ? 100 : 3 * kMiB);
    void* const data = block.release();
    std::atomic<int> successes = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([data, &successes] {
        ASSERT_SUCCESS(aclrtSetDevice(0));
        const aclError code = GetParam().call(data);
        EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_PARAM_INVALID) << code;
        if (code == ACL_SUCCESS) ++successes;
        EXPECT_SUCCESS(aclrtResetDevice(0));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(successes, 1);
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(Free, FREE_06_BlockThatADeviceResetEndedIsRefused) {
  const MemoryFigures before = memory_figures();
  DeviceBlock block(3 * kMiB);
  void* const data = block.release();
  ASSERT_SUCCESS(aclrtResetDeviceForce(0));
  expect_no_known_memory(data);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(data));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(memory_figures(), before);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(data));
}

TEST_F(Free, FREE_08_WaitingFormNeedsAContextAndKeepsTheBlockWithoutOne) {
  const DeviceBlock block(3 * kMiB);
  copy_in(block.data(), pattern(kNormalPage, 2));
  const MemoryFigures before = memory_figures();
  on_bare_thread(
      [&] { EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtFreeWithDevSync(block.data())); });
  EXPECT_EQ(memory_figures(), before);
  EXPECT_EQ(copy_out(block.data(), kNormalPage), pattern(kNormalPage, 2));
}

TEST_F(Free, FREE_09_WaitingFormFreesMemoryOfAnyDevice) {
  ASSERT_SUCCESS(aclrtSetDevice(1));
  const MemoryFigures device_1 = memory_figures();
  DeviceBlock block(3 * kMiB);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtFreeWithDevSync(block.release()));
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_EQ(memory_figures(), device_1);
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
}

TEST_F(Free, FREE_10_CacheCallsRefuseNullAndNothing) {
  const DeviceBlock block(kMiB, ACL_MEM_MALLOC_HUGE_FIRST, kMallocCached);
  copy_in(block.data(), pattern(kNormalPage, 2));
  const MemoryFigures before = memory_figures();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemFlush(nullptr, 64));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemFlush(block.data(), 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemFlush(nullptr, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemInvalidate(nullptr, 64));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemInvalidate(block.data(), 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemInvalidate(nullptr, 0));
  EXPECT_EQ(memory_figures(), before);
  EXPECT_EQ(copy_out(block.data(), kNormalPage), pattern(kNormalPage, 2));
}

TEST_F(Free, FREE_11_CacheCallsSucceedAndKeepTheData) {
  for (const DeviceMalloc& function : {kMallocCached, kMalloc}) {
    SCOPED_TRACE(function.name);
    const DeviceBlock block(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, function);
    const std::vector<uint8_t> bytes = pattern(block.size(), 9);
    copy_in(block.data(), bytes);
    const MemoryFigures before = memory_figures();
    EXPECT_SUCCESS(aclrtMemFlush(block.data(), block.size()));
    EXPECT_TRUE(copy_out(block.data(), block.size()) == bytes);
    EXPECT_SUCCESS(aclrtMemInvalidate(block.data(), block.size()));
    EXPECT_TRUE(copy_out(block.data(), block.size()) == bytes);
    for (const size_t offset : {size_t{1}, kNormalPage - 1, kHugePage - 3}) {
      EXPECT_SUCCESS(aclrtMemFlush(block.at(offset), 7));
      EXPECT_SUCCESS(aclrtMemInvalidate(block.at(offset), 7));
    }
    EXPECT_TRUE(copy_out(block.data(), block.size()) == bytes);
    EXPECT_EQ(memory_figures(), before);
  }
}

TEST(FreeOnIpv350, FREE_01_FREE_02_FREE_06_AclrtFreeIsThere) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const MemoryFigures before = memory_figures();
  DeviceBlock block(3 * kMiB);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFree(nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(block.at(64)));
  void* const data = block.release();
  EXPECT_SUCCESS(aclrtFree(data));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(data));
  EXPECT_EQ(memory_figures(), before);
}

TEST(FreeOnIpv350, FREE_08_FREE_10_TheOtherCallsAreMissing) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const DeviceBlock block(3 * kMiB);
  const MemoryFigures before = memory_figures();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFreeWithDevSync(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemFlush(nullptr, 64));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemInvalidate(block.data(), 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtFreeWithDevSync(block.data()));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtMemFlush(block.data(), 64));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtMemInvalidate(block.data(), 64));
  EXPECT_EQ(memory_figures(), before);
}

}  // namespace
}  // namespace understudy_test
