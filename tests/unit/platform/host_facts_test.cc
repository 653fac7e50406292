// SPDX-License-Identifier: Apache-2.0
#include "platform/host_facts.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/sizes.h"
#include "support/refused_calls.h"
#include "unit/other_process.h"

namespace understudy::platform {
namespace {

TEST(HostFacts, MachineHasMemoryAndNotMoreAvailableThanThereIs) {
  const uint64_t total = total_memory();
  EXPECT_GT(total, 64 * kMiB);
  EXPECT_LT(total, 1024 * kTiB);
  EXPECT_GT(available_memory(), 0u);
  EXPECT_LE(available_memory(), total);
}

TEST(HostFacts, TotalIsNotMoreThanWhatTheSystemSaysOtherwise) {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_LE(total_memory(), pages * page);
}

TEST(HostFacts, FirstNumaNodeExistsAndTheMillionthDoesNot) {
  EXPECT_TRUE(numa_node_exists(0));
  EXPECT_FALSE(numa_node_exists(1'000'000));
  EXPECT_FALSE(numa_node_exists(UINT64_MAX));
}

TEST(HostFacts, NodeHasNotMoreMemoryThanTheMachine) {
  EXPECT_GT(available_memory_on_node(0), 0u);
  EXPECT_LE(available_memory_on_node(0), total_memory());
}

TEST(HostFacts, TotalIsThatOfTheTightestLimit) {
  uint64_t least = kUnknownMemory;
  for (const MemoryLimit& limit : memory_limits()) least = std::min(least, limit.total);
  EXPECT_EQ(total_memory(), least);
}

TEST(HostFacts, MemoryIsKnownFromFilesWhereTheKernelItselfDoesNotTell) {
  OtherProcess child([](const Line&) {
    ASSERT_TRUE(understudy_test::refuse_system_call(SYS_sysinfo, EPERM));
    EXPECT_TRUE(is_memory_known());
  });
  EXPECT_TRUE(child.ended_well());
}

// Unknown is not nothing: a process that may open no file is not one without memory.
TEST(HostFacts, WithoutFilesTheKernelItselfIsAsked) {
  const uint64_t total = total_memory();
  OtherProcess child([&](const Line&) {
    ASSERT_TRUE(understudy_test::refuse_system_call(SYS_openat, EACCES));
    EXPECT_GE(total_memory(), total);
    EXPECT_LT(total_memory(), kUnknownMemory);
    EXPECT_TRUE(is_memory_known());
    EXPECT_GT(available_memory(), 0u);
    EXPECT_LE(available_memory(), total_memory());
    EXPECT_GT(available_memory_on_node(0), 0u);
  });
  EXPECT_TRUE(child.ended_well());
}

TEST(HostFacts, WhereNothingIsToldThereIsNoLimit) {
  OtherProcess child([](const Line&) {
    ASSERT_TRUE(understudy_test::refuse_system_call(SYS_openat, EACCES));
    ASSERT_TRUE(understudy_test::refuse_system_call(SYS_sysinfo, EPERM));
    EXPECT_EQ(total_memory(), kUnknownMemory);
    EXPECT_FALSE(is_memory_known());
    EXPECT_EQ(available_memory(), kUnknownMemory);
  });
  EXPECT_TRUE(child.ended_well());
}

TEST(HostFacts, NoMachineHasAPoolOfPagesOfAnOddSize) {
  EXPECT_FALSE(has_hugetlb_pool(3 * kMiB));
  EXPECT_FALSE(has_hugetlb_pool(0));
}

TEST(HostFacts, ProcessIdIsOurs) { EXPECT_EQ(process_id(), getpid()); }

}  // namespace
}  // namespace understudy::platform
