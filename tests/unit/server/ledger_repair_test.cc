// SPDX-License-Identifier: Apache-2.0
//
// Processes that die in the middle of a change of the ledger, at every named point inside it once:
// the next process that takes the lock repairs what they left. The points are in the functions
// themselves (base/kill_point.h); each test lists those that it expects to be reached, in order.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "base/kill_point.h"
#include "unit/ledger_image.h"
#include "unit/share_rig.h"

namespace understudy {
namespace {

constexpr uint64_t kPages = kShareBytes / kNormalPage;

using Points = std::vector<std::string>;

// The points that a child process reached, and the one at which it gets a signal; in memory that
// outlives the child.
class KillPlan {
 public:
  KillPlan() {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_ = new (memory) Shared();
  }
  ~KillPlan() { munmap(shared_, sizeof(Shared)); }
  KillPlan(const KillPlan&) = delete;
  KillPlan& operator=(const KillPlan&) = delete;

  // For the child: from now on, the n-th point is the last one.
  void arm(size_t at, int signal = SIGKILL) const {
    at_ = at;
    signal_ = signal;
    current_ = shared_;
    kill_point_handler.store(&reach);
  }
  static void disarm() { kill_point_handler.store(nullptr); }
  size_t count() const { return shared_->count.load(); }
  Points points() const {
    Points found;
    for (size_t i = 0; i < count(); ++i) found.emplace_back(shared_->names[i].data());
    return found;
  }

 private:
  struct Shared {
    std::atomic<size_t> count{0};
    std::array<std::array<char, 40>, 100> names{};
  };

  static void reach(const char* name) {
    const size_t number = current_->count.load();
    strncpy(current_->names.at(number).data(), name, current_->names[0].size() - 1);
    current_->count.store(number + 1);
    if (number + 1 == at_) raise(signal_);
  }

  static inline size_t at_ = 0;
  static inline int signal_ = 0;
  static inline Shared* current_ = nullptr;
  Shared* shared_ = nullptr;
};

// One death: a fresh server with this process in slot 0, and a child that dies at one point.
struct Death {
  TestServer server;
  ShareRig own{server};
  LedgerImage image{server};
  KillPlan plan;
  size_t at = 0;

  void arm() const { plan.arm(at); }

