// SPDX-License-Identifier: Apache-2.0
//
// Processes that were granted memory ahead of its use: it is free in every figure, and there for
// any process that needs it, whatever became of its own.
#include <sys/wait.h>

#include <csignal>
#include <cstdint>
#include <deque>
#include <string>

#include "process/ledger_objects.h"
#include "support/sanitizers.h"

namespace understudy_test::ledger {
namespace {

US_PEER(LeaseUser) { serve_memory(channel); }

// A process that has had pieces of both kinds, and may have some of them again at once.
class LeaseHolder : public User {
 public:
  LeaseHolder() : User(LeaseUser) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(take(), ACL_SUCCESS);
      EXPECT_EQ(take_normal(64 * kKiB), ACL_SUCCESS);
    }
    give_back_all();
  }
};

// All memory of the device in one piece of each kind.
void expect_everything_for(User& user, const Figures& empty) {
  EXPECT_EQ(user.take(empty.huge_total), ACL_SUCCESS);
  EXPECT_EQ(user.take_normal(empty.normal_total), ACL_SUCCESS);
  EXPECT_EQ(user.figures(), less(empty, empty.huge_total, empty.normal_total));
  user.give_back_all();
  EXPECT_EQ(user.figures(), empty);
}

TEST(LedgerLeases, WhatWasGivenBackIsThereForAllOthers) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  std::deque<LeaseHolder> holders(4);
  EXPECT_EQ(figures(), empty);
  for (LeaseHolder& holder : holders) expect_everything_for(holder, empty);
}

TEST(LedgerLeases, KilledHoldersTakeNothingWithThem) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  User survivor(LeaseUser);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    std::deque<LeaseHolder> holders(2);
    EXPECT_EQ(holders[0].take(), ACL_SUCCESS);
    EXPECT_EQ(survivor.figures(), less(empty, kPiece));
    for (LeaseHolder& holder : holders) holder.peer().kill();
    EXPECT_EQ(survivor.figures(), empty);
    expect_everything_for(survivor, empty);
  }
}

TEST(LedgerLeases, StoppedHolderKeepsOnlyWhatItUses) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  LeaseHolder stopped;
  EXPECT_EQ(stopped.take(), ACL_SUCCESS);
  stopped.peer().signal(SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(stopped.peer().pid(), &status, WUNTRACED), stopped.peer().pid());
  User needy(LeaseUser);
  EXPECT_EQ(needy.figures(), less(empty, kPiece));
  EXPECT_EQ(needy.take(empty.huge_total - kPiece), ACL_SUCCESS);
  EXPECT_EQ(needy.take_normal(empty.normal_total), ACL_SUCCESS);
  EXPECT_EQ(needy.take(), ACL_ERROR_RT_MEMORY_ALLOCATION);
  stopped.peer().signal(SIGCONT);
  EXPECT_EQ(stopped.take(), ACL_ERROR_RT_MEMORY_ALLOCATION);
  needy.give_back_all();
  EXPECT_EQ(stopped.take(), ACL_SUCCESS);
  EXPECT_EQ(figures(), less(empty, 2 * kPiece));
}

// Their leases together would be far more than there is.
TEST(LedgerLeases, FiguresOfHundredsOfProcessesAreExact) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  const size_t processes = kSanitized ? 32 : 256;
  std::deque<LeaseHolder> holders(processes);
  EXPECT_EQ(figures(), empty);
  expect_everything_for(holders.back(), empty);
  // Every second one has a piece of normal pages.
  size_t normal = 0;
  for (size_t i = 0; i < processes; i += 2) {
    EXPECT_EQ(holders[i].take_normal(4 * kKiB), ACL_SUCCESS);
    normal += 4 * kKiB;
    ASSERT_EQ(figures(), less(empty, 0, normal));
  }
  EXPECT_EQ(holders[1].take(empty.huge_total), ACL_SUCCESS);
  EXPECT_EQ(holders[0].figures(), less(empty, empty.huge_total, normal));
  holders[1].give_back_all();
  for (size_t i = 0; i < processes; ++i) {
    holders[i].peer().kill();
    if (i % 2 == 0) normal -= 4 * kKiB;
    ASSERT_EQ(figures(), less(empty, 0, normal)) << i;
  }
}

}  // namespace
}  // namespace understudy_test::ledger
