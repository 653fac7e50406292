// SPDX-License-Identifier: Apache-2.0
//
// aclrtReserveMemAddress: its arguments, and the ranges it gives when the caller wishes for no
// address.
// Covers: RESV-01, RESV-02, RESV-03, RESV-04, RESV-05, RESV-06, RESV-07, RESV-08, RESV-09, RESV-10,
// RESV-11, RESV-12, RESV-13.
#include <limits>

#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using ReserveMemAddress = DeviceTest;

constexpr size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

TEST_F(ReserveMemAddress, RESV_01_NullOutputIsRefused) {
  const FiguresStay watch;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtReserveMemAddress(nullptr, kHugePage, 0, nullptr, 0));
}

TEST_F(ReserveMemAddress, RESV_02_SizeZeroIsRefused) {
  expect_reserve_refused(ACL_ERROR_INVALID_PARAM, 0, 0, nullptr, 0);
}

TEST_F(ReserveMemAddress, RESV_03_FlagsOtherThanZeroAndOneAreRefused) {
  for (const uint64_t flags : {uint64_t{2}, uint64_t{3}, uint64_t{1} << 32, UINT64_MAX}) {
    SCOPED_TRACE(flags);
    expect_reserve_refused(ACL_ERROR_INVALID_PARAM, kHugePage, 0, nullptr, flags);
  }
}

TEST_F(ReserveMemAddress, RESV_01_RESV_02_RESV_03_OuterChecksComeBeforeInnerOnes) {
  void* const outside_the_window = address(kHugePage + 1);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtReserveMemAddress(nullptr, kHugePage, 1, outside_the_window, 0));
  expect_reserve_refused(ACL_ERROR_INVALID_PARAM, 0, 1, outside_the_window, 0);
  expect_reserve_refused(ACL_ERROR_INVALID_PARAM, SIZE_MAX, 1, outside_the_window, 2);
}

TEST_F(ReserveMemAddress, RESV_04_BothFlagsReserve) {
  for (const uint64_t flags : {0u, 1u}) {
    for (const size_t size : {size_t{512}, kHugePage, 3 * kGiB}) {
      SCOPED_TRACE(testing::Message() << "flags " << flags << ", size " << size);
      const Range range(size, flags);
    }
  }
}

TEST_F(ReserveMemAddress, RESV_05_FlagsSayNothingAboutThePagesThatAreMapped) {
  for (const uint64_t flags : {0u, 1u}) {
    for (const aclrtMemAttr attribute : kDeviceAttributes) {
      SCOPED_TRACE(testing::Message() << "flags " << flags << ", attribute " << attribute);
      const Range range(kHugePage, flags);
      const Block block(kHugePage, block_property(attribute));
      const Mapping mapping(range.start(), block);
      expect_usable(range.start());
    }
    for (const aclrtMemAttr attribute : {ACL_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G}) {
      SCOPED_TRACE(testing::Message() << "flags " << flags << ", attribute " << attribute);
      const Range range(kGiantPage, flags);
      const Block block(kGiantPage, block_property(attribute));
      const Mapping mapping(range.start(), block);
      expect_usable(range.start());
    }
    for (const aclrtMemAttr attribute : kHostAttributes) {
      SCOPED_TRACE(testing::Message() << "flags " << flags << ", host attribute " << attribute);
      const Range range(kHugePage, flags);
      const Block block(kHugePage, block_property(attribute, ACL_MEM_LOCATION_TYPE_HOST));
      const Mapping mapping(range.start(), block);
      expect_usable(range.start());
    }
  }
}

// An attribute, and whether reserve_flag=match lets it into a reservation with flags 0 and 1.
struct Fit {
  aclrtMemAttr attribute;
  aclrtMemLocationType location;
  bool flags_0;
  bool flags_1;
};

