// SPDX-License-Identifier: Apache-2.0
#include "memory/slot_sizes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "memory/slab.h"

namespace understudy {
namespace {

uint64_t bytes_of(unsigned slot_size) { return kSlotPages[slot_size] * kNormalPage; }

TEST(SlotSizes, EverySizeFitsAndNoSmallerSlotWouldDo) {
  for (uint64_t bytes = 1; bytes <= kMaxSlotBytes; ++bytes) {
    const unsigned slot_size = slot_size_for(bytes);
    ASSERT_LT(slot_size, kSlotSizes) << bytes;
    ASSERT_GE(bytes_of(slot_size), bytes);
    if (slot_size > 0) {
      ASSERT_LT(bytes_of(slot_size - 1), bytes);
    }
  }
}

TEST(SlotSizes, GrowFromOnePageToHalfASlab) {
  EXPECT_EQ(kSlotPages.front(), 1);
  EXPECT_EQ(bytes_of(kSlotSizes - 1), kMaxSlotBytes);
  for (unsigned i = 1; i < kSlotSizes; ++i) EXPECT_GT(kSlotPages[i], kSlotPages[i - 1]);
}

TEST(SlotSizes, LargeSlotsLeaveLessThanOneSixteenthOfASlab) {
  for (const unsigned pages : kSlotPages)
    EXPECT_LE(kPagesPerSlab % pages, kPagesPerSlab / 16) << pages;
}

TEST(Slab, SlotAroundIsExactForEveryPageOfEverySlotSize) {
  const auto slab = std::make_unique<Slab>();
  constexpr VirtualAddress kBase = 7 * kGranule;
  for (unsigned slot_size = 0; slot_size < kSlotSizes; ++slot_size) {
    slab->divide(kBase, slot_size);
    for (uint32_t page = 0; page < kPagesPerSlab; ++page) {
      const uint32_t slot = page / kSlotPages[slot_size];
      const VirtualAddress start = kBase + page * kNormalPage;
      ASSERT_EQ(slab->slot_around(start), slot) << kSlotPages[slot_size] << ", page " << page;
      ASSERT_EQ(slab->slot_around(start + kNormalPage - 1), slot);
      ASSERT_EQ(slab->slot_start(slot), kBase + slot * bytes_of(slot_size));
    }
  }
}

TEST(Slab, DividedSlabIsAChainOfAllItsSlots) {
  const auto slab = std::make_unique<Slab>();
  for (unsigned slot_size = 0; slot_size < kSlotSizes; ++slot_size) {
    slab->divide(kGranule, slot_size);
    uint32_t seen = 0;
    for (uint32_t slot = slab->first_free; slot != SlotRecord::kNoSlot;
         slot = slab->record(slot).next_free()) {
      EXPECT_FALSE(slab->record(slot).live());
      ++seen;
    }
    EXPECT_EQ(seen, kPagesPerSlab / kSlotPages[slot_size]);
  }
}

TEST(SlotRecord, LiveRecordsKeepSizeAndTag) {
  for (const uint64_t usable : {uint64_t{1}, kNormalPage, kMaxSlotBytes}) {
    for (const uint8_t tag : {uint8_t{0}, uint8_t{33}, uint8_t{255}}) {
      const SlotRecord record = SlotRecord::make_live(usable, tag);
      EXPECT_TRUE(record.live());
      EXPECT_EQ(record.usable(), usable);
      EXPECT_EQ(record.tag(), tag);
    }
  }
  for (const SlotRecord free : {SlotRecord::make_fresh(5), SlotRecord::make_freed(5)}) {
    EXPECT_FALSE(free.live());
    EXPECT_EQ(free.next_free(), 5u);
    EXPECT_EQ(free.with_next_free(7).next_free(), 7u);
    EXPECT_EQ(free.with_next_free(7).was_freed(), free.was_freed());
  }
  EXPECT_FALSE(SlotRecord::make_fresh(SlotRecord::kNoSlot).was_freed());
  EXPECT_TRUE(SlotRecord::make_freed(SlotRecord::kNoSlot).was_freed());
  EXPECT_TRUE(SlotRecord::make_kept().was_freed());
}

}  // namespace
}  // namespace understudy
