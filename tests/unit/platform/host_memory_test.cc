// SPDX-License-Identifier: Apache-2.0
#include "platform/host_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "base/sizes.h"
#include "support/refused_calls.h"
#include "unit/expect_result.h"
#include "unit/other_process.h"
#include "unit/platform/planned_fault.h"

namespace understudy::platform {
namespace {

constexpr uint64_t kSize = 2 * kHugePage;

bool is_resident(VirtualRange range) {
  unsigned char pages[kSize / kNormalPage] = {};
  if (mincore(to_pointer(range.base), range.size, pages) != 0) return false;
  for (uint64_t i = 0; i < range.size / kNormalPage; ++i) {
    if ((pages[i] & 1) == 0) return false;
  }
  return true;
}

TEST(HostMemory, MappedMemoryIsAlignedZeroedAndWritable) {
  for (const HostPages pages : {HostPages::kTransparent, HostPages::kSmall}) {
    const VirtualRange range = value_of(map_host_memory(kSize, pages));
    EXPECT_TRUE(is_aligned(range.base, kHugePage));
    EXPECT_EQ(range.size, kSize);
    auto* const bytes = static_cast<volatile uint8_t*>(to_pointer(range.base));
    EXPECT_EQ(bytes[0], 0);
    bytes[kSize - 1] = 7;
    EXPECT_EQ(bytes[kSize - 1], 7);
    unmap_host_memory(range);
    EXPECT_FALSE(is_wholly_mapped(range));
  }
}

TEST(HostMemory, PagesArePopulatedWithoutTheAdviceForIt) {
  constexpr int kPopulateWrite = 23;
  OtherProcess child([](const Line&) {
    ASSERT_TRUE(understudy_test::refuse_advice(kPopulateWrite, EINVAL));
    for (const HostPages pages : {HostPages::kTransparent, HostPages::kSmall}) {
      const VirtualRange range = value_of(map_host_memory(kSize, pages));
      EXPECT_TRUE(is_ok(populate(range, pages)));
      EXPECT_TRUE(is_resident(range));
      unmap_host_memory(range);
    }
  });
  EXPECT_TRUE(child.ended_well());
}

TEST(HostMemory, PopulatedPagesAreThereBeforeAnyoneTouchesThem) {
  for (const HostPages pages : {HostPages::kTransparent, HostPages::kSmall}) {
    const VirtualRange range = value_of(map_host_memory(kSize, pages));
    EXPECT_FALSE(is_resident(range));
    EXPECT_TRUE(is_ok(populate(range, pages)));
    EXPECT_TRUE(is_resident(range));
    unmap_host_memory(range);
  }
}

TEST(HostMemory, HoleIsSeenWhereverItIs) {
  const VirtualRange range = value_of(map_host_memory(kSize, HostPages::kSmall));
  EXPECT_TRUE(is_wholly_mapped(range));
  EXPECT_TRUE(is_wholly_mapped({range.base + 5, kSize - 10}));
  munmap(to_pointer(range.base + 3 * kNormalPage), kNormalPage);
  EXPECT_FALSE(is_wholly_mapped(range));
  EXPECT_FALSE(is_wholly_mapped({range.base + 3 * kNormalPage - 1, 2}));
  EXPECT_FALSE(is_wholly_mapped({range.base + 4 * kNormalPage - 1, 1}));
  EXPECT_TRUE(is_wholly_mapped({range.base, 3 * kNormalPage}));
  EXPECT_TRUE(is_wholly_mapped({range.base + 4 * kNormalPage, kSize - 4 * kNormalPage}));
  unmap_host_memory(range);
}

TEST(HostMemory, PlannedFaultsAreErrorsWithTheirNumber) {
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_TRUE(fails_with(map_host_memory(kSize, HostPages::kSmall), ErrorCode::kOutOfMemory));
  }
  const VirtualRange range = value_of(map_host_memory(kSize, HostPages::kSmall));
  {
    const PlannedFault fault(SystemCall::kCommit, 1, ENOMEM);
    EXPECT_TRUE(fails_with(populate(range, HostPages::kSmall), ErrorCode::kOutOfMemory));
  }
  {
    const PlannedFault fault(SystemCall::kLock, 1, EAGAIN);
    EXPECT_TRUE(fails_with(lock_pages(range), ErrorCode::kOutOfMemory));
  }
  unmap_host_memory(range);
}

}  // namespace
}  // namespace understudy::platform