constexpr std::array kFits = {
    Fit{ACL_MEM_NORMAL, ACL_MEM_LOCATION_TYPE_DEVICE, true, false},
    Fit{ACL_MEM_P2P_NORMAL, ACL_MEM_LOCATION_TYPE_DEVICE, true, false},
    Fit{ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, false, true},
    Fit{ACL_MEM_P2P_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, false, true},
    Fit{ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, false, true},
    Fit{ACL_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_DEVICE, false, true},
    Fit{ACL_HBM_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_DEVICE, false, true},
    Fit{ACL_HBM_MEM_NORMAL, ACL_MEM_LOCATION_TYPE_DEVICE, true, true},
    Fit{ACL_MEM_NORMAL, ACL_MEM_LOCATION_TYPE_HOST, true, false},
    Fit{ACL_DDR_MEM_NORMAL, ACL_MEM_LOCATION_TYPE_HOST, true, false},
    Fit{ACL_DDR_MEM_P2P_NORMAL, ACL_MEM_LOCATION_TYPE_HOST, true, false},
    Fit{ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, false, true},
    Fit{ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, false, true},
    Fit{ACL_DDR_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, false, true},
    Fit{ACL_DDR_MEM_P2P_HUGE, ACL_MEM_LOCATION_TYPE_HOST, false, true},
    Fit{ACL_HBM_MEM_NORMAL, ACL_MEM_LOCATION_TYPE_HOST, true, true},
};

void expect_fit(bool fits, const Range& range, const Block& block) {
  if (fits) {
    const Mapping mapping(range.start(), block);
    expect_usable(range.start());
    return;
  }
  const FiguresStay watch;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMapMem(range.start(), block.size(), 0, block.handle(), 0));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(range.start()));
}

TEST(ReserveMemAddressMatch, RESV_06_FlagsMustMatchThePagesThatAreMapped) {
  US_FRESH_PROCESS({"UNDERSTUDY_RESERVE_FLAG", "match"});
  const DeviceBinding binding;
  for (const Fit& fit : kFits) {
    SCOPED_TRACE(testing::Message()
                 << "attribute " << fit.attribute << ", location " << fit.location);
    const bool giant = fit.attribute == ACL_MEM_HUGE1G || fit.attribute == ACL_HBM_MEM_HUGE1G;
    const size_t size = giant ? kGiantPage : kHugePage;
    const Block block(size, block_property(fit.attribute, fit.location));
    expect_fit(fit.flags_0, Range(size, 0), block);
    expect_fit(fit.flags_1, Range(size, 1), block);
  }
}

TEST_F(ReserveMemAddress, RESV_07_AlignmentIsRefused) {
  for (const size_t alignment : {size_t{1}, 4 * kKiB, kHugePage, kGiB, SIZE_MAX}) {
    SCOPED_TRACE(alignment);
    expect_reserve_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage, alignment, nullptr, 0);
  }
}

TEST_F(ReserveMemAddress, RESV_08_AnySizeIsReserved) {
  for (const size_t size : {size_t{1}, size_t{512}, 4 * kKiB + 1, kHugePage - 1, kHugePage + 1,
                            kGiB - 1, kGiB + 1, 68719476735ul}) {
    SCOPED_TRACE(size);
    const Range range(size);
  }
}

TEST_F(ReserveMemAddress, RESV_09_StartIsAMultipleOfThePageSize) {
  for (int round = 0; round < 3; ++round) {
    // The odd neighbours would shift a range that were merely appended.
    const Range tiny(1);
    const Range small(3 * kHugePage);
    const Range below(kGiB - 1);
    const Range exact(kGiB);
    const Range above(kGiB + 1);
    const Range large(9 * kGiB + kHugePage);
    for (const Range* range : {&tiny, &small, &below}) {
      EXPECT_EQ(number(range->start()) % kHugePage, 0u);
    }
    for (const Range* range : {&exact, &above, &large}) {
      EXPECT_EQ(number(range->start()) % kGiB, 0u);
    }
  }
}

TEST_F(ReserveMemAddress, RESV_10_UsableRangeIsTheSizeRoundedUpTo2MiB) {
  for (const size_t size : {size_t{1}, kHugePage, kHugePage + 1, 3 * kHugePage - 1}) {
    SCOPED_TRACE(size);
    const size_t usable = round_up(size, kHugePage);
    const Range range(size);
    const Block fits(usable);
    const Block too_large(usable + kHugePage);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMapMem(range.start(), too_large.size(), 0, too_large.handle(), 0));
    const Mapping mapping(range.start(), fits);
    expect_usable(range.byte(usable - 4 * kKiB));
  }
}

