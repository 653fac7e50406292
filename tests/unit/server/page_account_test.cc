// SPDX-License-Identifier: Apache-2.0
//
// The words by which processes take pages: two of them in one process, each with its own mapping of
// the ledger, so that threads can have them at it at once.
#include "server/page_account.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "unit/ledger_image.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

constexpr uint64_t kAll = TestServer::kHugeMemory / kNormalPage;
constexpr uint64_t kPiece = 100;             // pages
constexpr uint64_t kMostLeased = kAll / 16;  // of such a small pool

class PageAccountTest : public testing::Test {
 protected:
  struct Process {
    explicit Process(const TestServer& server)
        : file(value_of(LedgerFile::open(
              value_of(platform::PrivateDirectory::open_or_make(server.directory().path()))))),
          slots(file),
          account(file, slots, 0, 1) {
      EXPECT_TRUE(is_ok(slots.take(kNever)));
    }
    ~Process() { slots.leave(); }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    bool charge(uint64_t pages) { return account.charge(pages) || charge_slow(pages); }
    bool charge_slow(uint64_t pages) {
      const PageAccount::Demand demand{&account, pages};
      return PageAccount::charge_slow({&demand, 1}, slots, kNever);
    }

    LedgerFile file;
    ProcessSlots slots;
    PageAccount account;
  };

  Process& join() { return processes_.emplace_back(server_); }
  PoolWord word_of(const Process& process) const {
    return PoolWord(image_.pages(process.slots.own_slot()).load());
  }

  TestServer server_;
  const std::unique_ptr<Server> first_ = server_.join();  // has the server begun
  LedgerImage image_{server_};
  std::deque<Process> processes_;
};

TEST_F(PageAccountTest, LeaseIsGrantedAheadAndNotUsed) {
  Process& process = join();
  ASSERT_TRUE(process.account.charge(kPiece));
  EXPECT_EQ(word_of(process), PoolWord(kPiece, kPiece));
  EXPECT_EQ(process.account.used(), kPiece);
  EXPECT_EQ(process.account.own_used(), kPiece);
  // The lease pays for the next one.
  ASSERT_TRUE(process.account.charge(kPiece));
  EXPECT_EQ(word_of(process), PoolWord(2 * kPiece, 0));
  process.account.credit(2 * kPiece);
  EXPECT_EQ(word_of(process), PoolWord(0, 2 * kPiece));
  EXPECT_EQ(process.account.used(), 0u);
}

TEST_F(PageAccountTest, LeaseGrowsWithWhatIsUsed) {
  Process& process = join();
  ASSERT_TRUE(process.account.charge(kAll / 2));
  EXPECT_EQ(word_of(process), PoolWord(kAll / 2, kMostLeased));
  process.account.credit(kAll / 4);
  EXPECT_EQ(word_of(process), PoolWord(kAll / 4, kMostLeased));
  ASSERT_TRUE(process.account.charge(kMostLeased));
  ASSERT_TRUE(process.account.charge(1));
  EXPECT_EQ(word_of(process).leased(), (kAll / 4 + kMostLeased) / 8);
}

TEST_F(PageAccountTest, NothingIsGrantedAheadWhereItDoesNotFit) {
  Process& process = join();
  ASSERT_TRUE(process.account.charge(kAll - kPiece));
  EXPECT_EQ(word_of(process), PoolWord(kAll - kPiece, 0));
  ASSERT_TRUE(process.account.charge(kPiece));
  EXPECT_FALSE(process.account.charge(1));
  EXPECT_EQ(word_of(process), PoolWord(kAll, 0));
  EXPECT_FALSE(process.charge_slow(1));
}

TEST_F(PageAccountTest, LeasesOfOthersAreRevokedWhenPagesAreShort) {
  Process& holder = join();
  ASSERT_TRUE(holder.account.charge(kPiece));
  holder.account.credit(kPiece);
  ASSERT_GT(word_of(holder).leased(), 0u);
  Process& needy = join();
  EXPECT_TRUE(needy.account.charge(kAll));
  EXPECT_EQ(word_of(holder), PoolWord(0, 0));
  EXPECT_FALSE(holder.charge(1));
  needy.account.credit(kAll);
  EXPECT_TRUE(holder.account.charge(1));
}

