// SPDX-License-Identifier: Apache-2.0
#include "memory/storage.h"

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

StorageOptions small_options() {
  return {.name = "unit-test",
          .store_size = 256 * kMiB,
          .backing = Backing::kSmall,
          .poison = Poison::kOff,
          .numa_node = std::nullopt,
          .max_free_warm = kGiB};
}

class StorageTest : public testing::Test {
 protected:
  static Extent take(Storage& storage, uint64_t size = kGranule) {
    return value_of(storage.take(size, kHuge));
  }
  static Extent take_warm(Storage& storage, uint64_t size = kGranule) {
    const Extent extent = take(storage, size);
    EXPECT_TRUE(is_ok(extent.store->warm(extent.offset, extent.size)));
    return extent;
  }
  static uint8_t* bytes(const Extent& extent) {
    return static_cast<uint8_t*>(to_pointer(extent.store->alias(extent.offset)));
  }
  static bool same_place(const Extent& a, const Extent& b) {
    return a.store == b.store && a.offset == b.offset;
  }

  HostBudget budget_{HostBudget::Kind::kFixed, 128 * kMiB};
};

TEST_F(StorageTest, ExtentsHaveTheirSizeAndDoNotOverlap) {
  Storage storage(small_options(), budget_);
  std::vector<Extent> extents;
  for (const uint64_t granules : {1U, 3U, 2U, 1U, 8U}) {
    extents.push_back(take(storage, granules * kGranule));
    EXPECT_EQ(extents.back().size, granules * kGranule);
    EXPECT_TRUE(is_aligned(extents.back().offset, kGranule));
  }
  for (const Extent& a : extents) {
    for (const Extent& b : extents) {
      const bool overlap = VirtualRange{a.offset, a.size}.overlaps(VirtualRange{b.offset, b.size});
      EXPECT_EQ(overlap && a.store == b.store, &a == &b);
    }
  }
  EXPECT_EQ(budget_.taken(), 0u);
}

TEST_F(StorageTest, FreedExtentServesTheNextRequestOfItsSizeAsItIs) {
  Storage storage(small_options(), budget_);
  const Extent small = take_warm(storage);
  const Extent large = take_warm(storage, 2 * kGranule);
  bytes(small)[7] = 0x42;
  storage.give_back(small);
  storage.give_back(large);
  EXPECT_EQ(budget_.taken(), 3 * kGranule);

  const Extent again = take(storage);
  EXPECT_TRUE(same_place(again, small));
  EXPECT_TRUE(again.store->is_warm_at(again.offset));
  EXPECT_EQ(bytes(again)[7], 0x42);
  // Neither is cut up nor put together for another size.
  const Extent other = take(storage);
  EXPECT_FALSE((VirtualRange{large.offset, large.size}).contains(other.offset));
  EXPECT_TRUE(same_place(take(storage, 2 * kGranule), large));
}

TEST_F(StorageTest, LastFreedExtentIsUsedFirst) {
  Storage storage(small_options(), budget_);
  const Extent first = take_warm(storage);
  const Extent second = take_warm(storage);
  storage.give_back(first);
  storage.give_back(second);
  EXPECT_TRUE(same_place(take(storage), second));
  EXPECT_TRUE(same_place(take(storage), first));
}

TEST_F(StorageTest, PoisonedStorageShowsNoOldBytes) {
  StorageOptions options = small_options();
  options.poison = Poison::kOn;
  Storage storage(options, budget_);
  const Extent extent = take_warm(storage);
  std::fill_n(bytes(extent), kGranule, uint8_t{1});
  storage.give_back(extent);
  const Extent again = take(storage);
  ASSERT_TRUE(same_place(again, extent));
  EXPECT_EQ(std::count(bytes(again), bytes(again) + kGranule, Store::kPoisonByte), kGranule);
}