  // What must be true whatever happened: a share can be made, held and ended, and all is free.
  void expect_sound() {
    EXPECT_EQ(own.used(), 0u);
    EXPECT_EQ(image.header().changes.load() % 2, 0u);
    EXPECT_EQ(image.held_back().load(), 0u);
    const ShareToken token = own.add();
    EXPECT_EQ(token.number(), 0u);
    EXPECT_EQ(own.used(), kShareBytes);
    EXPECT_EQ(own.drop(token), AfterDrop::kOwnAgain);
    EXPECT_EQ(own.used(), 0u);
    EXPECT_EQ(own.slots.holds(), 0u);
    EXPECT_FALSE(own.has_returns());
  }
};

// Runs a test for the death at each of the points. The change is done without a death first, to see
// which there are.
void die_at_each(const Points& expected, const std::function<void(Death&)>& test) {
  for (size_t at = 0; at <= expected.size(); ++at) {
    SCOPED_TRACE(at == 0 ? "without a death" : "death at " + expected[at - 1]);
    Death death;
    death.at = at;
    test(death);
    const Points reached(expected.begin(),
                         expected.begin() + static_cast<ptrdiff_t>(at == 0 ? expected.size() : at));
    ASSERT_EQ(death.plan.points(), reached);
  }
}

// The body of a child that joins, prepares, says a word, waits for one, and then changes something.
using Step = std::function<uint64_t(ShareRig&)>;
auto changer(const Death& death, Step prepare, std::function<void(ShareRig&)> change) {
  return [&death, prepare = std::move(prepare), change = std::move(change)](const Line& line) {
    ShareRig theirs(death.server);
    line.say(prepare(theirs));
    line.hear_word();
    death.arm();
    change(theirs);
    KillPlan::disarm();
  };
}
void expect_end(const Death& death, OtherProcess& child) {
  EXPECT_TRUE(death.at == 0 ? child.ended_well() : child.ended_by(SIGKILL));
}
// Has it do so, and waits for its end.
void let_change(const Death& death, OtherProcess& child) {
  child.say();
  expect_end(death, child);
}

uint64_t nothing(ShareRig&) { return 0; }

TEST(LedgerRepair, DeathInAnExportLeavesNothing) {
  die_at_each(
      {"entry.taken", "share.add.described", "share.add.held", "share.add.counted",
       "share.add.live", "share.add.open", "share.add.charged_twice", "share.add.charged"},
      [](Death& death) {
        OtherProcess exporter(changer(
            death,
            [](ShareRig& theirs) {
              EXPECT_TRUE(theirs.capacity.charge({0, PageKind::kHuge, kShareBytes}));
              return 0;
            },
            [](ShareRig& theirs) { (void)value_of(theirs.shares.add(ShareRig::description())); }));
        exporter.hear_word();
        let_change(death, exporter);
        death.expect_sound();
      });
}

const Points kLastDrop{"share.drop.closed", "share.drop.dropped", "share.drop.counted",
                       "share.end.closed", "share.end.credited"};
Points with(Points points, const Points& more) {
  points.insert(points.end(), more.begin(), more.end());
  return points;
}

TEST(LedgerRepair, DeathInALastDropReturnsTheMemoryToItsOwner) {
  die_at_each(with(kLastDrop, {"share.end.returned", "share.end.counted"}), [](Death& death) {
    const ShareToken token = death.own.add();
    OtherProcess holder(changer(
        death, [&](ShareRig& theirs) { return theirs.hold(token); },
        [&](ShareRig& theirs) { (void)theirs.drop(token); }));
    EXPECT_EQ(holder.hear_word(), 1u);
    EXPECT_EQ(death.own.drop(token), AfterDrop::kHeld);
    let_change(death, holder);
    EXPECT_EQ(death.own.used(), 0u);
    EXPECT_TRUE(death.own.has_returns());
    EXPECT_EQ(death.own.take_returns(), std::vector<uint32_t>{0});
    death.expect_sound();
  });
}

TEST(LedgerRepair, DeathInTheOwnersLastDropLeavesNothing) {
  die_at_each(with(kLastDrop, {"entry.not_live", "entry.linked"}), [](Death& death) {
    OtherProcess owner(changer(
        death, [](ShareRig& theirs) { return theirs.add().word(); },
        [](ShareRig& theirs) { (void)value_of(theirs.shares.drop(0)); }));
    owner.hear_word();
    let_change(death, owner);
    death.expect_sound();
  });
}

TEST(LedgerRepair, DeathInABatchLeavesNothing) {
  const Points one =
      with({"share.release.next"}, with(kLastDrop, {"entry.not_live", "entry.linked"}));
  die_at_each(with(one, one), [](Death& death) {
    OtherProcess owner(changer(
        death,
        [](ShareRig& theirs) {
          (void)theirs.add();
          return theirs.add().number();
        },
        [](ShareRig& theirs) {
          std::array<Release, 2> batch;
          for (uint32_t number : {0u, 1u}) {
            batch[number] = {.number = number,
                             .close_secret = theirs.shares.token_of(number)->secret(),
                             .drop = true};
          }
          EXPECT_TRUE(theirs.shares.try_release(batch));
        }));
    EXPECT_EQ(owner.hear_word(), 1u);
    let_change(death, owner);
    death.own.slots.reclaim_if_any();
    EXPECT_EQ(death.own.used(), 0u);
    const ShareToken first = death.own.add();
    const ShareToken second = death.own.add();
    EXPECT_EQ(first.number() + second.number(), 1u);
    EXPECT_EQ(death.own.drop(first), AfterDrop::kOwnAgain);
    EXPECT_EQ(death.own.drop(second), AfterDrop::kOwnAgain);
    EXPECT_EQ(death.own.used(), 0u);
  });
}

TEST(LedgerRepair, DeathInAHoldIsTheEndOfTheHold) {
  die_at_each({"share.hold.held", "share.hold.counted"}, [](Death& death) {
    const ShareToken token = death.own.add();
    OtherProcess holder(
        changer(death, nothing, [&](ShareRig& theirs) { EXPECT_TRUE(theirs.hold(token)); }));
    holder.hear_word();
    let_change(death, holder);
    EXPECT_EQ(death.own.used(), kShareBytes);
    EXPECT_EQ(death.own.slots.holds(), 1u);
    EXPECT_EQ(death.own.drop(token), AfterDrop::kOwnAgain);
    death.expect_sound();
  });
}

TEST(LedgerRepair, DeathOfAnOwnerThatTakesWhatCameBackLeavesNothing) {
  die_at_each({"entry.not_live", "entry.linked", "share.take_returns.freed"}, [](Death& death) {
    OtherProcess owner([&](const Line& line) {
      ShareRig theirs(death.server);
      const ShareToken token = theirs.add();
      line.say(token.word());
      line.hear_word();
      EXPECT_EQ(theirs.drop(token), AfterDrop::kHeld);
      line.say();
      line.hear_word();
      uint32_t room = 0;
      death.arm();
      EXPECT_EQ(value_of(theirs.shares.take_returns({&room, 1})), 1u);
      KillPlan::disarm();
    });
    const ShareToken token(owner.hear_word());
    ASSERT_TRUE(death.own.hold(token));
    owner.say();
    owner.hear_word();
    EXPECT_EQ(death.own.drop(token), AfterDrop::kReturned);
    let_change(death, owner);
    death.expect_sound();
  });
}

// A third process dies while it clears the slot of a dead owner; the last one holds its share.
TEST(LedgerRepair, DeathInAClearanceIsNoDifference) {
  die_at_each({"clear.table", "share.clear.closed", "share.clear.orphaned", "share.clear.dropped",
               "clear.table", "held.clear.dropped", "entry.not_live", "entry.linked", "clear.table",
               "held.clear.dropped", "entry.not_live", "entry.linked", "clear.table",
               "clear.dropped", "clear.counts", "clear.free"},
              [](Death& death) {
                OtherProcess cleaner(changer(
                    death, nothing, [](ShareRig& theirs) { theirs.slots.reclaim_if_any(); }));
                cleaner.hear_word();
                OtherProcess owner([&](const Line& line) {
                  ShareRig theirs(death.server);
                  EXPECT_EQ(theirs.slots.own_slot(), 2u);
                  EXPECT_TRUE(is_ok(theirs.joined->events().add()));
                  EXPECT_TRUE(is_ok(theirs.joined->notifies().add({})));
                  EXPECT_TRUE(theirs.capacity.charge({0, PageKind::kHuge, kHugePage}));
                  line.say(theirs.add().word());
                  line.hear();
                });
                const ShareToken token(owner.hear_word());
                ASSERT_TRUE(death.own.hold(token));
                owner.kill();
                let_change(death, cleaner);
                EXPECT_EQ(death.own.used(), kShareBytes);
                EXPECT_FALSE(death.own.find(token));
                EXPECT_EQ(death.own.drop(token), AfterDrop::kOrphaned);
                EXPECT_EQ(value_of(death.own.joined->events().add()).number(), 0u);
                death.own.joined->events().drop(0);
                EXPECT_EQ(value_of(death.own.joined->notifies().add({})).number(), 0u);
                death.own.joined->notifies().drop(0);
                death.expect_sound();
              });
}

// The same while the share is one that came back to the dead owner, who never took it.
TEST(LedgerRepair, DeathInAClearanceFreesWhatWasReturned) {
  die_at_each({"clear.table", "entry.not_live", "entry.linked", "clear.table", "clear.table",
               "clear.table", "clear.dropped", "clear.counts", "clear.free"},
              [](Death& death) {
                OtherProcess cleaner(changer(
                    death, nothing, [](ShareRig& theirs) { theirs.slots.reclaim_if_any(); }));
                cleaner.hear_word();
                OtherProcess owner([&](const Line& line) {
                  ShareRig theirs(death.server);
                  const ShareToken token = theirs.add();
                  line.say(token.word());
                  line.hear_word();
                  EXPECT_EQ(theirs.drop(token), AfterDrop::kHeld);
                  line.say();
                  line.hear();
                });
                const ShareToken token(owner.hear_word());
                ASSERT_TRUE(death.own.hold(token));
                owner.say();
                owner.hear_word();
                EXPECT_EQ(death.own.drop(token), AfterDrop::kReturned);
                owner.kill();
                let_change(death, cleaner);
                death.expect_sound();
              });
}

TEST(LedgerRepair, DeathInAnEventLeavesNothing) {
  die_at_each({"entry.taken", "held.add.described", "held.add.held", "held.add.counted",
               "held.add.live", "held.add.open", "event.record.over", "event.record.process",
               "event.record.word", "event.record.latest", "held.drop.dropped", "held.drop.counted",
               "entry.not_live", "entry.linked"},
              [](Death& death) {
                OtherProcess maker(changer(death, nothing, [](ShareRig& theirs) {
                  EventTable& events = theirs.joined->events();
                  const uint32_t number = value_of(events.add()).number();
                  EXPECT_TRUE(is_ok(events.record(number, 1)));
                  events.drop(number);
                }));
                maker.hear_word();
                let_change(death, maker);
                death.own.slots.reclaim_if_any();
                EventTable& events = death.own.joined->events();
                const ShareToken token = value_of(events.add());
                EXPECT_EQ(token.number(), 0u);
                EXPECT_EQ(events.latest(0), 0u);
                events.drop(token.number());
                EXPECT_EQ(death.image.event(0).live.load(), 0u);
                death.expect_sound();
              });
}

TEST(LedgerRepair, DeathInAHoldOfAnEventLeavesItToTheOthers) {
  die_at_each({"held.hold.held", "event.record.over", "event.record.process", "event.record.word",
               "event.record.latest"},
              [](Death& death) {
                EventTable& events = death.own.joined->events();
                const ShareToken token = value_of(events.add());
                OtherProcess holder(changer(death, nothing, [&](ShareRig& theirs) {
                  EXPECT_TRUE(value_of(theirs.joined->events().hold(token)));
                  EXPECT_TRUE(is_ok(theirs.joined->events().record(token.number(), 1)));
                }));
                holder.hear_word();
                let_change(death, holder);
                EXPECT_TRUE(can_lock(*death.own.joined));
                const uint64_t next = value_of(events.record(token.number(), 2));
                events.reach(token.number(), next);
                EXPECT_EQ(events.state(token.number(), next), RecordState::kReached);
                death.own.slots.reclaim_if_any();
                EXPECT_EQ(death.own.slots.holds(), 1u);
                events.drop(token.number());
                EXPECT_EQ(death.image.event(0).live.load(), 0u);
              });
}

TEST(LedgerRepair, DeathInANotifyLeavesNothing) {
  die_at_each({"entry.taken", "held.add.described", "held.add.held", "held.add.counted",
               "held.add.live", "held.add.open", "notify.set", "slot.rung", "held.drop.dropped",
               "held.drop.counted", "entry.not_live", "entry.linked"},
              [](Death& death) {
                OtherProcess maker(changer(death, nothing, [](ShareRig& theirs) {
                  NotifyTable& notifies = theirs.joined->notifies();
                  const uint32_t number = value_of(notifies.add({})).number();
                  notifies.set(number);
                  EXPECT_TRUE(notifies.drop(number));
                }));
                maker.hear_word();
                let_change(death, maker);
                death.own.slots.reclaim_if_any();
                NotifyTable& notifies = death.own.joined->notifies();
                const ShareToken token = value_of(notifies.add({}));
                EXPECT_EQ(token.number(), 0u);
                EXPECT_FALSE(notifies.take(0));
                EXPECT_TRUE(notifies.drop(0));
                EXPECT_EQ(death.image.notify(0).live.load(), 0u);
                death.expect_sound();
              });
}

// What a process had set before it died is set, whether it rang or not.
TEST(LedgerRepair, DeathInAHoldOfANotifyLeavesItToTheOthers) {
  die_at_each({"held.hold.held", "notify.set", "slot.rung", "slot.rung"}, [](Death& death) {
    NotifyTable& notifies = death.own.joined->notifies();
    const ShareToken token = value_of(notifies.add({}));
    OtherProcess holder(changer(death, nothing, [&](ShareRig& theirs) {
      EXPECT_TRUE(value_of(theirs.joined->notifies().hold(token)));
      theirs.joined->notifies().set(token.number());
    }));
    holder.hear_word();
    let_change(death, holder);
    EXPECT_TRUE(can_lock(*death.own.joined));
    const bool was_set = death.image.notify(0).is_set.load() != 0;
    EXPECT_EQ(notifies.take(token.number()), was_set);
    notifies.set(token.number());
    EXPECT_TRUE(notifies.take(token.number()));
    death.own.slots.reclaim_if_any();
    EXPECT_EQ(death.own.slots.holds(), 1u);
    EXPECT_TRUE(notifies.drop(token.number()));
    EXPECT_EQ(death.image.notify(0).live.load(), 0u);
  });
}

constexpr Charge kAll{0, PageKind::kHuge, TestServer::kHugeMemory};
constexpr Charge kHalf{0, PageKind::kHuge, TestServer::kHugeMemory / 2};

// The charge of a process that needs all there is, of which another one has a lease. That one has
// something pending as well, which does not come to an end.
TEST(LedgerRepair, DeathInAChargeTakesNothing) {
  die_at_each({"request.pending", "request.granted", "lease.revoked", "request.pending",
               "request.granted", "charge.held_back", "charge.taken"},
              [](Death& death) {
                const Charge piece{0, PageKind::kHuge, kHugePage};
                EXPECT_TRUE(death.own.capacity.charge(piece));
                death.own.capacity.credit(piece);
                death.image.pending(death.own.slots.own_slot()).store(1);
                OtherProcess charger(changer(death, nothing, [](ShareRig& theirs) {
                  EXPECT_TRUE(theirs.capacity.charge(kAll));
                }));
                charger.hear_word();
                let_change(death, charger);
                EXPECT_TRUE(death.own.capacity.charge(kAll));
                death.own.capacity.credit(kAll);
                death.expect_sound();
              });
}

// A process that stands still in the middle of a request keeps no other from what is free. When it
// goes on, it has what it was granted before, and nothing else.
TEST(LedgerRepair, ProcessStoppedInARequestGetsWhatIsStillThere) {
  for (const size_t at : {1u, 2u}) {  // request.pending, request.granted
    const bool is_granted = at == 2;
    SCOPED_TRACE(at);
    Death death;
    OtherProcess stopped([&](const Line& line) {
      ShareRig theirs(death.server);
      death.plan.arm(at, SIGSTOP);
      const bool charged = theirs.capacity.charge(kHalf);
      KillPlan::disarm();
      line.say(charged ? 1 : 0);
      line.hear_word();
      line.say(theirs.capacity.charge(kHalf) ? 1 : 0);
      line.hear();
    });
    stopped.wait_until_stopped();
    EXPECT_EQ(death.own.used(), is_granted ? kHalf.bytes : 0u);
    const Charge rest = is_granted ? kHalf : kAll;
    EXPECT_TRUE(death.own.capacity.charge(rest));
    EXPECT_EQ(death.own.used(), kAll.bytes);
    EXPECT_FALSE(death.own.capacity.charge({0, PageKind::kHuge, kHugePage}));
    stopped.go_on();
    EXPECT_EQ(stopped.hear_word(), is_granted ? 1u : 0u);
    EXPECT_EQ(death.own.used(), kAll.bytes);
    // It was about that request alone.
    death.own.capacity.credit(rest);
    stopped.say();
    EXPECT_EQ(stopped.hear_word(), 1u);
    stopped.kill();
    death.expect_sound();
  }
}

TEST(LedgerRepair, DeathInAJoinOrWhenLeavingGivesTheSlotToTheNext) {
  die_at_each({"slot.identity", "slot.generation", "slot.taken", "slot.counted", "slot.attaching",
               "slot.attached", "clear.table", "clear.table", "clear.table", "clear.table",
               "clear.dropped", "clear.counts", "clear.free"},
              [](Death& death) {
                OtherProcess joiner([&](const Line&) {
                  death.arm();
                  (void)death.server.join();  // and leaves
                  KillPlan::disarm();
                });
                expect_end(death, joiner);
                EXPECT_TRUE(can_lock(*death.own.joined));
                OtherProcess next(death.server.member());
                EXPECT_EQ(ProcessTag(next.hear_word()).slot(), 1u);
                EXPECT_EQ(death.own.slots.count(), 2u);
                EXPECT_EQ(death.image.header().counted.count(), 2u);
                EXPECT_TRUE(death.image.header().uncounted.empty());
                next.kill();
                death.expect_sound();
              });
}

// The process that repairs dies as well.
TEST(LedgerRepair, DeathInARepairIsFollowedByTheNextRepair) {
  die_at_each({"repair.table", "entry.not_live", "entry.linked", "repair.table", "repair.table",
               "repair.table", "repair.done"},
              [](Death& death) {
                const ShareToken kept = death.own.add();
                OtherProcess repairer(changer(death, nothing, [](ShareRig& theirs) {
                  EXPECT_TRUE(can_lock(*theirs.joined));
                }));
                repairer.hear_word();
                OtherProcess first([&](const Line&) {
                  ShareRig theirs(death.server);
                  EXPECT_TRUE(theirs.capacity.charge({0, PageKind::kHuge, kShareBytes}));
                  KillPlan other;
                  other.arm(2);  // share.add.described
                  (void)theirs.shares.add(ShareRig::description());
                });
                EXPECT_TRUE(first.ended_by(SIGKILL));
                let_change(death, repairer);
                EXPECT_EQ(death.own.used(), kShareBytes);
                EXPECT_TRUE(death.own.find(kept));
                EXPECT_EQ(death.own.slots.holds(), 1u);
                EXPECT_EQ(death.own.drop(kept), AfterDrop::kOwnAgain);
                death.expect_sound();
              });
}

TEST(LedgerRepair, WhatTheLivingHoldIsKept) {
  Death death;
  ShareRig& own = death.own;
  const ShareToken token = own.add();
  EventTable& events = own.joined->events();
  const ShareToken event = value_of(events.add());
  const uint64_t record = value_of(events.record(event.number(), 1));
  events.reach(event.number(), record);
  death.server.with_process_that_dies_locked([&](Server&) {
    const LedgerImage image(death.server);
    image.header().changes.fetch_add(1);
    // Whatever is only a sum may be wrong.
    image.shared_pages().store(7);
    image.held_back().store(1'000'000);
    image.header().shares.first_free = 1;
    image.header().events.first_free = 1;
    image.slot(0).holds = 77;
    image.slot(0).returned.store(5);
  });
  EXPECT_EQ(own.used(), kShareBytes);
  EXPECT_EQ(own.slots.holds(), 2u);
  EXPECT_FALSE(own.has_returns());
  EXPECT_TRUE(own.find(token));
  EXPECT_EQ(events.state(event.number(), record), RecordState::kReached);
  EXPECT_NE(own.add().number(), token.number());
  EXPECT_NE(value_of(events.add()).number(), event.number());
  EXPECT_EQ(death.image.held_back().load(), 0u);
  EXPECT_EQ(death.image.shared_pages().load(), 2 * kPages);
}

// A process that is stopped with the lock is not dead: calls answer in their time, charges and
// credits need no lock, and when it goes on nothing is lost.
TEST(LedgerRepair, StoppedHolderOfTheLockIsWaitedForAndNoLonger) {
  Death death;
  const ShareToken token = death.own.add();
  OtherProcess holder([&](const Line& line) {
    ShareRig theirs(death.server);
    EXPECT_TRUE(theirs.capacity.charge({0, PageKind::kHuge, kShareBytes}));
    death.plan.arm(5, SIGSTOP);  // share.add.live
    (void)value_of(theirs.shares.add(ShareRig::description()));
    KillPlan::disarm();
    line.say();
    line.hear();
  });
  int status = 0;
  ASSERT_EQ(waitpid(holder.id(), &status, WUNTRACED), holder.id());
  ASSERT_TRUE(WIFSTOPPED(status));
  Release release{.number = token.number(), .drop = true};
  EXPECT_FALSE(death.own.shares.try_release({&release, 1}));
  EXPECT_TRUE(fails_with(death.own.shares.hold(token, Clock::now() + std::chrono::milliseconds(20)),
                         ErrorCode::kConnection));
  EXPECT_TRUE(death.own.capacity.charge({0, PageKind::kHuge, kHugePage}));
  death.own.capacity.credit({0, PageKind::kHuge, kHugePage});
  ASSERT_EQ(kill(holder.id(), SIGCONT), 0);
  holder.hear_word();
  EXPECT_TRUE(death.own.shares.try_release({&release, 1}));
  EXPECT_EQ(death.own.used(), kShareBytes);
  holder.kill();
  EXPECT_EQ(death.own.used(), 0u);
  EXPECT_EQ(death.own.slots.holds(), 0u);
}

}  // namespace
}  // namespace understudy
