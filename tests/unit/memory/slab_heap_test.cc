// SPDX-License-Identifier: Apache-2.0
#include "memory/slab_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "memory/hazard_pointers.h"
#include "unit/expect_result.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

constexpr uint64_t kHalfSlab = kMaxSlotBytes;
constexpr unsigned kKeptWhenEmpty = 8;

// Slabs at addresses without memory; remembers which are open.
class FakeSource final : public SlabSource {
 public:
  Result<void> open(Slab& slab, unsigned slot_size) override {
    MutexLock lock(mutex_);
    if (fails_) return Error::format(ErrorCode::kOutOfMemory, "no slab today");
    slab.divide(next_, slot_size);
    open_[next_] = &slab;
    next_ += kGranule;
    return {};
  }
  bool close(Slab& slab) noexcept override {
    MutexLock lock(mutex_);
    EXPECT_EQ(slab.live, 0u);
    EXPECT_FALSE(slab.is_pinned());
    EXPECT_EQ(open_.erase(slab.base.load()), 1u);
    return true;
  }

  void fail(bool fails) {
    MutexLock lock(mutex_);
    fails_ = fails;
  }
  size_t count() {
    MutexLock lock(mutex_);
    return open_.size();
  }
  Slab& around(VirtualAddress address) {
    MutexLock lock(mutex_);
    return *open_.at(align_down(address, kGranule));
  }

 private:
  Mutex mutex_{LockRank::kExtentAllocator};
  bool fails_ US_GUARDED_BY(mutex_) = false;
  VirtualAddress next_ US_GUARDED_BY(mutex_) = 100 * kGranule;
  std::map<VirtualAddress, Slab*> open_ US_GUARDED_BY(mutex_);
};

class SlabHeapTest : public testing::Test {
 protected:
  VirtualAddress allocate(uint64_t usable, uint8_t tag = 1) {
    return value_of(heap_.allocate(usable, tag));
  }
  std::optional<SlotRecord> free(VirtualAddress address) {
    return heap_.free(source_.around(address), address);
  }
  const void* record_of(VirtualAddress address) {
    const Slab& slab = source_.around(address);
    return &slab.records[slab.slot_around(address)];
  }

  FakeSource source_;
  ObjectPool<Slab> slabs_;
  SlabHeap heap_{source_, slabs_};
};

TEST_F(SlabHeapTest, SlotsOfASlabAreApartAndAtMultiplesOfPages) {
  std::set<VirtualAddress> seen;
  for (unsigned i = 0; i < kPagesPerSlab; ++i) seen.insert(allocate(100));
  EXPECT_EQ(seen.size(), kPagesPerSlab);
  for (const VirtualAddress address : seen) EXPECT_TRUE(is_aligned(address, kNormalPage));
  EXPECT_EQ(source_.count(), 1u);
  allocate(100);
  EXPECT_EQ(source_.count(), 2u);
}

TEST_F(SlabHeapTest, LastSlotFreedIsTheFirstUsedAgain) {
  const VirtualAddress first = allocate(100);
  const VirtualAddress second = allocate(100);
  allocate(100);
  free(first);
  free(second);
  EXPECT_EQ(allocate(100), second);
  EXPECT_EQ(allocate(100), first);
}

TEST_F(SlabHeapTest, FreeGivesTheRecordBack) {
  const auto record = free(allocate(5000, 77));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->usable(), 5000u);
  EXPECT_EQ(record->tag(), 77);
}

TEST_F(SlabHeapTest, InteriorAndSecondFreesAreRefused) {
  const VirtualAddress address = allocate(3 * kNormalPage);
  allocate(3 * kNormalPage);
  Slab& slab = source_.around(address);
  EXPECT_FALSE(heap_.free(slab, address + 1));
  EXPECT_FALSE(heap_.free(slab, address + kNormalPage));
  EXPECT_FALSE(heap_.free(slab, address + kGranule));
  EXPECT_TRUE(heap_.free(slab, address));
  EXPECT_FALSE(heap_.free(slab, address));
  EXPECT_EQ(slab.live, 1u);
}

TEST_F(SlabHeapTest, PagesBehindTheLastSlotCannotBeFreed) {
  const VirtualAddress address = allocate(170 * kNormalPage);
  Slab& slab = source_.around(address);
  EXPECT_FALSE(heap_.free(slab, slab.base + 510 * kNormalPage));
}

TEST_F(SlabHeapTest, AnotherHeapDoesNotFreeIt) {
  SlabHeap other(source_, slabs_);
  const VirtualAddress address = allocate(100);
  EXPECT_FALSE(other.free(source_.around(address), address));
  EXPECT_TRUE(free(address));
}

TEST_F(SlabHeapTest, OneEmptySlabOfASizeIsKept) {
  std::vector<VirtualAddress> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(allocate(kHalfSlab));
  EXPECT_EQ(source_.count(), 5u);
  for (const VirtualAddress block : blocks) EXPECT_TRUE(free(block));
  EXPECT_EQ(source_.count(), 1u);
  allocate(kHalfSlab);
  EXPECT_EQ(source_.count(), 1u);
}

TEST_F(SlabHeapTest, EmptySlabsOfAllSizesTogetherAreBounded) {
  std::vector<VirtualAddress> blocks;
  for (const unsigned pages : kSlotPages) blocks.push_back(allocate(pages * kNormalPage));
  for (const VirtualAddress block : blocks) EXPECT_TRUE(free(block));
  EXPECT_EQ(source_.count(), kKeptWhenEmpty);
}