// One that fails in any case takes no lease from anyone.
TEST_F(PageAccountTest, LeasesAreNotRevokedForNothing) {
  Process& holder = join();
  ASSERT_TRUE(holder.account.charge(kPiece));
  const PoolWord before = word_of(holder);
  ASSERT_GT(before.leased(), 0u);
  Process& needy = join();
  EXPECT_FALSE(needy.charge(kAll - kPiece + 1));
  EXPECT_EQ(word_of(holder), before);
}

TEST_F(PageAccountTest, InvalidatedProcessIsGrantedPagesByItsNextRequest) {
  Process& process = join();
  std::atomic<uint64_t>& word = image_.pages(process.slots.own_slot());
  word.fetch_or(PoolWord::kInvalidated);
  EXPECT_TRUE(process.account.charge(kPiece));
  EXPECT_EQ(word_of(process), PoolWord(kPiece, kPiece));
  EXPECT_EQ(image_.pending(process.slots.own_slot()).load(), 0u);
}

// As one does that is stopped in the middle of a request.
TEST_F(PageAccountTest, WhatStaysPendingElsewhereDoesNotCountInTheEnd) {
  Process& stopped = join();
  image_.pending(stopped.slots.own_slot()).store(kAll);
  Process& process = join();
  EXPECT_FALSE(process.account.charge(kPiece));
  EXPECT_TRUE(process.charge_slow(kPiece));
  EXPECT_TRUE(word_of(stopped).is_invalidated());
  EXPECT_EQ(process.account.used(), kPiece);
  EXPECT_TRUE(process.account.charge(kPiece)) << "it counts no longer";
}

TEST_F(PageAccountTest, AllIsGivenBackAtOnce) {
  Process& process = join();
  ASSERT_TRUE(process.account.charge(kPiece));
  std::atomic<uint64_t> remembered{7};
  process.account.credit_all(remembered);
  EXPECT_EQ(remembered.load(), 7 + kPiece);
  EXPECT_EQ(word_of(process), PoolWord(0, 0));
}

// Threads of two processes charge and credit, and one revokes leases all the time, because it wants
// more than is ever free.
TEST_F(PageAccountTest, NoMoreIsUsedThanThereIs) {
  constexpr uint64_t kLarge = kAll / 8;
  Process& one = join();
  Process& two = join();
  std::atomic<uint64_t> held{0};
  run_on_threads(4, [&](int thread) {
    Process& own = thread % 2 == 0 ? one : two;
    for (int round = 0; round < 100; ++round) {
      uint64_t mine = 0;
      for (int i = 0; i < 5; ++i) {
        const uint64_t pages = i == 0 ? kLarge + kPiece : kLarge / 2 + static_cast<uint64_t>(i);
        if (!own.charge(pages)) continue;
        mine += pages;
        ASSERT_LE(held.fetch_add(pages) + pages, kAll);
      }
      held.fetch_sub(mine);
      own.account.credit(mine);
    }
  });
  EXPECT_EQ(one.account.used(), 0u);
  Process& last = join();
  EXPECT_TRUE(last.charge(kAll)) << "nothing was lost";
}

// With room for all of them at any moment, none may be refused, whatever is leased and pending.
TEST_F(PageAccountTest, NoneIsRefusedWhileThereIsRoom) {
  constexpr uint64_t kShare = kAll / 4;
  Process& one = join();
  Process& two = join();
  run_on_threads(4, [&](int thread) {
    Process& own = thread % 2 == 0 ? one : two;
    for (int round = 0; round < 200; ++round) {
      ASSERT_TRUE(own.charge(kShare - kPiece));
      ASSERT_TRUE(own.charge(kPiece));
      own.account.credit(kShare);
    }
  });
  EXPECT_EQ(two.account.used(), 0u);
}

TEST_F(PageAccountTest, SeveralDemandsAreMetTogetherOrNotAtAll) {
  Process& process = join();
  PageAccount normal(process.file, process.slots, 0, 0);
  const uint64_t all_normal = TestServer::kNormalMemory / kNormalPage;
  ASSERT_TRUE(normal.charge(1));
  const auto charge_both = [&] {
    const std::array<PageAccount::Demand, 2> both{
        {{&process.account, kAll}, {&normal, all_normal}}};
    return PageAccount::charge_slow(both, process.slots, kNever);
  };
  EXPECT_FALSE(charge_both());
  EXPECT_EQ(process.account.used(), 0u);
  normal.credit(1);
  EXPECT_TRUE(charge_both());
  EXPECT_EQ(process.account.used(), kAll);
  EXPECT_EQ(normal.used(), all_normal);
}

}  // namespace
}  // namespace understudy
