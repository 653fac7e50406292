// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpy2d: its checks, the rows it moves, and that a refusal moves nothing.
// Covers: COPY-13, COPY2D-01, COPY2D-02, COPY2D-03, COPY2D-04, COPY2D-05, COPY2D-06, GEN-03,
// POLICY-26.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/host_objects.h"

namespace understudy_test {
namespace {

class Memcpy2d : public HostMemoryTest {};

constexpr size_t kMostRows = 5242880;
constexpr size_t kWidestRow = 5000000;
constexpr aclrtMemcpyKind kBadKind = static_cast<aclrtMemcpyKind>(99);

// A plane on the device and one on the host with different known bytes.
class Planes {
 public:
  static constexpr size_t kPitch = 96;
  static constexpr size_t kRows = 8;

  explicit Planes(size_t size = kPitch * kRows)
      : device_(size, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32),
        host_(pattern(size, 3)),
        device_bytes_(pattern(size, 120)),
        host_bytes_(host_) {
    copy_in(device_.data(), device_bytes_);
  }

  size_t size() const { return host_.size(); }
  void* device(size_t offset = 0) const { return device_.at(offset); }
  void* host(size_t offset = 0) { return host_.data() + offset; }
  std::vector<uint8_t>& expected_on_device() { return device_bytes_; }
  std::vector<uint8_t>& expected_on_host() { return host_bytes_; }

  void expect_bytes() const {
    EXPECT_TRUE(copy_out(device_.data(), host_.size()) == device_bytes_)
        << "the device side is wrong";
    EXPECT_TRUE(host_ == host_bytes_) << "the host side is wrong";
  }

 private:
  const DeviceBlock device_;
  std::vector<uint8_t> host_;
  std::vector<uint8_t> device_bytes_;
  std::vector<uint8_t> host_bytes_;
};

void expect_refused(aclError code, void* to, size_t to_pitch, const void* from, size_t from_pitch,
                    size_t width, size_t height, aclrtMemcpyKind kind) {
  SCOPED_TRACE(testing::Message() << height << " rows of " << width << " bytes, pitches "
                                  << to_pitch << " and " << from_pitch << ", kind " << kind);
  EXPECT_FAILS(code, aclrtMemcpy2d(to, to_pitch, from, from_pitch, width, height, kind));
}

TEST_F(Memcpy2d, COPY2D_01_NoRowsOrNoWidthSucceedBeforeAnyOtherCheck) {
  Planes planes;
  const auto succeed = [&] {
    for (const auto& [width, height] :
         {std::pair<size_t, size_t>{0, 0}, {0, 5}, {5, 0}, {0, SIZE_MAX}, {SIZE_MAX, 0}}) {
      SCOPED_TRACE(testing::Message() << width << " x " << height);
      EXPECT_SUCCESS(aclrtMemcpy2d(nullptr, 0, nullptr, 0, width, height, kBadKind));
      EXPECT_SUCCESS(aclrtMemcpy2d(planes.device(), 0, planes.host(), 0, width, height,
                                   ACL_MEMCPY_DEVICE_TO_DEVICE));
    }
  };
  succeed();
  on_bare_thread(succeed);
  planes.expect_bytes();
}

TEST_F(Memcpy2d, COPY2D_02_NullPointerIsRefused) {
  Planes planes;
  const auto refuse = [&] {
    expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, 96, planes.host(), 96, 50, 8,
                   ACL_MEMCPY_HOST_TO_DEVICE);
    expect_refused(ACL_ERROR_INVALID_PARAM, planes.device(), 96, nullptr, 96, 50, 8,
                   ACL_MEMCPY_HOST_TO_DEVICE);
    expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, 96, nullptr, 96, 50, 8, ACL_MEMCPY_DEFAULT);
    expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, SIZE_MAX, planes.host(), SIZE_MAX,
                   kWidestRow + 1, kMostRows + 1, ACL_MEMCPY_HOST_TO_DEVICE);
  };
  refuse();
  on_bare_thread(refuse);
  planes.expect_bytes();
}