TEST_F(StorageTest, TrimGivesAllFreeMemoryBackAndSaysHowMuch) {
  Storage storage(small_options(), budget_);
  const Extent kept = take_warm(storage);
  const Extent freed = take_warm(storage, 2 * kGranule);
  const Extent cold = take(storage, 4 * kGranule);
  bytes(kept)[0] = 9;
  storage.give_back(freed);
  storage.give_back(cold);
  EXPECT_EQ(storage.free_warm_bytes(), 2 * kGranule);
  EXPECT_EQ(storage.backing().total(), 3 * kGranule);

  EXPECT_EQ(storage.trim(), 2 * kGranule);
  EXPECT_EQ(storage.free_warm_bytes(), 0u);
  EXPECT_EQ(storage.backing().total(), kGranule);
  EXPECT_EQ(budget_.taken(), kGranule);
  EXPECT_EQ(bytes(kept)[0], 9);
  EXPECT_EQ(storage.trim(), 0u);
}

TEST_F(StorageTest, TrimReachesWhatOtherThreadsFreed) {
  Storage storage(small_options(), budget_);
  run_on_threads(4, [&](int) { storage.give_back(take_warm(storage)); });
  const uint64_t freed = budget_.taken();
  EXPECT_GE(freed, kGranule);
  EXPECT_EQ(storage.free_warm_bytes(), freed);
  EXPECT_EQ(storage.trim(), freed);
  EXPECT_EQ(budget_.taken(), 0u);
}

TEST_F(StorageTest, TrimCountsOnlyWhatTheHostTookBack) {
  Storage storage(small_options(), budget_);
  storage.give_back(take_warm(storage));
  {
    const PlannedFault fault(SystemCall::kDiscard, 1, EIO);
    EXPECT_EQ(storage.trim(), 0u);
  }
  EXPECT_EQ(storage.free_warm_bytes(), kGranule);
  EXPECT_EQ(storage.trim(), kGranule);
  EXPECT_EQ(budget_.taken(), 0u);
}

TEST_F(StorageTest, TrimmedExtentsAreOneFreeRangeAgain) {
  StorageOptions options = small_options();
  options.store_size = 8 * kGranule;
  Storage storage(options, budget_);
  std::vector<Extent> extents;
  for (int i = 0; i < 8; ++i) extents.push_back(take(storage));
  for (const Extent& extent : extents) storage.give_back(extent);
  storage.trim();
  // The whole first store at once: nothing of it is lost or split.
  EXPECT_EQ(take(storage, 8 * kGranule).store, extents[0].store);
}

TEST_F(StorageTest, FreeWarmMemoryIsBounded) {
  StorageOptions options = small_options();
  options.max_free_warm = 4 * kGranule;
  Storage storage(options, budget_);
  std::vector<Extent> extents;
  for (int i = 0; i < 28; ++i) extents.push_back(take_warm(storage));
  for (const Extent& extent : extents) storage.give_back(extent);
  // Sixteen wait for the next request of their size; of the twelve others four may stay warm.
  EXPECT_EQ(storage.free_warm_bytes(), 20 * kGranule);
  EXPECT_EQ(budget_.taken(), 20 * kGranule);
}

TEST_F(StorageTest, LargeExtentsGoStraightBackToTheStore) {
  StorageOptions options = small_options();
  options.max_free_warm = 0;
  Storage storage(options, budget_);
  const Extent large = take(storage, 130 * kMiB);
  ASSERT_TRUE(is_ok(large.store->warm(large.offset, kGranule)));
  storage.give_back(large);
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(storage.free_warm_bytes(), 0u);
}

TEST_F(StorageTest, WarmMemoryThatIsTakenAgainIsNotFree) {
  Storage storage(small_options(), budget_);
  const Extent large = take(storage, 130 * kMiB);
  ASSERT_TRUE(is_ok(large.store->warm(large.offset, 2 * kGranule)));
  storage.give_back(large);
  EXPECT_EQ(storage.free_warm_bytes(), 2 * kGranule);
  ASSERT_TRUE(same_place(take(storage, 130 * kMiB), large));
  EXPECT_EQ(storage.free_warm_bytes(), 0u);
  EXPECT_EQ(storage.trim(), 0u);
  EXPECT_EQ(budget_.taken(), 2 * kGranule);
}

