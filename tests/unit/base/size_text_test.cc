// SPDX-License-Identifier: Apache-2.0
#include "base/size_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/sizes.h"

namespace understudy {
namespace {

std::string text_of(uint64_t bytes) { return SizeText(bytes).c_str(); }

TEST(SizeText, WholeUnitsAreShownInTheLargestThatFits) {
  EXPECT_EQ(text_of(20 * kMiB), "20 MiB");
  EXPECT_EQ(text_of(kKiB), "1 KiB");
  EXPECT_EQ(text_of(64 * kGiB), "64 GiB");
  EXPECT_EQ(text_of(16 * kTiB), "16 TiB");
  EXPECT_EQ(text_of(1024 * kMiB), "1 GiB");
}

TEST(SizeText, EighthsOfAUnitAreShownAsAFraction) {
  EXPECT_EQ(text_of(kGiB + kGiB / 2), "1.5 GiB");
  EXPECT_EQ(text_of(kMiB + kMiB / 8), "1.125 MiB");
}

TEST(SizeText, SmallerPartsGoToTheNextUnit) {
  EXPECT_EQ(text_of(kGiB + kMiB), "1025 MiB");
  EXPECT_EQ(text_of(kMiB + kKiB), "1025 KiB");
}

TEST(SizeText, WhatNoUnitShowsExactlyIsShownInBytes) {
  EXPECT_EQ(text_of(0), "0 bytes");
  EXPECT_EQ(text_of(513), "513 bytes");
  EXPECT_EQ(text_of(kGiB + 1), "1073741825 bytes");
}

TEST(SizeText, LongestNumberFits) { EXPECT_EQ(text_of(UINT64_MAX), "18446744073709551615 bytes"); }

TEST(SizeText, OneByteIsSingular) { EXPECT_EQ(text_of(1), "1 byte"); }

TEST(RoughSizeText, IsCutOffAndNeverMore) {
  const auto rough = [](uint64_t bytes) { return std::string(RoughSizeText(bytes).c_str()); };
  EXPECT_EQ(rough(0), "0 bytes");
  EXPECT_EQ(rough(1023), "1023 bytes");
  EXPECT_EQ(rough(kKiB), "1 KiB");
  EXPECT_EQ(rough(64 * kGiB), "64 GiB");
  EXPECT_EQ(rough(64 * kGiB - 1), "63.99 GiB");
  EXPECT_EQ(rough(3 * kMiB / 2), "1.50 MiB");
  EXPECT_EQ(rough(kTiB + 1), "1.00 TiB");
  EXPECT_EQ(rough(UINT64_MAX), "16777215.99 TiB");
}

}  // namespace
}  // namespace understudy
