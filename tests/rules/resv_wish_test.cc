// SPDX-License-Identifier: Apache-2.0
//
// aclrtReserveMemAddress with expectPtr: which wishes are fulfilled and which are refused.
// Covers: RESV-14, RESV-15, RESV-16, RESV-17.
#include <sys/mman.h>

#include <ostream>

#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using ReserveAtWish = DeviceTest;

void expect_wish_fulfilled(uint64_t start, size_t size) {
  const Range range(size, 0, address(start));
  EXPECT_EQ(range.start(), address(start));
}

void expect_wish_refused(uint64_t start, size_t size) {
  expect_reserve_refused(ACL_ERROR_RT_PARAM_INVALID, size, 0, address(start), 0);
}

TEST_F(ReserveAtWish, RESV_14_FreeRangeInsideTheWindowIsGivenExactly) {
  const uint64_t start = find_free_start(8 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  for (const size_t size : {size_t{1}, kHugePage, 3 * kMiB, kGiB, 5 * kGiB}) {
    for (const uint64_t offset : {uint64_t{0}, 2 * kGiB}) {
      SCOPED_TRACE(testing::Message() << "size " << size << ", offset " << offset);
      expect_wish_fulfilled(start + offset, size);
    }
  }
}

TEST_F(ReserveAtWish, RESV_14_BothFlagsTakeAWish) {
  const uint64_t start = find_free_start(kGiB);
  US_SKIP_UNLESS_FOUND(start);
  for (const uint64_t flags : {0u, 1u}) {
    const Range range(kGiB, flags, address(start));
    EXPECT_EQ(range.start(), address(start));
  }
}

TEST_F(ReserveAtWish, RESV_14_WindowReachesFromItsFirstToItsLastByte) {
  const std::vector<std::pair<uint64_t, size_t>> edges = {{kWindowStart, kHugePage},
                                                          {kWindowStart, kGiB},
                                                          {kWindowEnd - kHugePage, kHugePage},
                                                          {kWindowEnd - kHugePage, 1},
                                                          {kWindowEnd - 3 * kGiB, 3 * kGiB}};
  for (const auto& [start, size] : edges) {
    SCOPED_TRACE(testing::Message() << "start " << start << ", size " << size);
    // A sanitizer may live at the edge.
    if (host_range(start, size) == HostRange::kFree) expect_wish_fulfilled(start, size);
  }
}

TEST_F(ReserveAtWish, RESV_14_WishedRangeIsUsable) {
  const uint64_t start = find_free_start(2 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const Range range(2 * kGiB, 0, address(start));
  const Block block;
  const Mapping first(range.start(), block);
  const Mapping last(range.byte(2 * kGiB - kHugePage), block);
  expect_usable(first.start(), 3);
  EXPECT_TRUE(copy_out(last.start(), 4 * kKiB) == pattern(4 * kKiB, 3));
}

struct WishedAlignment {
  size_t size;
  uint64_t off;      // not a multiple of the required alignment
  uint64_t aligned;  // a multiple of it and of no more than it
};

constexpr std::array kWishedAlignments = {
    WishedAlignment{1, kMiB, kHugePage},
    WishedAlignment{kHugePage - 1, 4 * kKiB, kHugePage},
    WishedAlignment{kHugePage, 1, kHugePage},
    WishedAlignment{kHugePage + 1, kHugePage, 4 * kMiB},
    WishedAlignment{3 * kMiB, kHugePage, 4 * kMiB},
    WishedAlignment{4 * kMiB, kHugePage, 4 * kMiB},
    WishedAlignment{100 * kMiB, 64 * kMiB, 128 * kMiB},
    WishedAlignment{512 * kMiB, 256 * kMiB, 512 * kMiB},
    WishedAlignment{512 * kMiB + 1, 512 * kMiB, kGiB},
    WishedAlignment{kGiB - 1, 512 * kMiB, kGiB},
    WishedAlignment{kGiB, 512 * kMiB, kGiB},
    WishedAlignment{kGiB, kHugePage, kGiB},
    WishedAlignment{kGiB + 1, 512 * kMiB, kGiB},
    WishedAlignment{3 * kGiB, 512 * kMiB, kGiB},
};

TEST_F(ReserveAtWish, RESV_15_WishMustBeAlignedToItsSizeUpTo1GiB) {
  const uint64_t start = find_free_start(8 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  for (const WishedAlignment& item : kWishedAlignments) {
    SCOPED_TRACE(testing::Message() << "size " << item.size << ", offset " << item.off);
    expect_wish_refused(start + item.off, item.size);
    expect_wish_fulfilled(start + item.aligned, item.size);
  }
}

TEST_F(ReserveAtWish, RESV_16_RangesOutsideTheWindowAreRefused) {
  const std::vector<std::pair<uint64_t, size_t>> outside = {
      {kHugePage, kHugePage},
      {kGiB, kGiB},
      {kWindowStart - kHugePage, kHugePage},
      {kWindowStart - kGiB, kGiB},
      {kWindowStart - kGiB, 2 * kGiB},
      {kWindowEnd - kGiB, 2 * kGiB},
      {kWindowEnd - kGiB, kGiB + 1},
      {kWindowEnd, kHugePage},
      {kWindowEnd, kGiB},
      {kWindowStart, 9 * kTiB},
      {40 * kTiB, kGiB},
      {100 * kTiB, kGiB},
      {200 * kTiB, kGiB},
      {uint64_t{1} << 63, kGiB},
      {UINT64_MAX - kGiB + 1, kGiB},
      {kWindowStart + kGiB, SIZE_MAX},
      {kWindowStart + kGiB, SIZE_MAX - kWindowStart},
  };
  for (const auto& [start, size] : outside) {
    SCOPED_TRACE(testing::Message() << "start " << start << ", size " << size);
    expect_wish_refused(start, size);
  }
}

TEST_F(ReserveAtWish, RESV_16_RangeOfAnotherReservationIsRefused) {
  const uint64_t start = find_free_start(8 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const Range taken(2 * kGiB, 0, address(start + 2 * kGiB));
  const Block block;
  const Mapping mapping(taken.start(), block);
  const std::vector<uint8_t> bytes = pattern(kHugePage, 5);
  copy_in(mapping.start(), bytes);

  expect_wish_refused(start + 2 * kGiB, 2 * kGiB);
  expect_wish_refused(start + 2 * kGiB, kHugePage);
  expect_wish_refused(start + 3 * kGiB, kGiB);
  expect_wish_refused(start + kGiB, 2 * kGiB);
  expect_wish_refused(start + 3 * kGiB, 4 * kGiB);
  expect_wish_refused(start, 8 * kGiB);
  EXPECT_TRUE(copy_out(mapping.start(), bytes.size()) == bytes);

  // Next to it there is room, so nothing of the refused ranges stayed behind.
  expect_wish_fulfilled(start, 2 * kGiB);
  expect_wish_fulfilled(start + 4 * kGiB, 4 * kGiB);
}

TEST_F(ReserveAtWish, RESV_16_LastRoundedPageOfAReservationIsOccupiedToo) {
  const uint64_t start = find_free_start(kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const Range taken(kHugePage + 1, 0, address(start));
  expect_wish_refused(start + kHugePage, kHugePage);
  expect_wish_fulfilled(start + 2 * kHugePage, kHugePage);
}

TEST_F(ReserveAtWish, RESV_16_RangeTouchingTheProgramsOwnMemoryIsRefused) {
  const uint64_t start = find_free_start(2 * kGiB);
  if (start == 0 || host_range(start, 2 * kGiB) != HostRange::kFree) {
    GTEST_SKIP() << "this process cannot map anything in the window";
  }
  constexpr size_t kPage = 64 * kKiB;
  for (const uint64_t offset : {uint64_t{0}, kGiB / 2, kGiB - kPage}) {
    SCOPED_TRACE(offset);
    void* own = map_own_memory(start + offset, kPage, PROT_READ | PROT_WRITE);
    ASSERT_EQ(own, address(start + offset));
    *static_cast<char*>(own) = 'x';
    expect_wish_refused(start, kGiB);
    expect_wish_refused(start, 2 * kGiB);
    EXPECT_EQ(*static_cast<char*>(own), 'x');
    ASSERT_EQ(munmap(own, kPage), 0);
    expect_wish_fulfilled(start, kGiB);
  }
}

// Refusal is the answer; a substitute address would be a success with another value.
TEST_F(ReserveAtWish, RESV_16_NoOtherAddressIsSubstituted) {
  const uint64_t start = find_free_start(kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const Range taken(kGiB, 0, address(start));
  for (const uint64_t flags : {0u, 1u}) {
    SCOPED_TRACE(flags);
    expect_reserve_refused(ACL_ERROR_RT_PARAM_INVALID, kGiB, 0, address(start), flags);
  }
}

struct NullOnly {
  const char* product;
  const char* expect_ptr;
};

void PrintTo(const NullOnly& profile, std::ostream* out) {
  *out << profile.product << ", expect_ptr " << profile.expect_ptr;
}

class ReserveWithoutWishes : public testing::TestWithParam<NullOnly> {};

INSTANTIATE_TEST_SUITE_P(Profiles, ReserveWithoutWishes,
                         testing::Values(NullOnly{"a2", "null_only"}, NullOnly{"a3", "null_only"},
                                         NullOnly{"950", "hint"}, NullOnly{"950", "null_only"}),
                         [](const auto& item) {
                           return test_name_on(std::string(item.param.product) + "_" +
                                               item.param.expect_ptr);
                         });

TEST_P(ReserveWithoutWishes, RESV_17_EveryWishIsRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product},
                   {"UNDERSTUDY_EXPECT_PTR", GetParam().expect_ptr});
  const DeviceBinding binding;
  const uint64_t start = find_free_start(kGiB);
  if (start != 0) expect_wish_refused(start, kGiB);
  for (const uint64_t wish : {kWindowStart, kWindowStart + kTiB, kWindowEnd - kGiB, uint64_t{1}}) {
    SCOPED_TRACE(wish);
    expect_wish_refused(wish, kHugePage);
  }
  const Range anywhere(kGiB);
}

// The product's default needs no switch.
TEST(ReserveWithoutWishes950, RESV_17_Ascend950RefusesWishesByItself) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  const DeviceBinding binding;
  expect_wish_refused(kWindowStart + kTiB, kGiB);
  const Range anywhere(kGiB);
}

}  // namespace
}  // namespace understudy_test::vmm
