// SPDX-License-Identifier: Apache-2.0
#include "memory/extent_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "platform/host_facts.h"
#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

constexpr auto kHuge = PageKind::kHuge;

ExtentAllocatorOptions small_options() {
  return {.name = "unit-test",
          .file_size = 256 * kMiB,
          .backing = Backing::kSmall,
          .poison = Poison::kOff,
          .numa_node = std::nullopt,
          .max_free_committed = kGiB};
}

class ExtentAllocatorTest : public testing::Test {
 protected:
  static Extent take(ExtentAllocator& storage, uint64_t size = kGranule) {
    return value_of(storage.take(size, kHuge));
  }
  static Extent take_committed(ExtentAllocator& storage, uint64_t size = kGranule) {
    const Extent extent = take(storage, size);
    EXPECT_TRUE(is_ok(extent.backing->commit(extent.offset, extent.size)));
    return extent;
  }
  static uint8_t* bytes(const Extent& extent) {
    return static_cast<uint8_t*>(to_pointer(extent.backing->alias(extent.offset)));
  }
  static bool same_place(const Extent& a, const Extent& b) {
    return a.backing == b.backing && a.offset == b.offset;
  }

  HostBudget budget_{HostBudget::Kind::kFixed, 128 * kMiB};
};

TEST_F(ExtentAllocatorTest, ExtentsHaveTheirSizeAndDoNotOverlap) {
  ExtentAllocator storage(small_options(), budget_);
  std::vector<Extent> extents;
  for (const uint64_t granules : {1U, 3U, 2U, 1U, 8U}) {
    extents.push_back(take(storage, granules * kGranule));
    EXPECT_EQ(extents.back().size, granules * kGranule);
    EXPECT_TRUE(is_aligned(extents.back().offset, kGranule));
  }
  for (const Extent& a : extents) {
    for (const Extent& b : extents) {
      const bool overlap = VirtualRange{a.offset, a.size}.overlaps(VirtualRange{b.offset, b.size});
      EXPECT_EQ(overlap && a.backing == b.backing, &a == &b);
    }
  }
  EXPECT_EQ(budget_.taken(), 0u);
}

TEST_F(ExtentAllocatorTest, FreedExtentServesTheNextRequestOfItsSizeAsItIs) {
  ExtentAllocator storage(small_options(), budget_);
  const Extent small = take_committed(storage);
  const Extent large = take_committed(storage, 2 * kGranule);
  bytes(small)[7] = 0x42;
  storage.give_back(small);
  storage.give_back(large);
  EXPECT_EQ(budget_.taken(), 3 * kGranule);

  const Extent again = take(storage);
  EXPECT_TRUE(same_place(again, small));
  EXPECT_TRUE(again.backing->is_committed_at(again.offset));
  EXPECT_EQ(bytes(again)[7], 0x42);
  // Neither is cut up nor put together for another size.
  const Extent other = take(storage);
  EXPECT_FALSE((VirtualRange{large.offset, large.size}).contains(other.offset));
  EXPECT_TRUE(same_place(take(storage, 2 * kGranule), large));
}

TEST_F(ExtentAllocatorTest, LastFreedExtentIsUsedFirst) {
  ExtentAllocator storage(small_options(), budget_);
  const Extent first = take_committed(storage);
  const Extent second = take_committed(storage);
  storage.give_back(first);
  storage.give_back(second);
  EXPECT_TRUE(same_place(take(storage), second));
  EXPECT_TRUE(same_place(take(storage), first));
}

TEST_F(ExtentAllocatorTest, PoisonedStorageShowsNoOldBytes) {
  ExtentAllocatorOptions options = small_options();
  options.poison = Poison::kOn;
  ExtentAllocator storage(options, budget_);
  const Extent extent = take_committed(storage);
  std::fill_n(bytes(extent), kGranule, uint8_t{1});
  storage.give_back(extent);
  const Extent again = take(storage);
  ASSERT_TRUE(same_place(again, extent));
  EXPECT_EQ(std::count(bytes(again), bytes(again) + kGranule, BackingFile::kPoisonByte), kGranule);
}