TEST_F(StorageTest, FullStoreIsFollowedByAnother) {
  StorageOptions options = small_options();
  options.store_size = 4 * kGranule;
  Storage storage(options, budget_);
  std::set<Store*> stores;
  std::set<std::pair<Store*, uint64_t>> places;
  for (int i = 0; i < 10; ++i) {
    const Extent extent = take(storage);
    stores.insert(extent.store);
    EXPECT_TRUE(places.insert({extent.store, extent.offset}).second);
  }
  EXPECT_EQ(stores.size(), 3u);
  // A request larger than a store gets a store of its size.
  EXPECT_EQ(take(storage, 9 * kGranule).store->size(), 9 * kGranule);
}

TEST_F(StorageTest, HostThatRefusesALargeStoreIsAskedForASmallerOne) {
  for (const SystemCall call : {SystemCall::kCreateFile, SystemCall::kResizeFile,
                                SystemCall::kReserveAddresses, SystemCall::kMapFile}) {
    Storage storage(small_options(), budget_);
    const PlannedFault fault(call, 1, ENOMEM);
    EXPECT_EQ(take(storage).store->size(), 128 * kMiB);
  }
}

TEST_F(StorageTest, HostThatRefusesTheLeastStoreIsOutOfMemory) {
  StorageOptions options = small_options();
  options.store_size = 0;
  Storage storage(options, budget_);
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_TRUE(fails_with(storage.take(kGranule, kHuge), ErrorCode::kOutOfMemory));
  }
  EXPECT_EQ(take(storage).store->size(), kGranule);
}

TEST_F(StorageTest, SizeThatNoStoreCanHaveIsOutOfMemory) {
  Storage storage(small_options(), budget_);
  EXPECT_TRUE(fails_with(storage.take(UINT64_MAX, kHuge), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(fails_with(storage.take(1024 * kTiB, kHuge), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(is_ok(storage.take(kGranule, kHuge)));
}

TEST_F(StorageTest, HugetlbBackingWithoutAPoolIsOutOfMemory) {
  if (platform::has_hugetlb_pool(kHugePage) || platform::has_hugetlb_pool(kGiantPage)) {
    GTEST_SKIP() << "this machine has a hugetlb pool";
  }
  StorageOptions options = small_options();
  options.backing = Backing::kHugetlb;
  Storage storage(options, budget_);
  for (const PageKind kind : {PageKind::kNormal, PageKind::kHuge, PageKind::kGiant}) {
    EXPECT_TRUE(fails_with(storage.take(kGiB, kind), ErrorCode::kOutOfMemory));
  }
}

TEST_F(StorageTest, AutomaticBackingWorksWithAndWithoutAPool) {
  StorageOptions options = small_options();
  options.backing = Backing::kAuto;
  Storage storage(options, budget_);
  const Extent extent = take_warm(storage);
  EXPECT_EQ(storage.backing().total(), kGranule);
  storage.give_back(extent);
  EXPECT_EQ(storage.trim(), kGranule);
}

TEST_F(StorageTest, ThreadsNeverHaveTheSameBytes) {
  Storage storage(small_options(), budget_);
  run_on_threads(4, [&](int index) {
    const auto mark = static_cast<uint8_t>(index + 1);
    for (uint64_t round = 0; round < 50; ++round) {
      const Extent extent = take_warm(storage, (1 + round % 3) * kGranule);
      bytes(extent)[0] = mark;
      bytes(extent)[extent.size - 1] = mark;
      std::this_thread::yield();
      EXPECT_EQ(bytes(extent)[0], mark);
      EXPECT_EQ(bytes(extent)[extent.size - 1], mark);
      storage.give_back(extent);
      if (round % 16 == 15) storage.trim();
    }
  });
  EXPECT_EQ(storage.free_warm_bytes(), budget_.taken());
  storage.trim();
  EXPECT_EQ(budget_.taken(), 0u);
}

}  // namespace
}  // namespace understudy