TEST_F(Memcpy2d, COPY2D_02_RowWiderThanAPitchIsRefused) {
  Planes planes;
  const auto refuse = [&] {
    for (const auto& [to_pitch, from_pitch] :
         {std::pair<size_t, size_t>{49, 96}, {96, 49}, {0, 96}, {96, 0}, {49, 49}, {0, 0}}) {
      expect_refused(ACL_ERROR_INVALID_PARAM, planes.device(), to_pitch, planes.host(), from_pitch,
                     50, 8, ACL_MEMCPY_HOST_TO_DEVICE);
      expect_refused(ACL_ERROR_INVALID_PARAM, planes.host(), to_pitch, planes.device(), from_pitch,
                     50, 1, ACL_MEMCPY_DEVICE_TO_HOST);
    }
    expect_refused(ACL_ERROR_INVALID_PARAM, planes.device(), 96, planes.host(), 96, SIZE_MAX,
                   kMostRows + 1, ACL_MEMCPY_DEVICE_TO_DEVICE);
  };
  refuse();
  on_bare_thread(refuse);
  planes.expect_bytes();
}

TEST_F(Memcpy2d, COPY2D_03_OtherKindsAreRefused) {
  Planes planes;
  const auto refuse = [&] {
    for (const int64_t kind :
         {int64_t{ACL_MEMCPY_HOST_TO_HOST}, int64_t{5}, int64_t{6}, int64_t{7}, int64_t{8},
          int64_t{99}, int64_t{-1}, int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
      const auto other = enum_value<aclrtMemcpyKind>(kind);
      expect_refused(ACL_ERROR_INVALID_PARAM, planes.device(), 96, planes.host(), 96, 50, 8, other);
      expect_refused(ACL_ERROR_INVALID_PARAM, planes.host(), 96, planes.device(), 96, 50, 8, other);
      expect_refused(ACL_ERROR_INVALID_PARAM, planes.device(), kWidestRow + 1, planes.host(),
                     kWidestRow + 1, kWidestRow + 1, kMostRows + 1, other);
    }
  };
  refuse();
  on_bare_thread(refuse);
  planes.expect_bytes();
}

TEST_F(Memcpy2d, COPY2D_04_GreatestPlanesAreCopied) {
  Planes planes(kMostRows);
  planes.expected_on_device() = planes.expected_on_host();
  EXPECT_SUCCESS(
      aclrtMemcpy2d(planes.device(), 1, planes.host(), 1, 1, kMostRows, ACL_MEMCPY_HOST_TO_DEVICE));
  planes.expect_bytes();

  Planes wide(kMostRows);
  std::copy_n(wide.expected_on_host().begin(), kWidestRow, wide.expected_on_device().begin());
  EXPECT_SUCCESS(aclrtMemcpy2d(wide.device(), kWidestRow, wide.host(), kWidestRow, kWidestRow, 1,
                               ACL_MEMCPY_HOST_TO_DEVICE));
  wide.expect_bytes();
}

// Both sides have room enough for what is asked.
TEST_F(Memcpy2d, COPY2D_04_TooManyRowsOrTooWideRowsAreRefused) {
  Planes planes(kMostRows + 32);
  for (const auto& [width, height] :
       {std::pair<size_t, size_t>{1, kMostRows + 1}, {kWidestRow + 1, 1}}) {
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, planes.device(), width, planes.host(), width, width,
                   height, ACL_MEMCPY_HOST_TO_DEVICE);
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, planes.host(), width, planes.device(), width, width,
                   height, ACL_MEMCPY_DEVICE_TO_HOST);
  }
  planes.expect_bytes();
}

struct Rows {
  size_t to, to_pitch, from, from_pitch, width, height;
};

// Pitches equal to the width, narrow and wide gaps, odd addresses, one row, one column.
constexpr Rows kRowCases[] = {
    {0, 96, 0, 96, 50, 8},        {0, 50, 0, 96, 50, 8},       {0, 96, 0, 50, 50, 8},
    {0, 50, 0, 50, 50, 8},        {3, 97, 5, 101, 33, 7},      {1, 2, 7, 3, 1, 200},
    {17, 1000, 1, 999, 998, 10},  {0, 4096, 4095, 1, 1, 3},    {63, 4097, 64, 4095, 4000, 3},
    {9, SIZE_MAX, 8, 100, 90, 1}, {9, 100, 8, SIZE_MAX, 90, 1}};
constexpr size_t kFrame = 4 * kNormalPage;

void expect_rows(std::vector<uint8_t>& to, const std::vector<uint8_t>& from, const Rows& rows) {
  for (size_t row = 0; row < rows.height; ++row) {
    std::copy_n(from.begin() + static_cast<ptrdiff_t>(rows.from + row * rows.from_pitch),
                rows.width, to.begin() + static_cast<ptrdiff_t>(rows.to + row * rows.to_pitch));
  }
}

