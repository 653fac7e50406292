// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "tools/recording/recorded_names.h"

namespace understudy::command {
namespace {

constexpr uint64_t kAddress = uint64_t{24} << 40;  // of a device

// A recording that is written down call by call.
class ReplayPlanTest : public testing::Test {
 protected:
  ReplayPlanTest() { recording_.processes.resize(2); }

  uint32_t thread(uint32_t process = 0) {
    recording_.threads.emplace_back().process = process;
    return static_cast<uint32_t>(recording_.threads.size() - 1);
  }
  // In the order of their beginnings.
  uint32_t call(uint32_t thread, uint64_t begin, uint64_t end, const std::string& definition,
                std::initializer_list<uint64_t> words, int32_t code = 0) {
    RecordedFunction function = parse_function(definition);
    const auto known = std::find_if(recording_.functions.begin(), recording_.functions.end(),
                                    [&](const auto& each) { return each.name == function.name; });
    RecordedCall made;
    made.function = static_cast<uint32_t>(known - recording_.functions.begin());
    if (known == recording_.functions.end()) recording_.functions.push_back(std::move(function));
    made.begin = begin;
    made.duration = end - begin;
    made.code = code;
    made.thread = thread;
    made.first_argument = recording_.words.size();
    made.arguments = static_cast<uint32_t>(words.size());
    recording_.words.insert(recording_.words.end(), words);
    recording_.calls.push_back(made);
    return static_cast<uint32_t>(recording_.calls.size() - 1);
  }
  uint32_t allocate(uint32_t thread, uint64_t begin, uint64_t end, uint64_t address) {
    return call(thread, begin, end, "aclrtMalloc(out devPtr:p, size:u, policy:i)",
                {address, 4096, 0});
  }
  uint32_t free(uint32_t thread, uint64_t begin, uint64_t end, uint64_t address, int32_t code = 0) {
    return call(thread, begin, end, "aclrtFree(devPtr:p)", {address}, code);
  }
  ReplayPlan plan(ReplayedCalls which = ReplayedCalls::kAll) {
    return make_replay_plan(recording_, which);
  }
  static const Reference& reference(const ReplayPlan& plan, uint32_t position) {
    return plan.references.at(plan.calls.at(position).first_reference);
  }

