// SPDX-License-Identifier: Apache-2.0
//
// aclrtReserveMemAddressNoUCMemory: an A3 call that reserves exactly where the caller says.
// Covers: MAP-15, MAP-16, MAP-18, RESV-19, RESV-20, RESVN-01, RESVN-02, RESVN-03, RESVN-04,
// RESVN-05, RESVN-06, RESVN-07, RESVN-08.
#include <sys/mman.h>

#include <algorithm>

#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

// In the window, 1 GiB aligned and beyond what x86-64 programs can map themselves.
constexpr uint64_t kPlausible = 200 * kTiB;

void expect_no_uc_refused(aclError code, size_t size, size_t alignment, uint64_t expected,
                          uint64_t flags = 0) {
  const FiguresStay watch;
  void* range = untouched();
  EXPECT_FAILS(code,
               aclrtReserveMemAddressNoUCMemory(&range, size, alignment, address(expected), flags));
  EXPECT_EQ(range, untouched());
}

class NoUcRange : public Range {
 public:
  NoUcRange(uint64_t start, size_t size, uint64_t flags = 0)
      : Range(reserve_no_uc(start, size, flags)) {}

 private:
  static Adopted reserve_no_uc(uint64_t start, size_t size, uint64_t flags) {
    void* range = nullptr;
    EXPECT_SUCCESS(aclrtReserveMemAddressNoUCMemory(&range, size, 0, address(start), flags));
    EXPECT_EQ(range, address(start));
    return {range};
  }
};

void expect_outer_checks() {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtReserveMemAddressNoUCMemory(nullptr, kGiB, 0, address(kPlausible), 0));
  expect_no_uc_refused(ACL_ERROR_INVALID_PARAM, 0, 0, kPlausible);
  for (const uint64_t flags : {uint64_t{2}, uint64_t{3}, UINT64_MAX}) {
    SCOPED_TRACE(flags);
    expect_no_uc_refused(ACL_ERROR_INVALID_PARAM, kGiB, 0, kPlausible, flags);
    expect_no_uc_refused(ACL_ERROR_INVALID_PARAM, kGiB + 1, 1, 0, flags);
  }
}

TEST(ReserveNoUcMemory, RESVN_01_NullOutputSizeZeroAndFlagsAreRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  expect_outer_checks();
}

class ReserveNoUcMemoryElsewhere : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, ReserveNoUcMemoryElsewhere,
                         testing::Values("a2", "inf", "trn", "200i", "200i-rc", "950", "ipv350"),
                         [](const auto& item) { return test_name_on(item.param); });

TEST_P(ReserveNoUcMemoryElsewhere, RESVN_01_RESVN_02_OnlyA3HasIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceBinding binding;
  expect_outer_checks();
  expect_no_uc_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kGiB, 0, kPlausible);
  // The product decides before any argument of the inner layer.
  expect_no_uc_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kGiB + 1, 0, kPlausible);
  expect_no_uc_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kGiB, 1, kPlausible + kHugePage);
  expect_no_uc_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kGiB, 0, 0);
}

TEST(ReserveNoUcMemory, RESVN_03_CallerMustNameTheAddress) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  for (const size_t size : {kGiB, 5 * kGiB}) {
    SCOPED_TRACE(size);
    expect_no_uc_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, size, 0, 0);
  }
}

TEST(ReserveNoUcMemory, RESVN_04_SizeOff1GiBIsRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(4 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  for (const size_t size : {size_t{1}, kHugePage, kGiB - 1, kGiB + 1, kGiB + kHugePage, SIZE_MAX}) {
    SCOPED_TRACE(size);
    expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, size, 0, start);
    // RESVN-04 comes before RESVN-03.
    expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, size, 0, 0);
  }
}

TEST(ReserveNoUcMemory, RESVN_05_AlignmentAndUnalignedAddressAreRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(4 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  for (const size_t alignment : {size_t{1}, kHugePage, kGiB}) {
    SCOPED_TRACE(alignment);
    expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, kGiB, alignment, start);
  }
  for (const uint64_t offset : {uint64_t{1}, uint64_t{kHugePage}, kGiB / 2, kGiB - 1}) {
    SCOPED_TRACE(offset);
    expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, kGiB, 0, start + offset);
  }
  const NoUcRange range(start, kGiB);
}

TEST(ReserveNoUcMemory, RESVN_06_FreeRangeInsideTheWindowIsGivenExactly) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(16 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const FiguresStay watch;
  for (const uint64_t flags : {0u, 1u}) {
    for (const size_t size : {kGiB, 3 * kGiB, 15 * kGiB}) {
      SCOPED_TRACE(testing::Message() << "flags " << flags << ", size " << size);
      const NoUcRange at_start(start, size, flags);
    }
    const NoUcRange odd(start + kGiB, 2 * kGiB, flags);
  }
}