testing::Message name_of(const Rows& rows) {
  return testing::Message() << rows.height << " rows of " << rows.width << " bytes, from "
                            << rows.from << " by " << rows.from_pitch << " to " << rows.to << " by "
                            << rows.to_pitch;
}

TEST_F(Memcpy2d, COPY2D_05_RowsArriveOnTheDeviceAndBytesBetweenThemStay) {
  for (const Rows& rows : kRowCases) {
    for (const aclrtMemcpyKind kind : {ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEFAULT}) {
      SCOPED_TRACE(name_of(rows) << ", kind " << kind);
      Planes planes(kFrame);
      expect_rows(planes.expected_on_device(), planes.expected_on_host(), rows);
      EXPECT_SUCCESS(aclrtMemcpy2d(planes.device(rows.to), rows.to_pitch, planes.host(rows.from),
                                   rows.from_pitch, rows.width, rows.height, kind));
      planes.expect_bytes();
    }
  }
}

TEST_F(Memcpy2d, COPY2D_05_RowsArriveOnTheHostAndBytesBetweenThemStay) {
  for (const Rows& rows : kRowCases) {
    for (const aclrtMemcpyKind kind : {ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEFAULT}) {
      SCOPED_TRACE(name_of(rows) << ", kind " << kind);
      Planes planes(kFrame);
      expect_rows(planes.expected_on_host(), planes.expected_on_device(), rows);
      EXPECT_SUCCESS(aclrtMemcpy2d(planes.host(rows.to), rows.to_pitch, planes.device(rows.from),
                                   rows.from_pitch, rows.width, rows.height, kind));
      planes.expect_bytes();
    }
  }
}

TEST_F(Memcpy2d, COPY2D_05_PageLockedAndMappedMemoryTakePart) {
  const HostBlock locked(kPage);
  const LiveMapping mapping;
  const std::vector<uint8_t> bytes = pattern(kPage, 4);
  std::vector<uint8_t> expected = pattern(kPage, 5);
  expect_rows(expected, bytes, {0, 128, 0, 64, 60, 32});
  store(locked.data(), bytes);
  copy_in(mapping.at(kMiB), pattern(kPage, 5));
  EXPECT_SUCCESS(
      aclrtMemcpy2d(mapping.at(kMiB), 128, locked.data(), 64, 60, 32, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_TRUE(copy_out(mapping.at(kMiB), kPage) == expected);

  store(locked.data(), pattern(kPage, 5));
  copy_in(mapping.at(kMiB), bytes);
  EXPECT_SUCCESS(
      aclrtMemcpy2d(locked.data(), 128, mapping.at(kMiB), 64, 60, 32, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_TRUE(holds(locked.data(), expected));
}

// The gap behind the last row need not be there.
TEST_F(Memcpy2d, COPY2D_05_LastRowMayEndWithTheAllocation) {
  Planes planes;
  const Rows to_the_end = {planes.size() - (2 * 200 + 50), 200, 0, 50, 50, 3};
  expect_rows(planes.expected_on_device(), planes.expected_on_host(), to_the_end);
  EXPECT_SUCCESS(aclrtMemcpy2d(planes.device(to_the_end.to), 200, planes.host(), 50, 50, 3,
                               ACL_MEMCPY_HOST_TO_DEVICE));
  planes.expect_bytes();
}

TEST_F(Memcpy2d, COPY2D_05_COPY_13_RowsLeavingTheAllocationAreRefusedAndNoneIsMoved) {
  Planes planes;
  std::vector<uint8_t> host = pattern(16 * kKiB, 6);
  const struct {
    size_t offset, pitch, width, height;
  } planes_outside[] = {{planes.size() - (2 * 200 + 50) + 1, 200, 50, 3},
                        {0, 96, 50, 9},
                        {0, 96, 96, 9},
                        {1, 96, 96, 8},
                        {planes.size() - 1, 96, 2, 1},
                        {planes.size() - 50, 100, 50, 2},
                        {0, planes.size() + 1, planes.size() + 1, 1},
                        {0, kGiB, 50, 2},
                        {0, 1, 1, planes.size() + 1}};
  for (const auto& plane : planes_outside) {
    SCOPED_TRACE(plane.offset);
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, planes.device(plane.offset), plane.pitch,
                   host.data(), plane.width, plane.width, plane.height, ACL_MEMCPY_HOST_TO_DEVICE);
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, host.data(), plane.width,
                   planes.device(plane.offset), plane.pitch, plane.width, plane.height,
                   ACL_MEMCPY_DEVICE_TO_HOST);
    planes.expect_bytes();
  }
  EXPECT_TRUE(host == pattern(16 * kKiB, 6));
}

TEST_F(Memcpy2d, COPY2D_05_COPY_13_RowsDoNotJumpToAnotherAllocation) {
  const DeviceBlock one(kNormalPage);
  const DeviceBlock two(kNormalPage);
  const bool in_order = number(one.data()) < number(two.data());
  const DeviceBlock& low = in_order ? one : two;
  const DeviceBlock& high = in_order ? two : one;
  copy_in(low.data(), pattern(kNormalPage, 7));
  copy_in(high.data(), pattern(kNormalPage, 8));
  const size_t distance = number(high.data()) - number(low.data());
  std::vector<uint8_t> host = pattern(200, 9);
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, low.data(), distance, host.data(), 100, 100, 2,
                 ACL_MEMCPY_HOST_TO_DEVICE);
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, host.data(), 100, low.data(), distance, 100, 2,
                 ACL_MEMCPY_DEVICE_TO_HOST);
  EXPECT_EQ(host, pattern(200, 9));
  EXPECT_TRUE(copy_out(low.data(), kNormalPage) == pattern(kNormalPage, 7));
  EXPECT_TRUE(copy_out(high.data(), kNormalPage) == pattern(kNormalPage, 8));
}

