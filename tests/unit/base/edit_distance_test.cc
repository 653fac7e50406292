// SPDX-License-Identifier: Apache-2.0
#include "base/edit_distance.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace understudy {
namespace {

TEST(EditDistance, OfEqualWordsIsZero) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("memory", "memory"), 0U);
}

TEST(EditDistance, CountsMissingAndAddedLetters) {
  EXPECT_EQ(edit_distance("device", "devices"), 1U);
  EXPECT_EQ(edit_distance("devicess", "devices"), 1U);
  EXPECT_EQ(edit_distance("", "log"), 3U);
  EXPECT_EQ(edit_distance("log", ""), 3U);
}

TEST(EditDistance, CountsWrongLettersAndNeighborsThatChangedPlaces) {
  EXPECT_EQ(edit_distance("pradukt", "product"), 2U);
  EXPECT_EQ(edit_distance("memroy", "memory"), 1U);
  EXPECT_EQ(edit_distance("ab", "ba"), 1U);
  EXPECT_EQ(edit_distance("abc", "cba"), 2U);
}

TEST(EditDistance, IsTheSameBothWays) {
  const std::string words[] = {"", "a", "poison", "posion", "backing", "host_budget"};
  for (const std::string& one : words) {
    for (const std::string& other : words) {
      EXPECT_EQ(edit_distance(one, other), edit_distance(other, one)) << one << " " << other;
    }
  }
}

TEST(EditDistance, WordIsLikelyWithOneSlipInThreeLetters) {
  EXPECT_TRUE(is_likely("memroy", "memory"));
  EXPECT_TRUE(is_likely("rnu", "run"));
  EXPECT_FALSE(is_likely("pp", "ps"));
  EXPECT_FALSE(is_likely("dance", "devices"));
}

TEST(EditDistance, LikelyWordIsTheNearest) {
  const std::string_view words[] = {"devices", "device", "memory"};
  EXPECT_EQ(likely_word("devcie", words), "device");
  EXPECT_EQ(likely_word("dvices", words), "devices");
  EXPECT_EQ(likely_word("dance", words), std::nullopt);
  EXPECT_EQ(likely_word("", words), std::nullopt);
  EXPECT_EQ(likely_word("devices" + std::string(1 << 20, 's'), words), std::nullopt);
  EXPECT_EQ(likely_word("devices", {}), std::nullopt);
  // A short word may be near and not likely.
  const std::string_view shells[] = {"sh", "fish"};
  EXPECT_EQ(likely_word("fsh", shells), "fish");
}

}  // namespace
}  // namespace understudy
