// SPDX-License-Identifier: Apache-2.0
#include "memory/reservations.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "unit/memory/memory_rig.h"

namespace understudy {
namespace {

class ReservationsTest : public testing::Test {
 protected:
  MemoryRig rig_;
};

TEST_F(ReservationsTest, WishedAddressesAreCheckedBeforeAnythingIsTaken) {
  const auto wish = [&](VirtualAddress address, uint64_t size) {
    return rig_.space.reservations().reserve(size, ReservedPages::kHuge, address);
  };
  EXPECT_TRUE(fails_with(wish(kExpectedWindow.base - kGiB, kGranule), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(wish(kExpectedWindow.end(), kGranule), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(wish(kExpectedWindow.end() - kGiB, 2 * kGiB), ErrorCode::kInvalidParam));
  EXPECT_TRUE(
      fails_with(wish(kExpectedWindow.base + kNormalPage, kGranule), ErrorCode::kInvalidParam));
  // The alignment grows with the size.
  EXPECT_TRUE(
      fails_with(wish(kExpectedWindow.base + kGranule, 3 * kMiB), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(wish(kExpectedWindow.base + 512 * kMiB, kGiB), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(wish(kExpectedWindow.base, UINT64_MAX), ErrorCode::kInvalidParam));
  EXPECT_FALSE(rig_.space.reservations().contains(kExpectedWindow.base));

  MemoryRig modern(rig_settings("950"));
  EXPECT_TRUE(
      fails_with(modern.space.reservations().reserve(kGranule, ReservedPages::kHuge, 20 * kTiB),
                 ErrorCode::kInvalidParam));
}

TEST_F(ReservationsTest, UncachedReservationsHaveAWindowAndWholeGibibytes) {
  EXPECT_TRUE(
      fails_with(rig_.space.reservations().reserve_uncached(kGranule, kUncachedWindow.base - kGiB),
                 ErrorCode::kInvalidParam));
  EXPECT_TRUE(
      fails_with(rig_.space.reservations().reserve_uncached(kGranule, 200 * kTiB + kGranule),
                 ErrorCode::kInvalidParam));
  EXPECT_EQ(value_of(rig_.space.reservations().reserve_uncached(kGranule, 200 * kTiB)), 200 * kTiB);
  EXPECT_TRUE(fails_with(rig_.space.reservations().reserve_uncached(kGranule, 200 * kTiB),
                         ErrorCode::kInvalidParam));
  EXPECT_TRUE(is_ok(rig_.space.reservations().release(200 * kTiB)));
}

TEST_F(ReservationsTest, ReservationIsReleasedOnlyWithoutMappings) {
  const VirtualAddress base = rig_.reserve(4 * kGranule);
  rig_.map_fresh(base + kGranule);
  EXPECT_TRUE(fails_with(rig_.space.reservations().release(base), ErrorCode::kInvalidParam));
  EXPECT_TRUE(rig_.space.translation().find(base + kGranule));
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base + kGranule)));
  EXPECT_TRUE(is_ok(rig_.space.reservations().release(base)));
  EXPECT_TRUE(fails_with(rig_.space.reservations().release(base), ErrorCode::kInvalidParam));
}

}  // namespace
}  // namespace understudy