TEST_F(Memcpy2d, COPY2D_05_PlaneThatOverflowsTheAddressSpaceIsRefused) {
  Planes planes;
  // With the last one the third row would come back to the start exactly.
  const std::pair<size_t, size_t> pitches_and_heights[] = {{SIZE_MAX, 2},
                                                           {SIZE_MAX, 3},
                                                           {SIZE_MAX / 2, 4},
                                                           {SIZE_MAX / 2, 3},
                                                           {SIZE_MAX / 1000, kMostRows},
                                                           {size_t{1} << 63, 3}};
  for (const auto& [pitch, height] : pitches_and_heights) {
    for (const bool to_overflows : {true, false}) {
      const size_t to_pitch = to_overflows ? pitch : 1;
      const size_t from_pitch = to_overflows ? 1 : pitch;
      expect_refused(ACL_ERROR_RT_PARAM_INVALID, planes.device(), to_pitch, planes.host(),
                     from_pitch, 1, height, ACL_MEMCPY_HOST_TO_DEVICE);
      expect_refused(ACL_ERROR_RT_PARAM_INVALID, planes.host(), to_pitch, planes.device(),
                     from_pitch, 1, height, ACL_MEMCPY_DEVICE_TO_HOST);
    }
  }
  planes.expect_bytes();
}

TEST_F(Memcpy2d, COPY2D_05_GEN_03_ThreadWithoutContextIsRefused) {
  Planes planes;
  on_bare_thread([&] {
    expect_refused(ACL_ERROR_RT_CONTEXT_NULL, planes.device(), 96, planes.host(), 96, 50, 8,
                   ACL_MEMCPY_HOST_TO_DEVICE);
    expect_refused(ACL_ERROR_RT_CONTEXT_NULL, planes.host(), 96, planes.device(), 96, 50, 8,
                   ACL_MEMCPY_DEVICE_TO_HOST);
  });
  planes.expect_bytes();
}