TEST(ReserveNoUcMemory, RESVN_06_WindowReachesFromItsFirstToItsLastByte) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  // What is free on the host must be given; the end is beyond x86-64's user space, where nothing
  // of the host can be in the way.
  if (host_range(kNoUcWindowStart, kGiB) == HostRange::kFree) {
    const NoUcRange first(kNoUcWindowStart, kGiB);
  }
  if (host_range(kNoUcWindowEnd - kGiB, kGiB) != HostRange::kOccupied) {
    const NoUcRange last(kNoUcWindowEnd - kGiB, kGiB);
  }
}

TEST(ReserveNoUcMemory, RESVN_06_RangesOutsideTheWindowAreRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const std::vector<std::pair<uint64_t, size_t>> outside = {
      {kGiB, kGiB},
      {kWindowStart + kTiB, kGiB},
      {kNoUcWindowStart - kGiB, kGiB},
      {kNoUcWindowStart - kGiB, 2 * kGiB},
      {kNoUcWindowEnd - kGiB, 2 * kGiB},
      {kNoUcWindowEnd, kGiB},
      {kPlausible, 185 * kTiB},
      {uint64_t{1} << 63, kGiB},
      {UINT64_MAX - kGiB + 1, kGiB},
      {kPlausible, SIZE_MAX - kGiB + 1},
      {kPlausible, SIZE_MAX - kPlausible - kGiB + 1},
  };
  for (const auto& [start, size] : outside) {
    SCOPED_TRACE(testing::Message() << "start " << start << ", size " << size);
    expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, size, 0, start);
  }
}

// The 8 GiB from `start` are free.
void expect_reservations_kept_apart(uint64_t start) {
  const NoUcRange taken(start + 2 * kGiB, 2 * kGiB);
  const Block block;
  const Mapping mapping(taken.start(), block);
  const std::vector<uint8_t> bytes = pattern(kHugePage, 4);
  copy_in(mapping.start(), bytes);

  expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, 2 * kGiB, 0, start + 2 * kGiB);
  expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, kGiB, 0, start + 3 * kGiB);
  expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, 2 * kGiB, 0, start + kGiB);
  expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, 8 * kGiB, 0, start);
  EXPECT_TRUE(copy_out(mapping.start(), bytes.size()) == bytes);

  const NoUcRange below(start, 2 * kGiB);
  const NoUcRange above(start + 4 * kGiB, 4 * kGiB);
}

TEST(ReserveNoUcMemory, RESVN_07_RangeOfAnotherReservationIsRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(8 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  expect_reservations_kept_apart(start);
}

// Here the host has no say, the library must remember by itself what it gave away.
TEST(ReserveNoUcMemory, RESVN_07_RangeBeyondTheHostsAddressesIsRefusedOnceTaken) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  if (host_range(kPlausible, 8 * kGiB) == HostRange::kOccupied) {
    GTEST_SKIP() << "this process lives there";
  }
  expect_reservations_kept_apart(kPlausible);
}

TEST(ReserveNoUcMemory, RESVN_07_RangeTouchingTheProgramsOwnMemoryIsRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(kGiB);
  if (start == 0 || host_range(start, kGiB) != HostRange::kFree) {
    GTEST_SKIP() << "this process cannot map anything in the window";
  }
  constexpr size_t kPage = 64 * kKiB;
  void* own = map_own_memory(start + kGiB / 2, kPage, PROT_READ | PROT_WRITE);
  ASSERT_EQ(own, address(start + kGiB / 2));
  *static_cast<char*>(own) = 'x';
  expect_no_uc_refused(ACL_ERROR_RT_PARAM_INVALID, kGiB, 0, start);
  EXPECT_EQ(*static_cast<char*>(own), 'x');
  ASSERT_EQ(munmap(own, kPage), 0);
  const NoUcRange range(start, kGiB);
}

TEST(ReserveNoUcMemory, RESVN_08_RangeIsReleasedLikeAnyOther) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(4 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  NoUcRange range(start, 4 * kGiB);
  const Block block;
  {
    const Mapping mapping(range.byte(kGiB), block);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(range.start()));
    expect_usable(mapping.start());
  }
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(range.byte(kGiB)));
  void* released = range.give_up();
  EXPECT_SUCCESS(aclrtReleaseMemAddress(released));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(released));
  const NoUcRange again(start, 4 * kGiB);
}

