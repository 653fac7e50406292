// SPDX-License-Identifier: Apache-2.0
//
// One device, many processes: its capacity is that of all of them together, all see the same
// figures, and what a process held is free as soon as it is gone.
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <deque>
#include <numeric>
#include <string>
#include <vector>

#include "process/ledger_objects.h"
#include "support/sanitizers.h"

namespace understudy_test::ledger {
namespace {

US_PEER(LedgerUser) { serve_memory(channel); }

// Joins when told to, and keeps a piece.
US_PEER(LedgerRacer) {
  channel.send(true);
  (void)channel.receive<bool>();
  const aclError joined = aclrtSetDevice(0);
  channel.send(joined);
  ASSERT_EQ(joined, ACL_SUCCESS) << recent_error();
  Holdings holdings;
  channel.send(holdings.take(kPiece));
  channel.wait_for_end();
}

// As LedgerUser, with few descriptors.
US_PEER(LedgerFrugalUser) {
  const rlimit few{64, 64};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  serve_memory(channel);
}

TEST(Ledger, CapacityIsThatOfAllProcessesTogether) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  expect_all_free(empty);
  User first(LedgerUser);
  User second(LedgerUser);
  Holdings own;
  EXPECT_EQ(first.take_all(), empty.huge_total / kPiece);
  EXPECT_EQ(figures(), less(empty, empty.huge_total));
  EXPECT_EQ(second.take(), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(second.take_block(kPiece), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(own.take(kPiece), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(second.take_normal(4 * kKiB), ACL_SUCCESS) << "the other kind of pages";

  first.give_back_one();
  EXPECT_EQ(second.take(2 * kPiece), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(second.take(), ACL_SUCCESS);
  EXPECT_EQ(first.take(), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(figures(), less(empty, empty.huge_total, 4 * kKiB));
}

TEST(Ledger, NormalPagesAreCountedForAllTogetherToo) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  User user(LedgerUser);
  EXPECT_EQ(user.take_normal(empty.normal_total - 8 * kKiB), ACL_SUCCESS);
  Holdings own;
  EXPECT_EQ(own.take(12 * kKiB, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(own.take(8 * kKiB, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
  EXPECT_EQ(user.take_normal(1), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(user.figures(), less(empty, 0, empty.normal_total));
  own.give_back_all();
}

TEST(Ledger, ARefusedRequestLeavesNothingBehind) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  User user(LedgerUser);
  EXPECT_EQ(user.take(empty.huge_total / 2), ACL_SUCCESS);
  const Figures half = figures();
  Holdings own;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(own.take(half.huge_free + kPiece), ACL_ERROR_RT_MEMORY_ALLOCATION);
    ASSERT_EQ(own.take_block(half.huge_free + kPiece), ACL_ERROR_RT_MEMORY_ALLOCATION);
  }
  EXPECT_EQ(user.figures(), half);
  EXPECT_EQ(user.take(half.huge_free), ACL_SUCCESS) << "all that is left";
}

TEST(Ledger, EveryProcessSeesTheSameFigures) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  std::deque<User> users;
  for (int i = 0; i < 3; ++i) users.emplace_back(LedgerUser);
  Figures expected = empty;
  const auto expect_agreement = [&] {
    EXPECT_EQ(figures(), expected);
    for (User& user : users) EXPECT_EQ(user.figures(), expected);
  };
  expect_agreement();
  for (User& user : users) {
    EXPECT_EQ(user.take(6 * kMiB), ACL_SUCCESS);
    expected = less(expected, 6 * kMiB);
    expect_agreement();
    EXPECT_EQ(user.take_block(4 * kMiB), ACL_SUCCESS);
    EXPECT_EQ(user.take_normal(100 * kKiB), ACL_SUCCESS);
    expected = less(expected, 4 * kMiB, 100 * kKiB);
    expect_agreement();
  }
  users[1].give_back_all();
  expected.huge_free += 10 * kMiB;
  expected.normal_free += 100 * kKiB;
  expect_agreement();
  EXPECT_EQ(figures_of(1).huge_free, empty.huge_free) << "the other device";
}

TEST(Ledger, AKilledProcessGivesBackAtOnce) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  User survivor(LedgerUser);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    User victim(LedgerUser);
    EXPECT_EQ(victim.take_all(), empty.huge_total / kPiece);
    EXPECT_EQ(victim.take_normal(empty.normal_total), ACL_SUCCESS);
    EXPECT_EQ(survivor.take(), ACL_ERROR_RT_MEMORY_ALLOCATION);
    victim.peer().kill();
    // Nobody asks for the figures first: the request itself has to find the dead.
    EXPECT_EQ(survivor.take(empty.huge_total), ACL_SUCCESS);
    EXPECT_EQ(survivor.take_normal(empty.normal_total), ACL_SUCCESS);
    survivor.give_back_all();
  }
  EXPECT_EQ(survivor.figures(), empty);
}

TEST(Ledger, FiguresAreRightAfterEveryEnd) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  for (const int signal : {0, SIGTERM, SIGKILL}) {
    SCOPED_TRACE(signal);
    User user(LedgerUser);
    EXPECT_EQ(user.take(20 * kMiB), ACL_SUCCESS);
    EXPECT_EQ(user.take_block(4 * kMiB), ACL_SUCCESS);
    EXPECT_EQ(figures(), less(empty, 24 * kMiB));
    if (signal == 0) {
      user.peer().finish();
    } else {
      user.peer().kill(signal);
    }
    EXPECT_EQ(figures(), empty);
  }
}

TEST(Ledger, KilledInTheMidstOfChargesNothingIsLost) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    User first(LedgerUser);
    User second(LedgerUser);
    for (User* user : {&first, &second}) user->tell({.job = Job::kChurn, .size = SIZE_MAX});
    for (User* user : {&first, &second}) (void)user->answer();
    for (User* user : {&first, &second}) user->peer().kill();
    ASSERT_EQ(figures(), empty);
  }
  Holdings own;
  EXPECT_EQ(own.take_all(), empty.huge_total / kPiece);
  own.give_back_all();
}

TEST(Ledger, AStoppedProcessStopsNobody) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  User stopped(LedgerUser);
  EXPECT_EQ(stopped.take(20 * kMiB), ACL_SUCCESS);
  stopped.peer().signal(SIGSTOP);
  User late(LedgerUser);
  EXPECT_EQ(late.figures(), less(empty, 20 * kMiB));
  EXPECT_EQ(late.take_all(), empty.huge_total / kPiece - 10);
  late.peer().kill();
  EXPECT_EQ(figures(), less(empty, 20 * kMiB));
  stopped.peer().signal(SIGCONT);
  EXPECT_EQ(stopped.figures(), less(empty, 20 * kMiB));
}

TEST(Ledger, ConcurrentChargesMeetTheCapacityExactly) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  std::deque<User> users;
  for (int i = 0; i < 4; ++i) users.emplace_back(LedgerUser);
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    for (User& user : users) user.tell({.job = Job::kTakeAll});
    size_t pieces = 0;
    for (User& user : users) pieces += user.answer().count;
    EXPECT_EQ(pieces, empty.huge_total / kPiece);
    EXPECT_EQ(figures(), less(empty, empty.huge_total));
    for (User& user : users) user.tell({.job = Job::kGiveBackAll});
    for (User& user : users) (void)user.answer();
    EXPECT_EQ(figures(), empty);
  }
}

