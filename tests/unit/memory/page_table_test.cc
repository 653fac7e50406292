// SPDX-License-Identifier: Apache-2.0
#include "memory/page_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "unit/run_on_threads.h"

namespace understudy {
namespace {

constexpr VirtualAddress kBase = 32 * kTiB;
constexpr VirtualAddress kHost = 100 * kTiB;

const auto never = [] { return false; };
const auto all_cold = [](uint64_t) { return false; };
const auto all_committed = [](uint64_t) { return true; };

template <typename IsCommitted>
void enter(PageTable& table, VirtualRange range, PageEntry first, IsCommitted is_committed) {
  table.prepare(range);
  table.set(range, first, is_committed);
}
void enter(PageTable& table, VirtualRange range, PageEntry first) {
  enter(table, range, first, all_cold);
}

PageEntry entry_of(uint32_t mapping, VirtualAddress host = kHost) {
  return PageEntry::make(host, mapping, 0, true);
}

TEST(PageTable, KnowsNothingAtFirst) {
  const PageTable table;
  for (const VirtualAddress address : {VirtualAddress{0}, kBase, PageTable::kEnd - 1,
                                       PageTable::kEnd, VirtualAddress{UINT64_MAX}}) {
    EXPECT_FALSE(table.look_up(address).present());
  }
  EXPECT_TRUE(table.is_empty({kBase, 4 * kGiB}));
}

TEST(PageTable, EveryByteOfARangeLeadsToItsGranule) {
  PageTable table;
  const VirtualRange range{kBase + 5 * kGranule, 3 * kGranule};
  enter(table, range, entry_of(9));
  EXPECT_FALSE(table.look_up(range.base - 1).present());
  EXPECT_FALSE(table.look_up(range.end()).present());
  for (uint64_t n = 0; n < 3; ++n) {
    const PageEntry expected = entry_of(9).advanced(n);
    EXPECT_EQ(table.look_up(range.base + n * kGranule), expected);
    EXPECT_EQ(table.look_up(range.base + n * kGranule + kGranule - 1), expected);
  }
}

TEST(PageTable, ClearedRangeIsGoneAndItsNeighboursStay) {
  PageTable table;
  enter(table, {kBase, kGranule}, entry_of(1));
  enter(table, {kBase + kGranule, kGranule}, entry_of(2));
  enter(table, {kBase + 2 * kGranule, kGranule}, entry_of(3));
  table.clear({kBase + kGranule, kGranule});
  EXPECT_EQ(table.look_up(kBase), entry_of(1));
  EXPECT_FALSE(table.look_up(kBase + kGranule).present());
  EXPECT_EQ(table.look_up(kBase + 2 * kGranule), entry_of(3));
}

TEST(PageTable, RangeGoesOnAcrossBordersOfGibibytes) {
  PageTable table;
  const VirtualRange range{kBase + kGiB - 2 * kGranule, 2 * kGiB + 4 * kGranule};
  enter(table, range, entry_of(4));
  for (uint64_t n = 0; n < range.size / kGranule; ++n) {
    ASSERT_EQ(table.look_up(range.base + n * kGranule), entry_of(4).advanced(n)) << n;
  }
  EXPECT_FALSE(table.look_up(range.base - 1).present());
  EXPECT_FALSE(table.look_up(range.end()).present());
  table.clear(range);
  EXPECT_TRUE(table.is_empty({kBase, 4 * kGiB}));
}

TEST(PageTable, WholeGibibytesBehaveAsTheirGranules) {
  PageTable table;
  const VirtualRange range{kBase, 2 * kGiB};
  enter(table, range, entry_of(5));
  EXPECT_EQ(table.look_up(kBase + 7 * kGranule + 3), entry_of(5).advanced(7));
  EXPECT_EQ(table.look_up(kBase + kGiB + 511 * kGranule), entry_of(5).advanced(1023));
  EXPECT_FALSE(table.is_empty({kBase + kGiB + kGranule, kGranule}));
  EXPECT_FALSE(table.look_up(range.end()).present());
  table.clear(range);
  EXPECT_FALSE(table.look_up(kBase).present());
  // The same addresses serve small ranges afterwards, and a whole GiB again.
  enter(table, {kBase + kGranule, kGranule}, entry_of(6));
  EXPECT_EQ(table.look_up(kBase + kGranule), entry_of(6));
  table.clear({kBase + kGranule, kGranule});
  enter(table, range, entry_of(7));
  EXPECT_EQ(table.look_up(kBase + 511 * kGranule), entry_of(7).advanced(511));
}

TEST(PageTable, WhatEndedLeavesAMark) {
  PageTable table;
  const VirtualRange whole{kBase, kGiB};
  EXPECT_FALSE(table.look_up(kBase).has_ended());
  enter(table, whole, entry_of(1));
  table.clear(whole);
  EXPECT_TRUE(table.look_up(kBase + 5 * kGranule + 1).has_ended());
  // Smaller ranges afterwards leave the marks around them.
  enter(table, {kBase + kGranule, kGranule}, entry_of(2));
  EXPECT_FALSE(table.look_up(kBase + kGranule).has_ended());
  EXPECT_TRUE(table.look_up(kBase + 2 * kGranule).has_ended());
  EXPECT_FALSE(table.look_up(kBase + kGiB).has_ended());
  EXPECT_TRUE(table.is_empty({kBase + 2 * kGranule, kGranule}));
}

TEST(PageTable, LastGibibyteOfAllCanBeUsed) {
  PageTable table;
  const VirtualRange last{PageTable::kEnd - kGranule, kGranule};
  enter(table, last, entry_of(8));
  EXPECT_EQ(table.look_up(PageTable::kEnd - 1), entry_of(8));
  EXPECT_FALSE(table.look_up(PageTable::kEnd).present());
}

TEST(PageTable, IsEmptySeesASingleGranule) {
  PageTable table;
  enter(table, {kBase + kGiB, kGranule}, entry_of(1));
  EXPECT_FALSE(table.is_empty({kBase, 2 * kGiB}));
  EXPECT_FALSE(table.is_empty({kBase + kGiB, kGranule}));
  EXPECT_TRUE(table.is_empty({kBase, kGiB}));
  EXPECT_TRUE(table.is_empty({kBase + kGiB + kGranule, kGiB}));
}

TEST(PageTable, CommittedGranulesAreEnteredAsSuch) {
  PageTable table;
  enter(table, {kBase, 4 * kGranule}, entry_of(1), [](uint64_t n) { return n % 2 == 1; });
  EXPECT_FALSE(table.look_up(kBase).commit());
  EXPECT_TRUE(table.look_up(kBase + kGranule).commit());
  EXPECT_FALSE(table.look_up(kBase + 2 * kGranule).commit());
  EXPECT_TRUE(table.look_up(kBase + 3 * kGranule).commit());
}

TEST(PageTable, WholeGibibyteIsCommittedOnlyIfAllOfItIs) {
  PageTable table;
  enter(table, {kBase, kGiB}, entry_of(1), all_committed);
  EXPECT_TRUE(table.look_up(kBase + kGranule).commit());
  enter(table, {kBase + kGiB, kGiB}, entry_of(2), [](uint64_t n) { return n != 511; });
  EXPECT_FALSE(table.look_up(kBase + kGiB).commit());
  EXPECT_FALSE(table.look_up(kBase + 2 * kGiB - 1).commit());
}

TEST(PageTable, NoteCommittedMarksOneGranule) {
  PageTable table;
  enter(table, {kBase, 2 * kGranule}, entry_of(1));
  table.note_committed(kBase + kGranule + 77, table.look_up(kBase + kGranule), never);
  EXPECT_FALSE(table.look_up(kBase).commit());
  EXPECT_EQ(table.look_up(kBase + kGranule), entry_of(1).advanced(1).with_committed());
}

TEST(PageTable, NoteCommittedOfAnEntryThatIsGoneDoesNothing) {
  PageTable table;
  enter(table, {kBase, kGranule}, entry_of(1));
  const PageEntry seen = table.look_up(kBase);
  table.clear({kBase, kGranule});
  table.note_committed(kBase, seen, never);
  EXPECT_FALSE(table.look_up(kBase).present());
  enter(table, {kBase, kGranule}, entry_of(2));
  table.note_committed(kBase, seen, never);
  EXPECT_EQ(table.look_up(kBase), entry_of(2));
  // Where there never was anything.
  table.note_committed(kBase + 10 * kGiB, seen, never);
  EXPECT_FALSE(table.look_up(kBase + 10 * kGiB).present());
}

TEST(PageTable, NoteCommittedMarksAWholeGibibyteOnlyIfAllOfItIsCommitted) {
  PageTable table;
  enter(table, {kBase, kGiB}, entry_of(1));
  const VirtualAddress address = kBase + 3 * kGranule;
  const PageEntry seen = table.look_up(address);
  table.note_committed(address, seen, never);
  EXPECT_FALSE(table.look_up(address).commit());
  EXPECT_FALSE(table.look_up(kBase).commit());
  table.note_committed(address, seen, [] { return true; });
  EXPECT_EQ(table.look_up(address), seen.with_committed());
  EXPECT_TRUE(table.look_up(kBase).commit());
  EXPECT_TRUE(table.look_up(kBase + kGiB - 1).commit());
}

TEST(PageTable, NoteCommittedOfAWholeGibibyteThatIsGoneDoesNothing) {
  PageTable table;
  enter(table, {kBase, kGiB}, entry_of(1));
  const PageEntry seen = table.look_up(kBase + kGranule);
  table.clear({kBase, kGiB});
  enter(table, {kBase, kGiB}, entry_of(2));
  table.note_committed(kBase + kGranule, seen, [] { return true; });
  EXPECT_EQ(table.look_up(kBase), entry_of(2));
}

TEST(PageTable, LookHoldsUntilItsEntryEnds) {
  PageTable table;
  // A granule, and one inside an entry that covers a whole GiB.
  for (const VirtualRange range :
       {VirtualRange{kBase + kGranule, kGranule}, VirtualRange{kBase + 2 * kGiB, kGiB}}) {
    enter(table, range, entry_of(3));
    const VirtualAddress last = range.end() - 1;
    const PageTable::Look look = table.look_at(last);
    EXPECT_EQ(look.entry(), table.look_up(last));
    EXPECT_TRUE(look.still_holds());
    table.note_committed(last, look.entry(), [] { return true; });
    EXPECT_TRUE(look.still_holds());
    table.clear(range);
    EXPECT_FALSE(look.still_holds());
    enter(table, range, entry_of(4));
    EXPECT_FALSE(look.still_holds());
  }
}

TEST(PageTable, LookAtAWholeGibibyteDoesNotHoldForGranulesThatFollowIt) {
  PageTable table;
  const VirtualRange range{kBase, kGiB};
  enter(table, range, entry_of(3));
  const PageTable::Look look = table.look_at(kBase + 5 * kGranule);
  table.clear(range);
  enter(table, {kBase + 5 * kGranule, kGranule}, entry_of(3).advanced(5));
  EXPECT_TRUE(table.look_up(kBase + 5 * kGranule).present());
  EXPECT_FALSE(look.still_holds());
}

TEST(PageTable, GrantedAccessReachesTheRangeAndKeepsItCommitted) {
  PageTable table;
  const PageEntry closed = PageEntry::make(kHost, 1, 0, false);
  enter(table, {kBase, kGiB}, closed);
  enter(table, {kBase + kGiB, 2 * kGranule}, closed, all_committed);
  enter(table, {kBase + kGiB + 2 * kGranule, kGranule}, closed);
  table.grant_owner_access({kBase, kGiB});
  table.grant_owner_access({kBase + kGiB, 2 * kGranule});
  EXPECT_TRUE(table.look_up(kBase + kGranule).owner_access());
  EXPECT_TRUE(table.look_up(kBase + kGiB).owner_access());
  EXPECT_TRUE(table.look_up(kBase + kGiB + kGranule).owner_access());
  EXPECT_TRUE(table.look_up(kBase + kGiB).commit());
  EXPECT_FALSE(table.look_up(kBase + kGiB + 2 * kGranule).owner_access());
}

// Ranges come and go at random over a few GiB; a std::map of granules is always right.
TEST(PageTable, AgreesWithASimpleModel) {
  PageTable table;
  std::map<VirtualAddress, PageEntry> model;
  std::vector<VirtualRange> ranges;
  std::mt19937_64 random(20240521);
  constexpr uint64_t kGranules = 4 * kGiB / kGranule;

  const auto model_is_empty = [&](VirtualRange range) {
    const auto next = std::find_if(model.lower_bound(range.base), model.end(),
                                   [](const auto& each) { return each.second.present(); });
    return next == model.end() || next->first >= range.end();
  };
  for (uint32_t step = 0; step < 400; ++step) {
    if (ranges.size() > 8 || (!ranges.empty() && random() % 3 == 0)) {
      const size_t victim = random() % ranges.size();
      const VirtualRange range = ranges[victim];
      ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(victim));
      table.clear(range);
      for (auto each = model.lower_bound(range.base); each != model.lower_bound(range.end());
           ++each) {
        each->second = PageEntry::ended();
      }
    } else {
      const bool whole = random() % 4 == 0;
      const uint64_t first = whole ? random() % 4 * (kGiB / kGranule) : random() % kGranules;
      const uint64_t count = whole ? kGiB / kGranule : 1 + random() % (kGranules - first);
      const VirtualRange range{kBase + first * kGranule, count * kGranule};
      ASSERT_EQ(table.is_empty(range), model_is_empty(range));
      if (!model_is_empty(range)) continue;
      const PageEntry entry = entry_of(step, kHost + step * 8 * kGiB);
      enter(table, range, entry);
      for (uint64_t n = 0; n < count; ++n) {
        model[range.base + n * kGranule] = entry.advanced(n);
      }
      ranges.push_back(range);
    }
    for (int look = 0; look < 64; ++look) {
      const VirtualAddress granule = kBase + random() % kGranules * kGranule;
      const auto expected = model.find(granule);
      ASSERT_EQ(table.look_up(granule + random() % kGranule),
                expected == model.end() ? PageEntry() : expected->second);
    }
  }
}

// Small reservations share a leaf: their threads may make it at the same moment.
TEST(PageTable, ThreadsMayWorkOnNeighbouringRanges) {
  PageTable table;
  run_on_threads(4, [&](int index) {
    const auto number = static_cast<uint32_t>(index);
    for (uint64_t round = 0; round < 50; ++round) {
      const VirtualRange range{kBase + round * kGiB + number * kGranule, kGranule};
      enter(table, range, entry_of(number));
      EXPECT_EQ(table.look_up(range.base).mapping(), number);
      if (round % 2 == 0) table.clear(range);
      EXPECT_EQ(table.look_up(range.base).present(), round % 2 == 1);
    }
  });
  EXPECT_TRUE(table.is_empty({kBase, kGiB}));
  EXPECT_FALSE(table.is_empty({kBase + kGiB, kGranule}));
}

}  // namespace
}  // namespace understudy
