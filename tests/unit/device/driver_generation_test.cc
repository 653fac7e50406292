// SPDX-License-Identifier: Apache-2.0
//
// The table of drivers: names and versions agree, and a feature that came once stays.
#include "device/driver_generation.h"

#include <gtest/gtest.h>

#include <string>

namespace understudy {
namespace {

TEST(DriverGenerations, AreNamedByTheirVersionsNewestFirst) {
  ASSERT_FALSE(driver_generations().empty());
  const DriverGeneration* newer = nullptr;
  for (const DriverGeneration& driver : driver_generations()) {
    EXPECT_EQ(driver.name, driver.version.text());
    EXPECT_EQ(find_driver(driver.name), &driver);
    if (newer != nullptr) {
      EXPECT_LT(driver.version.as_number(), newer->version.as_number()) << driver.name;
    }
    newer = &driver;
  }
  EXPECT_EQ(find_driver("newest"), nullptr);
  EXPECT_EQ(find_driver(""), nullptr);
}

TEST(DriverGenerations, OnlyTheNewestLacksNothing) {
  for (unsigned i = 0; i < static_cast<unsigned>(Feature::kCount); ++i) {
    const auto feature = static_cast<Feature>(i);
    EXPECT_FALSE(newest_driver().lacks.has(feature)) << i;
    bool lacking = false;
    for (const DriverGeneration& driver : driver_generations()) {
      EXPECT_TRUE(!lacking || driver.lacks.has(feature)) << driver.name << " has " << i << " again";
      lacking = driver.lacks.has(feature);
    }
  }
}

TEST(DriverGenerations, RetainingHandlesCameWithOne) {
  EXPECT_EQ(first_driver_with(Feature::kRetainHandle).name, "26.0.RC1");
  EXPECT_EQ(&first_driver_with(Feature::kVirtualMemory), &driver_generations().back());
  EXPECT_TRUE(find_driver("25.5.0")->lacks.has(Feature::kRetainHandle));
}

TEST(ReleaseVersions, TextAndNumberTellCandidatesFromReleases) {
  const ReleaseVersion candidate{26, 0, 0, 1};
  EXPECT_EQ(candidate.text(), "26.0.RC1");
  EXPECT_EQ(candidate.as_number(), 259'999'901);
  const ReleaseVersion final_release{9, 1, 2, 0};
  EXPECT_EQ(final_release.text(), "9.1.2");
  EXPECT_EQ(final_release.release_text(), "2");
  EXPECT_EQ(final_release.as_number(), 90'102'000);
}

}  // namespace
}  // namespace understudy