// With room for all of them at any moment, none may be refused.
TEST(Ledger, NobodyIsRefusedWhileThereIsRoom) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  std::deque<User> users;
  for (int i = 0; i < 3; ++i) users.emplace_back(LedgerUser);
  // All but what the three hold at most, and one piece to spare.
  const size_t room = 3 * kChurnHolds + kPiece;
  Holdings own;
  EXPECT_EQ(own.take(empty.huge_total - room), ACL_SUCCESS);
  for (User& user : users) user.tell({.job = Job::kChurn, .size = 2000});
  for (User& user : users) (void)user.answer();
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(own.take(kPiece), ACL_SUCCESS) << i;
    own.give_back_one();
    ASSERT_LE(figures().huge_free, room);
  }
  for (User& user : users) EXPECT_EQ(user.answer().code, ACL_SUCCESS);
  own.give_back_all();
  EXPECT_EQ(figures(), empty);
}

TEST(Ledger, HundredsOfProcessesJoinAtOnce) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"});
  const size_t processes = kSanitized ? 40 : 250;
  std::deque<Peer> racers;
  for (size_t i = 0; i < processes; ++i) racers.emplace_back(LedgerRacer);
  for (Peer& racer : racers) EXPECT_TRUE(racer.receive<bool>());
  for (Peer& racer : racers) racer.send(true);
  for (Peer& racer : racers) EXPECT_EQ(racer.receive<aclError>(), ACL_SUCCESS);
  for (Peer& racer : racers) EXPECT_EQ(racer.receive<aclError>(), ACL_SUCCESS);
  const Figures seen = figures_of(0);
  EXPECT_EQ(seen.huge_total - seen.huge_free, processes * kPiece);
  for (Peer& racer : racers) racer.finish();
  expect_all_free(figures());
}

TEST(Ledger, FewDescriptorsAreEnough) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  User user(LedgerFrugalUser);
  EXPECT_EQ(user.take_all(), empty.huge_total / kPiece);
  EXPECT_EQ(figures(), less(empty, empty.huge_total));
  user.give_back_all();
  EXPECT_EQ(user.figures(), empty);
}

}  // namespace
}  // namespace understudy_test::ledger