TEST_F(ExtentAllocatorTest, TrimGivesAllFreeMemoryBackAndSaysHowMuch) {
  ExtentAllocator storage(small_options(), budget_);
  const Extent kept = take_committed(storage);
  const Extent freed = take_committed(storage, 2 * kGranule);
  const Extent cold = take(storage, 4 * kGranule);
  bytes(kept)[0] = 9;
  storage.give_back(freed);
  storage.give_back(cold);
  EXPECT_EQ(storage.free_committed_bytes(), 2 * kGranule);
  EXPECT_EQ(storage.backing().total(), 3 * kGranule);

  EXPECT_EQ(storage.trim(), 2 * kGranule);
  EXPECT_EQ(storage.free_committed_bytes(), 0u);
  EXPECT_EQ(storage.backing().total(), kGranule);
  EXPECT_EQ(budget_.taken(), kGranule);
  EXPECT_EQ(bytes(kept)[0], 9);
  EXPECT_EQ(storage.trim(), 0u);
}

TEST_F(ExtentAllocatorTest, TrimReachesWhatOtherThreadsFreed) {
  ExtentAllocator storage(small_options(), budget_);
  run_on_threads(4, [&](int) { storage.give_back(take_committed(storage)); });
  const uint64_t freed = budget_.taken();
  EXPECT_GE(freed, kGranule);
  EXPECT_EQ(storage.free_committed_bytes(), freed);
  EXPECT_EQ(storage.trim(), freed);
  EXPECT_EQ(budget_.taken(), 0u);
}

TEST_F(ExtentAllocatorTest, TrimCountsOnlyWhatTheHostTookBack) {
  ExtentAllocator storage(small_options(), budget_);
  storage.give_back(take_committed(storage));
  {
    const PlannedFault fault(SystemCall::kDiscard, 1, EIO);
    EXPECT_EQ(storage.trim(), 0u);
  }
  EXPECT_EQ(storage.free_committed_bytes(), kGranule);
  EXPECT_EQ(storage.trim(), kGranule);
  EXPECT_EQ(budget_.taken(), 0u);
}

TEST_F(ExtentAllocatorTest, MemoryThatNobodyWantedSinceTheLastLookIsGivenBack) {
  ExtentAllocator storage(small_options(), budget_);
  std::vector<Extent> extents;
  for (int i = 0; i < 28; ++i) extents.push_back(take_committed(storage));
  const Extent live = take_committed(storage, 2 * kGranule);
  bytes(live)[5] = 0x17;
  for (const Extent& extent : extents) storage.give_back(extent);
  EXPECT_EQ(storage.give_back_idle(), 28 * kGranule);
  EXPECT_EQ(storage.give_back_idle(), 0u);
  EXPECT_EQ(budget_.taken(), live.size);
  EXPECT_EQ(bytes(live)[5], 0x17);
}

TEST_F(ExtentAllocatorTest, MemoryThatIsUsedNowAndThenIsKept) {
  ExtentAllocator storage(small_options(), budget_);
  // More than wait for the next request of their size: some are in the backing file.
  std::vector<Extent> extents;
  for (int i = 0; i < 20; ++i) extents.push_back(take_committed(storage));
  for (const Extent& extent : extents) storage.give_back(extent);
  for (int look = 0; look < 5; ++look) {
    EXPECT_EQ(storage.give_back_idle(), 20 * kGranule);
    for (Extent& extent : extents) {
      extent = take(storage);
      EXPECT_TRUE(extent.backing->is_committed_at(extent.offset));
    }
    for (const Extent& extent : extents) storage.give_back(extent);
  }
}

TEST_F(ExtentAllocatorTest, OnlyThePartThatWasNeverUsedMeanwhileIsIdle) {
  ExtentAllocator storage(small_options(), budget_);
  std::vector<Extent> extents;
  for (int i = 0; i < 10; ++i) extents.push_back(take_committed(storage));
  for (const Extent& extent : extents) storage.give_back(extent);
  storage.give_back_idle();
  const Extent first = take(storage);
  const Extent second = take(storage);
  storage.give_back(first);
  storage.give_back(second);
  EXPECT_EQ(storage.give_back_idle(), 2 * kGranule);
  EXPECT_TRUE(first.backing->is_committed_at(first.offset));
}

TEST_F(ExtentAllocatorTest, ExtentsThatStayColdCostNothingAndAreNotIdleMemory) {
  ExtentAllocator storage(small_options(), budget_);
  storage.give_back(take(storage, 3 * kGranule));
  EXPECT_EQ(storage.give_back_idle(), 0u);
  EXPECT_EQ(storage.give_back_idle(), 0u);
}

