// SPDX-License-Identifier: Apache-2.0
#include "server/pool_word.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace understudy {
namespace {

constexpr uint64_t kMost = 100;  // of a lease

TEST(PoolWordTest, KeepsWhatIsUsedAndWhatIsLeased) {
  const PoolWord word(PoolWord::kMostUsed, PoolWord::kMostLeased);
  EXPECT_EQ(word.used(), PoolWord::kMostUsed);
  EXPECT_EQ(word.leased(), PoolWord::kMostLeased);
  EXPECT_EQ(word.granted(), PoolWord::kMostUsed + PoolWord::kMostLeased);
  EXPECT_FALSE(word.is_invalidated());
  const PoolWord invalidated(word.word() | PoolWord::kInvalidated);
  EXPECT_TRUE(invalidated.is_invalidated());
  EXPECT_EQ(invalidated.granted(), word.granted());
}

TEST(PoolWordTest, ChargesAndCreditsMovePagesBetweenUseAndLease) {
  EXPECT_EQ(PoolWord(3, 10).spent(4), PoolWord(7, 6));
  EXPECT_EQ(PoolWord(3, 10).spent(10), PoolWord(13, 0));
  EXPECT_EQ(PoolWord(7, 6).credited(4, kMost), PoolWord(3, 10));
}

TEST(PoolWordTest, LeaseGrowsToTheMostAndNoFurther) {
  EXPECT_EQ(PoolWord(7, 6).with_grant(5, 20, kMost), PoolWord(12, 26));
  EXPECT_EQ(PoolWord(7, 96).with_grant(5, 20, kMost), PoolWord(12, kMost));
  EXPECT_EQ(PoolWord(50, 80).credited(30, kMost), PoolWord(20, kMost));
  EXPECT_EQ(PoolWord(50, 80).credited(30, 0), PoolWord(20, 0));
}

TEST(PoolWordTest, CreditOfMoreThanIsUsedTakesWhatThereIs) {
  EXPECT_EQ(PoolWord(5, 1).credited(9, kMost), PoolWord(0, 6));
}

TEST(PoolWordTest, ChangesKeepWhatOthersSaid) {
  const PoolWord word(PoolWord(7, 6).word() | PoolWord::kInvalidated);
  for (const PoolWord changed :
       {word.spent(1), word.with_grant(1, 1, kMost), word.credited(1, kMost), word.revoked()}) {
    EXPECT_TRUE(changed.is_invalidated());
  }
  EXPECT_EQ(PoolWord(7, 6).revoked(), PoolWord(7, 0));
}

}  // namespace
}  // namespace understudy
