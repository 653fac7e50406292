// SPDX-License-Identifier: Apache-2.0
//
// Calls that fail on purpose (key `fail`): which ones, with which code, and that nothing else
// happens then.
#include <atomic>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "process/log_objects.h"

namespace understudy_test::logged {
namespace {

constexpr size_t kSize = 4096;

aclError allocate_and_free(size_t size = kSize) {
  void* memory = nullptr;
  const aclError code = aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST);
  EXPECT_EQ(memory == nullptr, code != ACL_SUCCESS);
  if (code == ACL_SUCCESS) {
    EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
  }
  return code;
}

// Which of so many allocations fail, from 1.
std::vector<int> failing_allocations(int calls) {
  std::vector<int> failing;
  for (int call = 1; call <= calls; ++call) {
    if (allocate_and_free() != ACL_SUCCESS) failing.push_back(call);
  }
  return failing;
}

size_t free_memory() {
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  return free;
}

TEST(InjectedFailure, OfTheNthCallHasTheCodeOfExhaustedMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtMalloc:nth=3"});
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  const size_t before = free_memory();
  EXPECT_EQ(allocate_and_free(), ACL_SUCCESS);
  EXPECT_EQ(allocate_and_free(), ACL_SUCCESS);
  EXPECT_EQ(allocate_and_free(), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "aclrtMalloc: fails on purpose, as call 3 of the rule aclrtMalloc:nth=3\n");
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(allocate_and_free(), ACL_SUCCESS);
  EXPECT_EQ(free_memory(), before);
}

TEST(InjectedFailure, OfAnotherFunctionIsAnInternalError) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtCreateStream:nth=1"});
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtCreateStream(&stream), ACL_ERROR_INTERNAL_ERROR);
  EXPECT_EQ(stream, nullptr);
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST(InjectedFailure, HasTheCodeThatWasAskedFor) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclInit|aclrtSetDevice:every=1,code=507033"});
  EXPECT_EQ(aclInit(nullptr), 507033);
  EXPECT_EQ(aclrtSetDevice(0), 507033);
  int32_t device = -1;
  EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
}

TEST(InjectedFailure, ComesBeforeTheArgumentsAreLookedAt) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtFree:nth=1,code=507899"});
  EXPECT_EQ(aclrtFree(nullptr), 507899);
  EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST(InjectedFailure, StickyOnesGoOn) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtMalloc:nth=2,sticky"});
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(failing_allocations(5), (std::vector<int>{2, 3, 4, 5}));
}

TEST(InjectedFailure, OfEveryKthCall) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtMalloc:every=3"});
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(failing_allocations(10), (std::vector<int>{3, 6, 9}));
}

TEST(InjectedFailure, OfLargeCallsOnly) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "allocation|copy:from_size=64K"});
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(allocate_and_free(65535), ACL_SUCCESS);
  EXPECT_EQ(allocate_and_free(65536), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(allocate_and_free(1 << 20), ACL_ERROR_RT_MEMORY_ALLOCATION);
  std::vector<char> one(65536, 'a');
  std::vector<char> other(65536, 'b');
  EXPECT_EQ(aclrtMemcpy(other.data(), 65536, one.data(), 65536, ACL_MEMCPY_HOST_TO_HOST),
            ACL_ERROR_INTERNAL_ERROR);
  EXPECT_EQ(other[0], 'b');
  EXPECT_EQ(aclrtMemcpy(other.data(), 65536, one.data(), 65535, ACL_MEMCPY_HOST_TO_HOST),
            ACL_SUCCESS);
}

TEST(InjectedFailure, RandomOnesAreRepeatedByTheirSeed) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtMalloc:probability=0.4,seed=7"});
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  const std::vector<int> failing = failing_allocations(1000);
  EXPECT_GT(failing.size(), 330U);
  EXPECT_LT(failing.size(), 470U);
  in_child([&] {
    setenv("UNDERSTUDY_FAIL", "aclrtMalloc:seed=7,probability=0.4", 1);  // a plan of its own
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(failing_allocations(1000), failing);
  });
}

TEST(InjectedFailure, OfALateCall) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtMalloc:after=0s"});
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(failing_allocations(5), std::vector<int>{1});
}

TEST(InjectedFailure, RulesCountByThemselves) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtMalloc:nth=2;aclrtMalloc|aclrtFree:nth=4,code=1"});
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  void* first = nullptr;
  void* second = nullptr;
  EXPECT_EQ(aclrtMalloc(&first, kSize, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtMalloc(&second, kSize, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(aclrtMalloc(&second, kSize, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(first), 1);
  EXPECT_EQ(aclrtFree(first), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(second), ACL_SUCCESS);
}

TEST(InjectedFailure, IsOneOfAllThreads) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtMalloc:every=10"});
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  std::atomic<size_t> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      failures += failing_allocations(100).size();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 80U);
}

TEST(InjectedFailure, IsToldAsItHappens) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtFree:every=1"});
  const Lines first = lines_of(stderr_of([] { (void)aclrtFree(nullptr); }));
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0], "understudy: aclrtFree fails on purpose: call 1 of aclrtFree:every=1");
  const Lines rest = lines_of(stderr_of([] {
    for (int i = 0; i < 100; ++i) (void)aclrtFree(nullptr);
  }));
  ASSERT_EQ(rest.size(), 19U);
  EXPECT_EQ(rest.back(),
            "understudy: aclrtFree fails on purpose: call 20 of aclrtFree:every=1; later failures "
            "are counted only");
}

TEST(InjectedFailure, WrongRulesAreAWrongConfiguration) {
  US_FRESH_PROCESS({"UNDERSTUDY_FAIL", "aclrtMaloc:nth=1"});
  EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_INVALID_PARAM);
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("the nearest is aclrtMalloc"),
            std::string::npos);
}

}  // namespace
}  // namespace understudy_test::logged
