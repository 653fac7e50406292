// SPDX-License-Identifier: Apache-2.0
//
// From which pages of a device its idle usage is taken.
#include "device/idle_usage.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/sizes.h"

namespace understudy {
namespace {

constexpr uint64_t kNormal = 4 * kGiB;
constexpr uint64_t kHuge = 60 * kGiB;

TEST(IdleUsage, IsTakenFromHugePagesFirst) {
  EXPECT_EQ(IdleUsage::of(0, kNormal, kHuge), IdleUsage());
  EXPECT_EQ(IdleUsage::of(3 * kGiB, kNormal, kHuge), (IdleUsage{.huge = 3 * kGiB}));
  EXPECT_EQ(IdleUsage::of(kHuge, kNormal, kHuge), (IdleUsage{.huge = kHuge}));
}

TEST(IdleUsage, PartOfAHugePageIsInNormalPages) {
  EXPECT_EQ(IdleUsage::of(3349 * kMiB, kNormal, kHuge),
            (IdleUsage{.normal = kMiB, .huge = 3348 * kMiB}));
  EXPECT_EQ(IdleUsage::of(1, kNormal, kHuge), (IdleUsage{.normal = kNormalPage}));
  EXPECT_EQ(IdleUsage::of(kHugePage + kNormalPage + 1, kNormal, kHuge),
            (IdleUsage{.normal = 2 * kNormalPage, .huge = kHugePage}));
}

TEST(IdleUsage, OnePoolGivesWhatTheOtherDoesNotHave) {
  EXPECT_EQ(IdleUsage::of(kHuge + kGiB, kNormal, kHuge),
            (IdleUsage{.normal = kGiB, .huge = kHuge}));
  EXPECT_EQ(IdleUsage::of(kGiB, 64 * kGiB, 0), (IdleUsage{.normal = kGiB}));
  EXPECT_EQ(IdleUsage::of(kMiB, 0, 64 * kGiB), (IdleUsage{.huge = kHugePage}));
  EXPECT_EQ(IdleUsage::of(3 * kMiB, 512 * kKiB, kHuge), (IdleUsage{.huge = 2 * kHugePage}));
}

TEST(IdleUsage, NeverPassesThePools) {
  for (const uint64_t normal : {uint64_t{0}, 5000 * uint64_t{1}, kMiB, kNormal}) {
    for (const uint64_t huge : {uint64_t{0}, kHugePage, kHuge}) {
      for (const uint64_t spared : {uint64_t{1}, kNormalPage, kMiB, kHugePage}) {
        const uint64_t memory = normal + huge;
        if (memory <= spared) continue;
        const IdleUsage usage = IdleUsage::of(memory - spared, normal, huge);
        EXPECT_LE(usage.normal, normal);
        EXPECT_LE(usage.huge, huge);
        EXPECT_TRUE(is_aligned(usage.normal, kNormalPage));
        EXPECT_TRUE(is_aligned(usage.huge, kHugePage));
      }
    }
  }
}

}  // namespace
}  // namespace understudy