TEST_F(Memcpy2d, COPY2D_05_POLICY_26_ReadonlyBlockIsReadAndNotWritten) {
  const DeviceBlock readonly(kNormalPage, ACL_MEM_ACCESS_USER_SPACE_READONLY);
  const std::vector<uint8_t> bytes = copy_out(readonly.data(), kNormalPage);
  std::vector<uint8_t> host = pattern(kNormalPage, 10);
  expect_refused(ACL_ERROR_RT_NO_PERMISSION, readonly.data(), 96, host.data(), 96, 50, 8,
                 ACL_MEMCPY_HOST_TO_DEVICE);
  EXPECT_EQ(copy_out(readonly.data(), kNormalPage), bytes);

  std::vector<uint8_t> expected = host;
  expect_rows(expected, bytes, {0, 96, 0, 96, 50, 8});
  EXPECT_SUCCESS(
      aclrtMemcpy2d(host.data(), 96, readonly.data(), 96, 50, 8, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_TRUE(host == expected);
}

TEST_F(Memcpy2d, COPY2D_06_DeviceToDeviceIsNotSupported) {
  Planes planes;
  const DeviceBlock other(planes.size());
  constexpr auto kKind = ACL_MEMCPY_DEVICE_TO_DEVICE;
  constexpr auto kCode = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  expect_refused(kCode, planes.device(), 96, other.data(), 96, 50, 8, kKind);
  expect_refused(kCode, planes.device(), 96, planes.host(), 96, 50, 8, kKind);
  expect_refused(kCode, planes.host(), 96, planes.device(), 96, 50, 8, kKind);
  planes.expect_bytes();
}

TEST_F(Memcpy2d, COPY2D_06_CopyWithinOneSideIsRefused) {
  Planes planes;
  Planes others;
  const HostBlock locked(planes.size());
  store(locked.data(), pattern(planes.size(), 11));
  const std::pair<void*, void*> same_side[] = {{planes.device(), others.device()},
                                               {planes.host(), others.host()},
                                               {planes.host(), locked.data()},
                                               {locked.data(), planes.host()}};
  for (const auto& [to, from] : same_side) {
    for (const aclrtMemcpyKind kind :
         {ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEFAULT}) {
      expect_refused(ACL_ERROR_RT_PARAM_INVALID, to, 96, from, 96, 50, 8, kind);
    }
  }
  EXPECT_TRUE(holds(locked.data(), pattern(planes.size(), 11)));
  planes.expect_bytes();
  others.expect_bytes();
}

// Page-locked memory: its side is known, whatever the kind says.
TEST_F(Memcpy2d, COPY2D_06_AddressesDecideTheDirection) {
  Planes planes;
  const HostBlock locked(planes.size());
  store(locked.data(), pattern(planes.size(), 12));
  expect_rows(planes.expected_on_device(), pattern(planes.size(), 12), {0, 96, 0, 96, 50, 8});
  EXPECT_SUCCESS(
      aclrtMemcpy2d(planes.device(), 96, locked.data(), 96, 50, 8, ACL_MEMCPY_DEVICE_TO_HOST));
  planes.expect_bytes();
}

// ---- Products ----

class Memcpy2dOnProductWithIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, Memcpy2dOnProductWithIt,
                         testing::Values("a2", "a3", "inf", "trn", "200i", "950"),
                         host_product_name);

TEST_P(Memcpy2dOnProductWithIt, COPY2D_05_RowsAreCopiedBothWays) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const DeviceSession session;
  const Rows rows = {3, 96, 1, 80, 50, 7};
  Planes in;
  expect_rows(in.expected_on_device(), in.expected_on_host(), rows);
  EXPECT_SUCCESS(aclrtMemcpy2d(in.device(rows.to), rows.to_pitch, in.host(rows.from),
                               rows.from_pitch, rows.width, rows.height,
                               ACL_MEMCPY_HOST_TO_DEVICE));
  in.expect_bytes();
  Planes out;
  expect_rows(out.expected_on_host(), out.expected_on_device(), rows);
  EXPECT_SUCCESS(aclrtMemcpy2d(out.host(rows.to), rows.to_pitch, out.device(rows.from),
                               rows.from_pitch, rows.width, rows.height,
                               ACL_MEMCPY_DEVICE_TO_HOST));
  out.expect_bytes();
}

class Memcpy2dOnProductWithoutIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, Memcpy2dOnProductWithoutIt, testing::Values("200i-rc", "ipv350"),
                         host_product_name);

TEST_P(Memcpy2dOnProductWithoutIt, COPY2D_03_COPY2D_04_ProductIsAskedBetweenOuterAndInnerChecks) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  Planes planes;
  constexpr auto kCode = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  for (const aclrtMemcpyKind kind : {ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST,
                                     ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_MEMCPY_DEFAULT}) {
    expect_refused(kCode, planes.device(), 96, planes.host(), 96, 50, 8, kind);
    expect_refused(kCode, planes.device(), 96, planes.host(), 96, 50, kMostRows + 1, kind);
    on_bare_thread(
        [&] { expect_refused(kCode, planes.device(), 96, planes.host(), 96, 50, 8, kind); });
    expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, 96, planes.host(), 96, 50, 8, kind);
    expect_refused(ACL_ERROR_INVALID_PARAM, planes.device(), 49, planes.host(), 96, 50, 8, kind);
  }
  expect_refused(ACL_ERROR_INVALID_PARAM, planes.device(), 96, planes.host(), 96, 50, 8, kBadKind);
  EXPECT_SUCCESS(aclrtMemcpy2d(nullptr, 0, nullptr, 0, 0, 8, kBadKind));
  planes.expect_bytes();
}

}  // namespace
}  // namespace understudy_test