TEST_F(SlabHeapTest, TrimGivesEmptySlabsBackAndNoOthers) {
  const VirtualAddress kept = allocate(100);
  free(allocate(kHalfSlab));
  free(allocate(5 * kNormalPage));
  EXPECT_EQ(source_.count(), 3u);
  heap_.trim();
  EXPECT_EQ(source_.count(), 1u);
  EXPECT_TRUE(free(kept));
  heap_.trim();
  EXPECT_EQ(source_.count(), 0u);
}

TEST_F(SlabHeapTest, SlabsThatStayEmptyFromOneLookToTheNextAreGivenBack) {
  const VirtualAddress kept = allocate(100);
  free(allocate(kHalfSlab));
  free(allocate(5 * kNormalPage));
  EXPECT_TRUE(heap_.give_back_idle());
  EXPECT_EQ(source_.count(), 3u);
  // One of them is used for a moment: one of the two was never wanted.
  free(allocate(kHalfSlab));
  EXPECT_TRUE(heap_.give_back_idle());
  EXPECT_EQ(source_.count(), 2u);
  EXPECT_FALSE(heap_.give_back_idle());
  EXPECT_EQ(source_.count(), 1u);
  EXPECT_TRUE(free(kept));
}

TEST_F(SlabHeapTest, FreeAllTellsOfEveryAllocation) {
  uint64_t expected = 0;
  for (uint64_t usable = 1; usable < kMaxSlotBytes; usable += 9999) {
    allocate(usable);
    expected += usable;
  }
  free(allocate(64));
  uint64_t told = 0;
  heap_.free_all([&](VirtualAddress, SlotRecord record) { told += record.usable(); });
  EXPECT_EQ(told, expected);
  heap_.free_all([](VirtualAddress, SlotRecord) { ADD_FAILURE() << "nothing is left"; });
  heap_.trim();
  EXPECT_EQ(source_.count(), 0u);
}

TEST_F(SlabHeapTest, PinnedSlotIsPassedOverUntilThePinEnds) {
  const VirtualAddress pinned = allocate(100);
  const VirtualAddress other = allocate(100);
  HazardPin pin;
  pin.publish(record_of(pinned));
  EXPECT_TRUE(free(other));
  EXPECT_TRUE(free(pinned));
  EXPECT_EQ(allocate(100), other);
  for (unsigned i = 2; i < kPagesPerSlab; ++i) EXPECT_NE(allocate(100), pinned);
  EXPECT_NE(allocate(100), pinned);  // rather a new slab
  EXPECT_EQ(source_.count(), 2u);
  pin.clear();
  // Slabs with free slots are asked last in, first out.
  bool used_again = false;
  for (unsigned i = 0; i < kPagesPerSlab && !used_again; ++i) used_again = allocate(100) == pinned;
  EXPECT_TRUE(used_again);
}

TEST_F(SlabHeapTest, SlabWithAPinnedSlotIsNotGivenBack) {
  const VirtualAddress address = allocate(kHalfSlab);
  HazardPin pin;
  pin.publish(record_of(address));
  EXPECT_TRUE(free(address));
  heap_.trim();
  EXPECT_EQ(source_.count(), 1u);
  pin.clear();
  heap_.trim();
  EXPECT_EQ(source_.count(), 0u);
}

TEST_F(SlabHeapTest, FreeAllLeavesAPinnedSlabToTrim) {
  const VirtualAddress address = allocate(kHalfSlab);
  allocate(kHalfSlab);
  HazardPin pin;
  pin.publish(record_of(address));
  int freed = 0;
  heap_.free_all([&](VirtualAddress, SlotRecord) { ++freed; });
  EXPECT_EQ(freed, 2);
  heap_.trim();
  EXPECT_EQ(source_.count(), 1u);
  pin.clear();
  heap_.trim();
  EXPECT_EQ(source_.count(), 0u);
}

TEST_F(SlabHeapTest, AnotherThreadFreesToTheSlabsHome) {
  const VirtualAddress address = allocate(100);
  const VirtualAddress stays = allocate(100);
  std::thread([&] { EXPECT_TRUE(free(address)); }).join();
  EXPECT_EQ(allocate(100), address);
  EXPECT_TRUE(free(stays));
}

TEST_F(SlabHeapTest, FailureOfTheSourceTakesNothing) {
  source_.fail(true);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(fails_with(heap_.allocate(100, 1), ErrorCode::kOutOfMemory));
  }
  source_.fail(false);
  const VirtualAddress address = allocate(100);
  source_.fail(true);
  EXPECT_NE(allocate(100), address);  // from the slab that is open
}

TEST_F(SlabHeapTest, ThreadsTogetherLoseNothing) {
  run_on_threads(4, [&](int thread) {
    std::vector<VirtualAddress> mine;
    for (unsigned i = 0; i < 1000; ++i) {
      mine.push_back(allocate(1 + (i * 7919 + static_cast<unsigned>(thread)) % kMaxSlotBytes));
      if (mine.size() < 20) continue;
      EXPECT_TRUE(free(mine[i % mine.size()]));
      mine.erase(mine.begin() + static_cast<ptrdiff_t>(i % mine.size()));
    }
    for (const VirtualAddress address : mine) EXPECT_TRUE(free(address));
  });
  heap_.trim();
  EXPECT_EQ(source_.count(), 0u);
}

}  // namespace
}  // namespace understudy