TEST(ReserveNoUcMemory, RESVN_08_RangeObeysTheMapRules) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(8 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const NoUcRange range(start, 8 * kGiB);
  const Block huge;
  const Block second_huge;
  const Block giant(kGiantPage, block_property(ACL_HBM_MEM_HUGE1G));
  const auto expect_map_refused = [](void* place, const Block& block) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMapMem(place, block.size(), 0, block.handle(), 0));
  };

  const Mapping first(range.start(), huge);
  const Mapping second(range.byte(kHugePage), second_huge);
  const Mapping third(range.byte(2 * kGiB), giant);
  const std::vector<uint8_t> bytes = pattern(2 * kHugePage, 6);
  copy_in(range.start(), bytes);
  expect_usable(range.byte(3 * kGiB - 4 * kKiB));

  expect_map_refused(range.byte(kHugePage), huge);
  expect_map_refused(range.byte(2 * kHugePage + 4 * kKiB), huge);
  expect_map_refused(range.byte(4 * kGiB + kHugePage), giant);
  expect_map_refused(range.byte(8 * kGiB), huge);
  EXPECT_TRUE(copy_out(range.start(), bytes.size()) == bytes);
}

aclrtPhysicalMemProp at_location(aclrtMemLocationType type, uint32_t id) {
  return block_property(ACL_HBM_MEM_HUGE, type, id);
}

// Each granule of the row belongs to another device, or to the host.
class MixedRow {
 public:
  explicit MixedRow(const NoUcRange& range)
      : mappings_{{range.byte(0), blocks_[0]},
                  {range.byte(kHugePage), blocks_[1]},
                  {range.byte(2 * kHugePage), blocks_[2]},
                  {range.byte(3 * kHugePage), blocks_[3]}} {}
  static constexpr size_t kSize = 4 * kHugePage;

 private:
  Block blocks_[4] = {Block(), Block(kHugePage, at_location(ACL_MEM_LOCATION_TYPE_DEVICE, 1)),
                      Block(kHugePage, at_location(ACL_MEM_LOCATION_TYPE_HOST, 0)),
                      Block(kHugePage, at_location(ACL_MEM_LOCATION_TYPE_HOST_NUMA, 0))};
  Mapping mappings_[4];
};

TEST(ReserveNoUcMemory, MAP_15_MAP_18_RESVN_08_BlocksOfAllPlacesLieSideBySide_C16) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const NoUcRange range(start, kGiB);
  const MixedRow row(range);
  // One copy spans them all (MAP-13).
  const std::vector<uint8_t> bytes = pattern(MixedRow::kSize, 16);
  copy_in(range.start(), bytes);
  EXPECT_TRUE(copy_out(range.start(), bytes.size()) == bytes);
  for (size_t granule = 0; granule < 4; ++granule) {
    SCOPED_TRACE(granule);
    aclrtPtrAttributes attributes{};
    EXPECT_SUCCESS(aclrtPointerGetAttributes(range.byte(granule * kHugePage), &attributes));
    const aclrtMemLocationType types[] = {ACL_MEM_LOCATION_TYPE_DEVICE,
                                          ACL_MEM_LOCATION_TYPE_DEVICE, ACL_MEM_LOCATION_TYPE_HOST,
                                          ACL_MEM_LOCATION_TYPE_HOST_NUMA};
    EXPECT_EQ(attributes.location.type, types[granule]);
    EXPECT_EQ(attributes.location.id, granule == 1 ? 1u : 0u);
  }
}

TEST(ReserveNoUcMemory, MAP_16_NoDeviceEverOwnsTheRange_C16) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const NoUcRange range(start, kGiB);
  const Block here;
  const Block there(kHugePage, at_location(ACL_MEM_LOCATION_TYPE_DEVICE, 1));
  { const Mapping first(range.start(), here); }
  { const Mapping second(range.start(), there); }
  const Mapping third(range.start(), here);
}

// A range of several devices is between devices for a synchronous copy (RESV-20).
TEST(ReserveNoUcMemory, RESV_19_RESV_20_CopiesOfMixedRangesKnowTheirDevices_C16) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceBinding binding;
  const uint64_t start = find_free_no_uc_start(2 * kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const NoUcRange range(start, 2 * kGiB);
  const MixedRow row(range);
  const Block other;
  const Mapping target(range.byte(kGiB), other);
  const std::vector<uint8_t> bytes = pattern(2 * kHugePage, 19);
  copy_in(range.start(), bytes);

  // Half of the source is on device 1.
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemcpy(target.start(), kHugePage, range.byte(kHugePage / 2), kHugePage,
                           ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_SUCCESS(aclrtMemcpy(target.start(), kHugePage, range.start(), kHugePage,
                             ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_SUCCESS(aclrtMemcpyAsync(target.start(), kHugePage, range.byte(kHugePage / 2), kHugePage,
                                  ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr));
  EXPECT_SUCCESS(aclrtSynchronizeStream(nullptr));
  EXPECT_TRUE(std::equal(bytes.begin() + kHugePage / 2, bytes.begin() + 3 * kHugePage / 2,
                         copy_out(target.start(), kHugePage).begin()));
}

}  // namespace
}  // namespace understudy_test::vmm
