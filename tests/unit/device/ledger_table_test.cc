// SPDX-License-Identifier: Apache-2.0
#include "device/ledger_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <set>

#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

TEST(ShareTokenTest, KeepsNumberAndSecret) {
  for (const uint32_t number : {0u, 1u, kMostShares - 1}) {
    const uint64_t secret = make_secret();
    const ShareToken token(number, secret);
    EXPECT_EQ(token.number(), number);
    EXPECT_EQ(token.secret(), secret);
    EXPECT_EQ(ShareToken(token.word()).secret(), secret);
  }
}

TEST(ShareTokenTest, SecretsDifferAndFit) {
  std::set<uint64_t> secrets;
  for (int i = 0; i < 10000; ++i) secrets.insert(make_secret());
  EXPECT_EQ(secrets.size(), 10000u);
  EXPECT_FALSE(secrets.contains(0));
  EXPECT_LT(*secrets.rbegin(), uint64_t{1} << (64 - ShareToken::kNumberBits));
}

template <typename Traits>
class LedgerTable : public testing::Test {
 protected:
  LedgerTable() : ledger_(value_of(Ledger::make_private(TestServer::shape()))) {}

  Result<uint32_t> take() { return take_entry<Traits>(*ledger_); }
  uint32_t take_live() {
    const uint32_t number = value_of(take());
    entry(number).live.store(1);
    entry(number).secret.store(number + 100);
    return number;
  }
  auto& entry(uint32_t number) { return Traits::at(*ledger_, number); }
  TableHead& head() { return Traits::head(*ledger_); }

  std::unique_ptr<Ledger> ledger_;
};
using Tables = testing::Types<ShareTableTraits, EventTableTraits>;
TYPED_TEST_SUITE(LedgerTable, Tables);

TYPED_TEST(LedgerTable, EntriesAreTakenInOrderAndTheLastFreedFirst) {
  for (uint32_t number = 0; number < 4; ++number) EXPECT_EQ(this->take_live(), number);
  free_entry<TypeParam>(*this->ledger_, 1);
  free_entry<TypeParam>(*this->ledger_, 2);
  EXPECT_EQ(this->entry(1).secret.load(), 0u);
  EXPECT_EQ(this->entry(1).live.load(), 0u);
  EXPECT_EQ(this->take_live(), 2u);
  EXPECT_EQ(this->take_live(), 1u);
  EXPECT_EQ(this->take_live(), 4u);
  EXPECT_EQ(this->head().high.load(), 5u);
}

TYPED_TEST(LedgerTable, TokenFindsItsEntryAndNoOther) {
  const uint32_t number = this->take_live();
  Ledger& ledger = *this->ledger_;
  EXPECT_EQ(find_entry<TypeParam>(ledger, ShareToken(number, number + 100)), &this->entry(number));
  for (const ShareToken token :
       {ShareToken(0), ShareToken(number, number + 101), ShareToken(number + 1, 0),
        ShareToken(number + 1, number + 100), ShareToken(UINT64_MAX), ShareToken(number, 0)}) {
    EXPECT_EQ(find_entry<TypeParam>(ledger, token), nullptr) << token.word();
  }
  free_entry<TypeParam>(ledger, number);
  EXPECT_EQ(find_entry<TypeParam>(ledger, ShareToken(number, number + 100)), nullptr);
  EXPECT_EQ(find_entry<TypeParam>(ledger, ShareToken(number, 0)), nullptr);
}

TYPED_TEST(LedgerTable, ListOfFreeEntriesCanBeMadeAnew) {
  for (int i = 0; i < 5; ++i) this->take_live();
  // As if someone had died with entries on the way from or to the list.
  this->entry(1).live.store(0);
  this->entry(3).live.store(0);
  this->head().first_free = 5;
  relist_free_entries<TypeParam>(*this->ledger_);
  EXPECT_EQ(this->entry(3).secret.load(), 0u);
  EXPECT_EQ(this->take_live(), 1u);
  EXPECT_EQ(this->take_live(), 3u);
  EXPECT_EQ(this->take_live(), 5u);
}

TYPED_TEST(LedgerTable, FullTableSaysSoAndTakesOneAgainWhenOneIsFree) {
  this->head().high.store(TypeParam::kMost);
  this->head().backed.store(TypeParam::kMost);
  EXPECT_TRUE(fails_with(this->take(), ErrorCode::kOutOfResources));
  EXPECT_EQ(this->head().high.load(), TypeParam::kMost);
  free_entry<TypeParam>(*this->ledger_, TypeParam::kMost - 1);
  EXPECT_EQ(value_of(this->take()), TypeParam::kMost - 1);
  EXPECT_TRUE(fails_with(this->take(), ErrorCode::kOutOfResources));
}

TYPED_TEST(LedgerTable, LastEntryOfAllCanBeTaken) {
  // The steps by which it grows end exactly at its end.
  constexpr uint32_t kStep = 512;
  constexpr uint32_t kFirst = TypeParam::kMost - kStep;
  this->head().high.store(kFirst);
  this->head().backed.store(kFirst);
  for (uint32_t i = 0; i < kStep; ++i) ASSERT_EQ(this->take_live(), kFirst + i);
  EXPECT_TRUE(fails_with(this->take(), ErrorCode::kOutOfResources));
}

TYPED_TEST(LedgerTable, HostWithoutRoomForMoreIsAnErrorAndTheNextTrySucceeds) {
  const TestServer server;
  this->ledger_ = server.join();
  const uint32_t first = this->take_live();
  const uint32_t backed = this->head().backed.load();
  while (this->head().high.load() < backed) this->take_live();
  {
    const platform::PlannedFault fault(platform::SystemCall::kCommit, 1, ENOSPC);
    EXPECT_TRUE(fails_with(this->take(), ErrorCode::kOutOfResources));
  }
  EXPECT_EQ(this->head().high.load(), backed);
  // Whoever gives one back makes room.
  free_entry<TypeParam>(*this->ledger_, first);
  {
    const platform::PlannedFault fault(platform::SystemCall::kCommit, 1, ENOSPC);
    EXPECT_EQ(this->take_live(), first);
    EXPECT_FALSE(fault.happened());
  }
  EXPECT_EQ(this->take_live(), backed);
}

}  // namespace
}  // namespace understudy
