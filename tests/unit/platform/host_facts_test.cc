// SPDX-License-Identifier: Apache-2.0
#include "platform/host_facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>

#include "base/sizes.h"

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

TEST(HostFacts, NoMachineHasAPoolOfPagesOfAnOddSize) {
  EXPECT_FALSE(has_hugetlb_pool(3 * kMiB));
  EXPECT_FALSE(has_hugetlb_pool(0));
}

TEST(HostFacts, ProcessIdIsOurs) { EXPECT_EQ(process_id(), getpid()); }

}  // namespace
}  // namespace understudy::platform