  Recording recording_;
};

TEST_F(ReplayPlanTest, ACallAwaitsThoseThatHadEnded) {
  const uint32_t first = thread();
  const uint32_t second = thread();
  allocate(first, 0, 10, kAddress);
  allocate(second, 5, 20, kAddress + 8192);
  allocate(first, 12, 14, kAddress + 16384);
  allocate(second, 21, 22, kAddress + 32768);
  const ReplayPlan made = plan();
  ASSERT_EQ(made.calls.size(), 4U);
  EXPECT_EQ(made.calls[0].awaited, 0U);
  EXPECT_EQ(made.calls[1].awaited, 0U) << "it overlapped with the first";
  EXPECT_EQ(made.calls[2].awaited, 1U) << "the second thread's call had not ended";
  EXPECT_EQ(made.calls[3].awaited, 3U);
  EXPECT_EQ(made.calls[2].place, 1U);
  EXPECT_EQ(made.calls[1].place, 2U);
}

TEST_F(ReplayPlanTest, AnAddressThatIsHandedOutAgainMeanwhileIsTheOldOne) {
  const uint32_t first = thread();
  const uint32_t second = thread();
  allocate(first, 0, 1, kAddress);
  free(first, 2, 10, kAddress);
  allocate(second, 3, 9, kAddress);
  free(second, 11, 12, kAddress);
  const ReplayPlan made = plan();
  EXPECT_EQ(reference(made, 1).thing, made.calls[0].first_thing);
  EXPECT_EQ(reference(made, 3).thing, made.calls[2].first_thing);
}

TEST_F(ReplayPlanTest, ASecondFreeIsOfWhatHasEnded) {
  const uint32_t only = thread();
  allocate(only, 0, 1, kAddress);
  free(only, 2, 3, kAddress);
  free(only, 4, 5, kAddress + 64, 107000);
  const ReplayPlan made = plan();
  EXPECT_EQ(reference(made, 2).thing, made.calls[0].first_thing);
  EXPECT_EQ(reference(made, 2).offset, 64U);
  EXPECT_TRUE(reference(made, 2).has_ended);
  EXPECT_TRUE(made.processes[0].uses_what_ended);
}

TEST_F(ReplayPlanTest, WhatNoCallHasMadeIsLeftOut) {
  const uint32_t only = thread();
  free(only, 0, 1, kAddress);
  call(only, 2, 3, "aclrtSynchronizeStream(stream:p)", {77});
  call(only, 4, 5, "aclrtSynchronizeStream(stream:p)", {0});
  const ReplayPlan made = plan();
  ASSERT_EQ(made.calls.size(), 1U);
  EXPECT_EQ(made.calls[0].call, 2U);
  EXPECT_EQ(made.left_out.size(), 2U);
}

TEST_F(ReplayPlanTest, WrongValuesStayWrong) {
  const uint32_t only = thread();
  free(only, 0, 1, kAddress, 107000);
  call(only, 2, 3, "aclrtSynchronizeStream(stream:p)", {77}, 107017);
  const ReplayPlan made = plan();
  ASSERT_EQ(made.calls.size(), 2U);
  EXPECT_EQ(reference(made, 0).source, Source::kAsRecorded);
  EXPECT_EQ(reference(made, 0).offset, kAddress);
  EXPECT_EQ(reference(made, 1).offset, 77U);
}

TEST_F(ReplayPlanTest, MemoryOfTheProgramIsOfTheSizeThatIsCopied) {
  const uint32_t only = thread();
  allocate(only, 0, 1, kAddress);
  call(only, 2, 3, "aclrtMemcpy(dst:p, destMax:u, src:p, count:u, kind:i)",
       {kAddress, 4096, 0x7f0000001000, 1234, 1});
  const ReplayPlan made = plan();
  ASSERT_EQ(made.references.size(), 2U);
  EXPECT_EQ(made.references[1].source, Source::kHostMemory);
  EXPECT_EQ(made.processes[0].host_bytes, 1234U);
}

TEST_F(ReplayPlanTest, TokensAreKnownToAllProcesses) {
  const uint32_t maker = thread(0);
  const uint32_t user = thread(1);
  call(maker, 0, 1, "aclrtMallocPhysical(out handle:p, size:u, prop:P4, flags:u)",
       {5, 4096, 0, 0, 0, 0, 0});
  call(maker, 2, 3,
       "aclrtMemExportToShareableHandle(handle:p, handleType:i, flags:u, out shareableHandle:u)",
       {5, 0, 0, 99});
  call(user, 4, 5, "aclrtMemImportFromShareableHandle(shareableHandle:u, deviceId:i, out handle:p)",
       {99, 0, 5});
  call(user, 6, 7, "aclrtFreePhysical(handle:p)", {5});
  const ReplayPlan made = plan();
  ASSERT_EQ(made.calls.size(), 4U);
  EXPECT_EQ(reference(made, 2).thing, made.calls[1].first_thing);
  EXPECT_EQ(reference(made, 3).thing, made.calls[2].first_thing) << "handles are a process's own";
  EXPECT_EQ(made.processes[0].needed_until, 2U);
}

TEST_F(ReplayPlanTest, OnlyMemoryLeavesTheRestOutWithoutAWord) {
  const uint32_t only = thread();
  allocate(only, 0, 1, kAddress);
  call(only, 2, 3, "aclrtMemset(devPtr:p, maxCount:u, value:i, count:u)", {kAddress, 8, 0, 8});
  const ReplayPlan made = plan(ReplayedCalls::kOnlyMemory);
  EXPECT_EQ(made.calls.size(), 1U);
  EXPECT_TRUE(made.left_out.empty());
}

TEST_F(ReplayPlanTest, DamagedCallsAreNoDanger) {
  const uint32_t only = thread();
  call(only, 0, UINT64_MAX, "aclrtMalloc(out devPtr:p, size:u, policy:i)", {UINT64_MAX});
  call(only, 0, 0, "aclrtMalloc(out devPtr:p, size:u, policy:i)", {UINT64_MAX, UINT64_MAX, 1});
  call(only, 1, 2, "aclrtMemcpy2d(dst:p)", {3});
  call(only, 1, 2, "noSuchFunction(x:u)", {});
  call(only, 1, 2, "aclrtIpcMemClose(key:t)", {12345});
  const ReplayPlan made = plan();
  EXPECT_EQ(made.calls.size(), 2U);
  EXPECT_EQ(made.left_out.size(), 3U);
}

}  // namespace
}  // namespace understudy::command