TEST_F(ReserveMemAddress, RESV_11_ReservationsTakeNoMemory) {
  size_t free = 0;
  size_t total = 0;
  ASSERT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  const MemoryFigures before = memory_figures();
  const Range more_than_the_device(total / 8 * 9, 1);
  const Range again(total / 8 * 9, 1);
  const Range as_reported(free - 1, 1);
  EXPECT_TRUE(memory_figures() == before);
}

TEST_F(ReserveMemAddress, RESV_11_HugeReservationIsUsableEverywhere) {
  constexpr size_t kSize = 32 * kTiB;
  const Range range(kSize);
  const Block block(kGiantPage, block_property(ACL_HBM_MEM_HUGE1G));
  for (const size_t offset : {size_t{0}, 5 * kTiB + kGiB, kSize - kGiantPage}) {
    SCOPED_TRACE(offset);
    const Mapping mapping(range.byte(offset), block);
    expect_usable(range.byte(offset + kGiantPage - 4 * kKiB));
  }
}

TEST_F(ReserveMemAddress, RESV_12_LiveReservationsDoNotOverlap) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  const auto add = [&ranges](size_t size, uint64_t flags, void* expected = nullptr) {
    const uint64_t start = number(reserve(size, flags, expected));
    ranges.emplace_back(start, start + round_up(size, kHugePage));
  };
  const uint64_t wished = find_free_start(kGiB);
  if (wished != 0) add(kGiB, 0, address(wished));
  for (const uint64_t round : {0u, 1u, 2u, 3u}) {
    for (const size_t size :
         {size_t{1}, kHugePage + 1, 3 * kHugePage, kGiB - 1, kGiB + 1, 72 * kGiB}) {
      add(size, round % 2);
    }
    // Holes of several sizes, which later ones may fill.
    EXPECT_SUCCESS(aclrtReleaseMemAddress(address(ranges[ranges.size() - 2].first)));
    ranges.erase(ranges.end() - 2);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    EXPECT_LE(ranges[i - 1].second, ranges[i].first);
  }
  for (const auto& range : ranges) EXPECT_SUCCESS(aclrtReleaseMemAddress(address(range.first)));
}

TEST_F(ReserveMemAddress, RESV_12_ReservationsKeepAwayFromTheProgramsOwnMemory) {
  const std::vector<uint8_t> own(16 * kMiB, 7);
  for (int round = 0; round < 50; ++round) {
    const Range range(kGiB);
    const uint64_t start = number(range.start());
    EXPECT_TRUE(number(own.data()) + own.size() <= start || start + kGiB <= number(own.data()));
  }
  EXPECT_EQ(own, std::vector<uint8_t>(own.size(), 7));
}

TEST_F(ReserveMemAddress, RESV_13_MoreThanTheAddressSpaceIsOutOfMemory) {
  for (const size_t size : {size_t{1} << 60, size_t{1} << 63, SIZE_MAX - kHugePage + 1,
                            std::numeric_limits<size_t>::max()}) {
    SCOPED_TRACE(size);
    expect_reserve_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, size, 0, nullptr, 0);
  }
  const Range still_possible(kGiB);
}

TEST_F(ReserveMemAddress, RESV_13_AddressSpaceEndsAndComesBack) {
  constexpr size_t kPiece = 32 * kTiB;
  std::vector<void*> pieces;
  aclError result = ACL_SUCCESS;
  // 64 bits of addresses hold no more pieces than this.
  for (size_t i = 0; i <= SIZE_MAX / kPiece && result == ACL_SUCCESS; ++i) {
    void* piece = nullptr;
    result = aclrtReserveMemAddress(&piece, kPiece, 0, nullptr, 0);
    if (result == ACL_SUCCESS) pieces.push_back(piece);
  }
  EXPECT_EQ(result, ACL_ERROR_RT_MEMORY_ALLOCATION);
  ASSERT_FALSE(pieces.empty());
  expect_reserve_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, kPiece, 0, nullptr, 0);

  EXPECT_SUCCESS(aclrtReleaseMemAddress(pieces.back()));
  pieces.back() = reserve(kPiece);
  for (void* piece : pieces) EXPECT_SUCCESS(aclrtReleaseMemAddress(piece));
}

}  // namespace
}  // namespace understudy_test::vmm