TEST_F(ExtentAllocatorTest, IdleMemoryThatTheHostDoesNotTakeIsOfferedAgain) {
  ExtentAllocator storage(small_options(), budget_);
  storage.give_back(take_committed(storage));
  storage.give_back_idle();
  {
    const PlannedFault fault(SystemCall::kDiscard, 1, EIO);
    EXPECT_EQ(storage.give_back_idle(), kGranule);
  }
  storage.give_back_idle();
  EXPECT_EQ(storage.give_back_idle(), 0u);
  EXPECT_EQ(budget_.taken(), 0u);
}

// Taking the part around it as a whole would leave nothing for others, who would begin a new file.
TEST_F(ExtentAllocatorTest, AFewBytesOfAFreedExtentAreNotKept) {
  ExtentAllocator storage(small_options(), budget_);
  const Extent recycled = take(storage);
  const Extent large = take(storage, 100 * kGranule);  // more than a recycler keeps
  for (const Extent& extent : {recycled, large}) {
    ASSERT_TRUE(is_ok(extent.backing->commit(extent.offset + 5, 1)));
  }
  EXPECT_EQ(budget_.taken(), 2 * kPartBytes);
  storage.give_back(large);
  EXPECT_EQ(budget_.taken(), kPartBytes);
  EXPECT_EQ(storage.free_committed_bytes(), 0u);
  // Of the next request of its size, or of no one: then they go back as all the rest does.
  storage.give_back(recycled);
  EXPECT_EQ(storage.free_committed_bytes(), kPartBytes);
  EXPECT_EQ(storage.trim(), kPartBytes);
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(storage.free_committed_bytes(), 0u);
}

TEST_F(ExtentAllocatorTest, RequestsFindRoomWhileMemoryIsGivenBack) {
  ExtentAllocatorOptions options = small_options();
  options.file_size = 64 * kGranule;
  ExtentAllocator storage(options, budget_);
  std::set<BackingFile*> files;
  run_on_threads(2, [&](int index) {
    for (int round = 0; round < 200; ++round) {
      if (index == 0) {
        storage.trim();
      } else {
        const Extent extent = take_committed(storage, 20 * kGranule);
        files.insert(extent.backing);
        storage.give_back(extent);
      }
    }
  });
  EXPECT_EQ(files.size(), 1u);
}

TEST_F(ExtentAllocatorTest, TrimmedExtentsAreOneFreeRangeAgain) {
  ExtentAllocatorOptions options = small_options();
  options.file_size = 8 * kGranule;
  ExtentAllocator storage(options, budget_);
  std::vector<Extent> extents;
  for (int i = 0; i < 8; ++i) extents.push_back(take(storage));
  for (const Extent& extent : extents) storage.give_back(extent);
  storage.trim();
  // The whole first backing file at once: nothing of it is lost or split.
  EXPECT_EQ(take(storage, 8 * kGranule).backing, extents[0].backing);
}

TEST_F(ExtentAllocatorTest, FreeCommittedMemoryIsBounded) {
  ExtentAllocatorOptions options = small_options();
  options.max_free_committed = 4 * kGranule;
  ExtentAllocator storage(options, budget_);
  std::vector<Extent> extents;
  for (int i = 0; i < 28; ++i) extents.push_back(take_committed(storage));
  for (const Extent& extent : extents) storage.give_back(extent);
  // Sixteen wait for the next request of their size; of the twelve others four may stay committed.
  EXPECT_EQ(storage.free_committed_bytes(), 20 * kGranule);
  EXPECT_EQ(budget_.taken(), 20 * kGranule);
}

TEST_F(ExtentAllocatorTest, LargeExtentsGoStraightBackToTheStore) {
  ExtentAllocatorOptions options = small_options();
  options.max_free_committed = 0;
  ExtentAllocator storage(options, budget_);
  const Extent large = take(storage, 130 * kMiB);
  ASSERT_TRUE(is_ok(large.backing->commit(large.offset, kGranule)));
  storage.give_back(large);
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(storage.free_committed_bytes(), 0u);
}

TEST_F(ExtentAllocatorTest, CommittedMemoryThatIsTakenAgainIsNotFree) {
  ExtentAllocator storage(small_options(), budget_);
  const Extent large = take(storage, 130 * kMiB);
  ASSERT_TRUE(is_ok(large.backing->commit(large.offset, 2 * kGranule)));
  storage.give_back(large);
  EXPECT_EQ(storage.free_committed_bytes(), 2 * kGranule);
  ASSERT_TRUE(same_place(take(storage, 130 * kMiB), large));
  EXPECT_EQ(storage.free_committed_bytes(), 0u);
  EXPECT_EQ(storage.trim(), 0u);
  EXPECT_EQ(budget_.taken(), 2 * kGranule);
}

