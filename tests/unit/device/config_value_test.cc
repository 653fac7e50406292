// SPDX-License-Identifier: Apache-2.0
#include "device/config_value.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

#include "base/sizes.h"

namespace understudy {
namespace {

TEST(ConfigValue, SizesHaveOneUnitOrNone) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("3K"), 3 * kKiB);
  EXPECT_EQ(parse_size("512M"), 512 * kMiB);
  EXPECT_EQ(parse_size("64G"), 64 * kGiB);
  EXPECT_EQ(parse_size("16T"), 16 * kTiB);
}

TEST(ConfigValue, WhatIsNoSizeIsNothing) {
  for (const std::string_view text : {"", "G", "-1", "+1", "1.5G", "1g", "1GB", "1 G", " 1G", "1G ",
                                      "0x10", "G1", "1KM", "none"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ConfigValue, SizePastSixtyFourBitsIsNothing) {
  EXPECT_EQ(parse_size("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_size("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_size("16777215T"), 16777215 * kTiB);
  EXPECT_EQ(parse_size("16777216T"), std::nullopt);
  EXPECT_EQ(parse_size("17179869184G"), std::nullopt);
}

TEST(ConfigValue, NumbersAreDecimalAndWhole) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("32"), 32u);
  EXPECT_EQ(parse_number("007"), 7u);
  for (const std::string_view text : {"", "-1", "1K", "1.0", " 1", "1 ", "one"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ConfigValue, NumberEndsWithItsTextEvenIfMoreDigitsFollow) {
  EXPECT_EQ(parse_number(std::string_view("12345").substr(0, 2)), 12u);
}

TEST(ConfigValue, ShareIsAPartOfAWhole) {
  EXPECT_EQ(parse_share("1/16")->of(64 * kGiB), 4 * kGiB);
  EXPECT_EQ(parse_share("3/4")->of(64 * kGiB), 48 * kGiB);
  EXPECT_EQ(parse_share("1/1")->of(10), 10u);
  EXPECT_EQ(parse_share("0/5")->of(10), 0u);
}

TEST(ConfigValue, ShareOfTheLargestWholeDoesNotOverflow) {
  EXPECT_EQ(parse_share("1/1")->of(UINT64_MAX), UINT64_MAX);
  EXPECT_LE(parse_share("2/3")->of(UINT64_MAX), UINT64_MAX / 3 * 2);
}

TEST(ConfigValue, ShareMayBeASizeWhateverTheWhole) {
  EXPECT_EQ(parse_share("2G")->of(64 * kGiB), 2 * kGiB);
  EXPECT_EQ(parse_share("2G")->of(kGiB), 2 * kGiB);
}

TEST(ConfigValue, WhatIsNoShareIsNothing) {
  for (const std::string_view text :
       {"", "/", "1/", "/2", "1/0", "0/0", "3/2", "1/2/3", "1G/2", "1/2G", "-1/2", "half"}) {
    EXPECT_FALSE(parse_share(text)) << '"' << text << '"';
  }
}

}  // namespace
}  // namespace understudy
