// SPDX-License-Identifier: Apache-2.0
#include "server/entry_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <type_traits>

#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"
#include "unit/temporary_directory.h"
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

template <typename Entry>
class EntryTableTest : public testing::Test {
 protected:
  static constexpr bool kIsShares = std::is_same_v<Entry, ShareEntry>;
  static constexpr uint32_t kMost = kIsShares ? kMostShares : kMostEvents;

  EntryTableTest() : file_(value_of(LedgerFile::make_private())) { begin(); }

  void begin() {
    EXPECT_TRUE(is_ok(file_.begin(TestServer::shape())));
    if constexpr (kIsShares) {
      table_.emplace(file_, file_.header().shares, file_.shares(), kMost);
    } else {
      table_.emplace(file_, file_.header().events, file_.events(), kMost);
    }
  }
  TableHead& head() { return kIsShares ? file_.header().shares : file_.header().events; }
  Result<uint32_t> take() { return table_->take(); }
  uint32_t take_live() {
    const uint32_t number = value_of(take());
    entry(number).live.store(1);
    entry(number).secret.store(number + 100);
    return number;
  }
  void free(uint32_t number) { table_->free(number); }
  Entry* find(ShareToken token) { return table_->find(token); }
  Entry& entry(uint32_t number) { return (*table_)[number]; }

  LedgerFile file_;
  std::optional<EntryTable<Entry>> table_;
};
using Entries = testing::Types<ShareEntry, EventEntry>;
TYPED_TEST_SUITE(EntryTableTest, Entries);

TYPED_TEST(EntryTableTest, EntriesAreTakenInOrderAndTheLastFreedFirst) {
  for (uint32_t number = 0; number < 4; ++number) EXPECT_EQ(this->take_live(), number);
  this->free(1);
  this->free(2);
  EXPECT_EQ(this->entry(1).secret.load(), 0u);
  EXPECT_EQ(this->entry(1).live.load(), 0u);
  EXPECT_EQ(this->take_live(), 2u);
  EXPECT_EQ(this->take_live(), 1u);
  EXPECT_EQ(this->take_live(), 4u);
  EXPECT_EQ(this->head().high.load(), 5u);
}

TYPED_TEST(EntryTableTest, TokenFindsItsEntryAndNoOther) {
  const uint32_t number = this->take_live();
  EXPECT_EQ(this->find(ShareToken(number, number + 100)), &this->entry(number));
  for (const ShareToken token :
       {ShareToken(0), ShareToken(number, number + 101), ShareToken(number + 1, 0),
        ShareToken(number + 1, number + 100), ShareToken(UINT64_MAX), ShareToken(number, 0)}) {
    EXPECT_EQ(this->find(token), nullptr) << token.word();
  }
  this->free(number);
  EXPECT_EQ(this->find(ShareToken(number, number + 100)), nullptr);
  EXPECT_EQ(this->find(ShareToken(number, 0)), nullptr);
}

TYPED_TEST(EntryTableTest, ListOfFreeEntriesCanBeMadeAnew) {
  for (int i = 0; i < 5; ++i) this->take_live();
  // As if a process had died with entries on the way from or to the list.
  this->entry(1).live.store(0);
  this->entry(3).live.store(0);
  this->head().first_free = 5;
  this->table_->relist();
  EXPECT_EQ(this->entry(3).secret.load(), 0u);
  EXPECT_EQ(this->take_live(), 1u);
  EXPECT_EQ(this->take_live(), 3u);
  EXPECT_EQ(this->take_live(), 5u);
}

TYPED_TEST(EntryTableTest, FullTableSaysSoAndTakesOneAgainWhenOneIsFree) {
  this->head().high.store(TestFixture::kMost);
  this->head().backed.store(TestFixture::kMost);
  EXPECT_TRUE(fails_with(this->take(), ErrorCode::kOutOfResources));
  EXPECT_EQ(this->head().high.load(), TestFixture::kMost);
  this->free(TestFixture::kMost - 1);
  EXPECT_EQ(value_of(this->take()), TestFixture::kMost - 1);
  EXPECT_TRUE(fails_with(this->take(), ErrorCode::kOutOfResources));
}

TYPED_TEST(EntryTableTest, LastEntryOfAllCanBeTaken) {
  // The steps by which it grows end exactly at its end.
  constexpr uint32_t kStep = 512;
  constexpr uint32_t kFirst = TestFixture::kMost - kStep;
  this->head().high.store(kFirst);
  this->head().backed.store(kFirst);
  for (uint32_t i = 0; i < kStep; ++i) ASSERT_EQ(this->take_live(), kFirst + i);
  EXPECT_TRUE(fails_with(this->take(), ErrorCode::kOutOfResources));
}

TYPED_TEST(EntryTableTest, HostWithoutRoomForMoreIsAnErrorAndTheNextTrySucceeds) {
  const TemporaryDirectory directory;
  std::destroy_at(&this->file_);
  std::construct_at(&this->file_,
                    value_of(LedgerFile::open(
                        value_of(platform::PrivateDirectory::open_or_make(directory.path())))));
  this->begin();
  const uint32_t first = this->take_live();
  const uint32_t backed = this->head().backed.load();
  while (this->head().high.load() < backed) this->take_live();
  {
    const platform::PlannedFault fault(platform::SystemCall::kCommit, 1, ENOSPC);
    EXPECT_TRUE(fails_with(this->take(), ErrorCode::kOutOfResources));
  }
  EXPECT_EQ(this->head().high.load(), backed);
  // One that is given back makes room.
  this->free(first);
  {
    const platform::PlannedFault fault(platform::SystemCall::kCommit, 1, ENOSPC);
    EXPECT_EQ(this->take_live(), first);
    EXPECT_FALSE(fault.happened());
  }
  EXPECT_EQ(this->take_live(), backed);
}

}  // namespace
}  // namespace understudy