TEST_F(ExtentAllocatorTest, FullStoreIsFollowedByAnother) {
  ExtentAllocatorOptions options = small_options();
  options.file_size = 4 * kGranule;
  ExtentAllocator storage(options, budget_);
  std::set<BackingFile*> stores;
  std::set<std::pair<BackingFile*, uint64_t>> places;
  for (int i = 0; i < 10; ++i) {
    const Extent extent = take(storage);
    stores.insert(extent.backing);
    EXPECT_TRUE(places.insert({extent.backing, extent.offset}).second);
  }
  EXPECT_EQ(stores.size(), 3u);
  // A request larger than a backing file gets a backing file of its size.
  EXPECT_EQ(take(storage, 9 * kGranule).backing->size(), 9 * kGranule);
}

TEST_F(ExtentAllocatorTest, HostThatRefusesALargeStoreIsAskedForASmallerOne) {
  for (const SystemCall call : {SystemCall::kCreateFile, SystemCall::kResizeFile,
                                SystemCall::kReserveAddresses, SystemCall::kMapFile}) {
    ExtentAllocator storage(small_options(), budget_);
    const PlannedFault fault(call, 1, ENOMEM);
    EXPECT_EQ(take(storage).backing->size(), 128 * kMiB);
  }
}

TEST_F(ExtentAllocatorTest, HostThatRefusesTheLeastStoreIsOutOfMemory) {
  ExtentAllocatorOptions options = small_options();
  options.file_size = 0;
  ExtentAllocator storage(options, budget_);
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_TRUE(fails_with(storage.take(kGranule, kHuge), ErrorCode::kOutOfMemory));
  }
  EXPECT_EQ(take(storage).backing->size(), kGranule);
}

TEST_F(ExtentAllocatorTest, SizeThatNoStoreCanHaveIsOutOfMemory) {
  ExtentAllocator storage(small_options(), budget_);
  EXPECT_TRUE(fails_with(storage.take(UINT64_MAX, kHuge), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(fails_with(storage.take(1024 * kTiB, kHuge), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(is_ok(storage.take(kGranule, kHuge)));
}

TEST_F(ExtentAllocatorTest, HugetlbBackingWithoutAPoolIsOutOfMemory) {
  if (platform::has_hugetlb_pool(kHugePage) || platform::has_hugetlb_pool(kGiantPage)) {
    GTEST_SKIP() << "this machine has a hugetlb pool";
  }
  ExtentAllocatorOptions options = small_options();
  options.backing = Backing::kHugetlb;
  ExtentAllocator storage(options, budget_);
  for (const PageKind kind : {PageKind::kNormal, PageKind::kHuge, PageKind::kGiant}) {
    EXPECT_TRUE(fails_with(storage.take(kGiB, kind), ErrorCode::kOutOfMemory));
  }
}

TEST_F(ExtentAllocatorTest, AutomaticBackingWorksWithAndWithoutAPool) {
  ExtentAllocatorOptions options = small_options();
  options.backing = Backing::kAuto;
  ExtentAllocator storage(options, budget_);
  const Extent extent = take_committed(storage);
  EXPECT_EQ(storage.backing().total(), kGranule);
  storage.give_back(extent);
  EXPECT_EQ(storage.trim(), kGranule);
}

TEST_F(ExtentAllocatorTest, ThreadsNeverHaveTheSameBytes) {
  ExtentAllocator storage(small_options(), budget_);
  run_on_threads(4, [&](int index) {
    const auto mark = static_cast<uint8_t>(index + 1);
    for (uint64_t round = 0; round < 50; ++round) {
      const Extent extent = take_committed(storage, (1 + round % 3) * kGranule);
      bytes(extent)[0] = mark;
      bytes(extent)[extent.size - 1] = mark;
      std::this_thread::yield();
      EXPECT_EQ(bytes(extent)[0], mark);
      EXPECT_EQ(bytes(extent)[extent.size - 1], mark);
      storage.give_back(extent);
      if (round % 16 == 15) storage.trim();
      if (round % 16 == 7) storage.give_back_idle();
    }
  });
  EXPECT_EQ(storage.free_committed_bytes(), budget_.taken());
  storage.trim();
  EXPECT_EQ(budget_.taken(), 0u);
}

}  // namespace
}  // namespace understudy
