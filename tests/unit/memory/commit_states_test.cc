// SPDX-License-Identifier: Apache-2.0
#include "memory/commit_states.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <thread>

#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

constexpr uint64_t kGranules = 8;

class CommitStatesTest : public testing::Test {
 protected:
  // Those of this process, as another one sees them by a ledger of its own.
  CommitStates attach(const Server& server) {
    return value_of(CommitStates::attach(value_of(platform::MemoryFile::open_of_process(
                                             getppid(), own_.file().descriptor(), identity_,
                                             platform::FileKind::kShared, own_.file().size())),
                                         kGranules, &server.slots()));
  }
  // A process that attaches, does its part, says so, and goes on when told.
  template <typename Before, typename After>
  auto attached(Before before, After after) {
    return [this, before, after](const Line& line) {
      const std::unique_ptr<Server> joined = server_.join();
      CommitStates states = attach(*joined);
      before(states);
      line.say();
      line.hear_word();
      after(states);
      line.say();
      line.hear();
    };
  }
  static void nothing(CommitStates&) {}
  static void claim_first(CommitStates& states) { EXPECT_TRUE(states.claim(0)); }
  static void settle_first(CommitStates& states) {
    EXPECT_TRUE(states.settle(0, CommitState::kSmallPages));
  }
  static void go_on(const OtherProcess& other) {
    other.say();
    other.hear_word();
  }

  TestServer server_;
  std::unique_ptr<Server> joined_ = server_.join();
  CommitStates own_ = value_of(CommitStates::make("unit-test", kGranules, &joined_->slots()));
  platform::FileIdentity identity_ = own_.file().identity();
};

TEST_F(CommitStatesTest, BeginCold) {
  for (uint64_t granule = 0; granule < kGranules; ++granule) {
    EXPECT_EQ(own_.at(granule), CommitState::kCold);
    EXPECT_FALSE(own_.is_own(granule));
    EXPECT_FALSE(own_.disown(granule));
    EXPECT_FALSE(own_.decommit(granule));
  }
}

TEST_F(CommitStatesTest, GranuleIsClaimedSettledAndChilled) {
  for (const CommitState state :
       {CommitState::kSmallPages, CommitState::kCollapsed, CommitState::kPool}) {
    ASSERT_TRUE(own_.claim(3));
    EXPECT_EQ(own_.at(3), CommitState::kCommitting);
    EXPECT_FALSE(own_.claim(3));
    EXPECT_EQ(own_.at(2), CommitState::kCold);
    EXPECT_EQ(own_.at(4), CommitState::kCold);
    own_.settle(3, state);
    EXPECT_EQ(own_.at(3), state);
    EXPECT_TRUE(own_.is_own(3));
    EXPECT_FALSE(own_.claim(3));
    own_.wait(3);  // does not
    EXPECT_TRUE(own_.decommit(3));
    EXPECT_EQ(own_.at(3), CommitState::kCold);
  }
}

TEST_F(CommitStatesTest, ClaimThatCameToNothingLeavesItCold) {
  ASSERT_TRUE(own_.claim(0));
  own_.settle(0, CommitState::kCold);
  EXPECT_EQ(own_.at(0), CommitState::kCold);
  EXPECT_FALSE(own_.is_own(0));
  EXPECT_TRUE(own_.claim(0));
}

TEST_F(CommitStatesTest, DisownedGranuleStaysWarmAndIsNobodys) {
  ASSERT_TRUE(own_.claim(0));
  EXPECT_FALSE(own_.disown(0));  // not committed yet
  settle_first(own_);
  EXPECT_TRUE(own_.disown(0));
  EXPECT_EQ(own_.at(0), CommitState::kSmallPages);
  EXPECT_FALSE(own_.is_own(0));
  EXPECT_FALSE(own_.disown(0));
  EXPECT_FALSE(own_.claim(0));
  EXPECT_FALSE(own_.decommit(0));
  EXPECT_EQ(own_.at(0), CommitState::kCold);
}

TEST_F(CommitStatesTest, OneOfManyThreadsGetsAGranule) {
  for (int round = 0; round < 50; ++round) {
    std::array<std::atomic<int>, kGranules> claims{};
    run_on_threads(4, [&](int) {
      for (uint64_t granule = 0; granule < kGranules; ++granule) {
        if (own_.claim(granule)) {
          ++claims[granule];
          own_.settle(granule, CommitState::kSmallPages);
        }
        while (!is_committed(own_.at(granule))) own_.wait(granule);
      }
    });
    for (uint64_t granule = 0; granule < kGranules; ++granule) {
      EXPECT_EQ(claims[granule], 1);
      EXPECT_TRUE(own_.decommit(granule));
    }
  }
}

TEST_F(CommitStatesTest, OtherProcessSeesAndWarmsTheSameGranules) {
  ASSERT_TRUE(own_.claim(1));
  own_.settle(1, CommitState::kCollapsed);
  OtherProcess other(attached(
      [](CommitStates& states) {
        EXPECT_EQ(states.at(1), CommitState::kCollapsed);
        EXPECT_FALSE(states.is_own(1));
        EXPECT_FALSE(states.disown(1));
        EXPECT_TRUE(states.claim(0));
      },
      settle_first));
  other.hear_word();
  EXPECT_EQ(own_.at(0), CommitState::kCommitting);
  EXPECT_FALSE(own_.claim(0));
  own_.wait(0);  // a little while
  EXPECT_FALSE(own_.claim(0));
  other.say();
  while (!is_committed(own_.at(0))) own_.wait(0);
  EXPECT_FALSE(own_.is_own(0));
  EXPECT_TRUE(own_.is_own(1));
  other.hear_word();
  EXPECT_FALSE(own_.decommit(0));
}

TEST_F(CommitStatesTest, GranuleThatAProcessDiedAtIsClaimedByTheNext) {
  OtherProcess other(attached(claim_first, nothing));
  other.hear_word();
  EXPECT_FALSE(own_.claim(0));
  other.kill();
  own_.wait(0);  // does not
  EXPECT_TRUE(own_.claim(0));
  settle_first(own_);
  EXPECT_TRUE(own_.is_own(0));
}

TEST_F(CommitStatesTest, SleeperNoticesThatTheOtherProcessDied) {
  OtherProcess other(attached(claim_first, nothing));
  other.hear_word();
  std::thread sleeper([&] {
    while (!own_.claim(0)) own_.wait(0);
    settle_first(own_);
  });
  other.kill();
  sleeper.join();
  EXPECT_EQ(own_.at(0), CommitState::kSmallPages);
}

TEST_F(CommitStatesTest, NextProcessOfASlotDoesNotTakeTheClaimForItsOwn) {
  OtherProcess first(attached(claim_first, nothing));
  first.hear_word();
  first.kill();
  OtherProcess second(attached(
      [](CommitStates& states) {
        EXPECT_FALSE(states.is_own(0));
        EXPECT_TRUE(states.claim(0));
      },
      settle_first));
  second.hear_word();
  EXPECT_FALSE(own_.claim(0));
  second.say();
  second.hear_word();
  EXPECT_EQ(own_.at(0), CommitState::kSmallPages);
}

TEST_F(CommitStatesTest, WarmGranuleOfADeadProcessStaysWarm) {
  OtherProcess other(attached(
      [](CommitStates& states) {
        claim_first(states);
        settle_first(states);
      },
      nothing));
  other.hear_word();
  other.kill();
  EXPECT_EQ(own_.at(0), CommitState::kSmallPages);
  EXPECT_FALSE(own_.claim(0));
  EXPECT_FALSE(own_.is_own(0));
  EXPECT_FALSE(own_.decommit(0));
}

TEST_F(CommitStatesTest, OneOfTwoProcessesGetsAGranule) {
  constexpr int kRounds = 2000;
  const auto count_claims = [](CommitStates& states) {
    int claims = 0;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t granule = static_cast<uint64_t>(round) % kGranules;
      if (states.claim(granule)) {
        ++claims;
        states.settle(granule, CommitState::kCold);
      } else {
        states.wait(granule);
      }
    }
    EXPECT_GT(claims, 0);
  };
  OtherProcess other(attached(nothing, count_claims));
  other.hear_word();
  other.say();
  count_claims(own_);
  other.hear_word();
  for (uint64_t granule = 0; granule < kGranules; ++granule) {
    EXPECT_EQ(own_.at(granule), CommitState::kCold);
  }
}

TEST_F(CommitStatesTest, GranuleOfAProcessThatDoesNotGetOnIsTakenOver) {
  OtherProcess other(attached(claim_first, [](CommitStates& states) {
    EXPECT_FALSE(states.begin_fill(0));
    EXPECT_FALSE(states.settle(0, CommitState::kSmallPages));
    EXPECT_FALSE(states.settle(0, CommitState::kCold));
  }));
  other.hear_word();
  const std::optional<ShortProcessTag> process = own_.committing_process(0);
  ASSERT_TRUE(process);
  EXPECT_FALSE(own_.committing_process(1));
  EXPECT_FALSE(own_.take_over(0, ShortProcessTag(process->word() + 1)));
  EXPECT_FALSE(own_.take_over(1, *process));
  CommitWait wait(own_);
  while (!wait.stalled()) ASSERT_TRUE(is_ok(wait.wait(0)));
  EXPECT_EQ(wait.stalled(), process);
  EXPECT_TRUE(own_.take_over(0, *process));
  EXPECT_FALSE(own_.committing_process(0));
  go_on(other);
  EXPECT_EQ(own_.at(0), CommitState::kCommitting);
  EXPECT_TRUE(own_.settle(0, CommitState::kPool));
  EXPECT_TRUE(own_.is_own(0));
}

// Its bytes are being changed: to take it over could lose what is written then.
TEST_F(CommitStatesTest, GranuleThatIsFilledIsWaitedForUpToFiveSeconds) {
  OtherProcess other(attached(
      [](CommitStates& states) {
        claim_first(states);
        EXPECT_TRUE(states.begin_fill(0));
        EXPECT_TRUE(states.begin_fill(0));
      },
      settle_first));
  other.hear_word();
  EXPECT_EQ(own_.at(0), CommitState::kFilling);
  CommitWait wait(own_);
  Result<void> waited;
  const Deadline begin = Clock::now();
  while (waited.ok()) waited = wait.wait(0);
  EXPECT_TRUE(fails_with(waited, ErrorCode::kConnection));
  EXPECT_LT(Clock::now() - begin, kLedgerPatience + std::chrono::seconds(3));
  ASSERT_TRUE(wait.stalled());
  EXPECT_FALSE(own_.claim(0));
  EXPECT_FALSE(own_.take_over(0, *wait.stalled()));
  go_on(other);
  EXPECT_EQ(own_.at(0), CommitState::kSmallPages);
}

TEST_F(CommitStatesTest, GranuleThatAProcessDiedFillingIsClaimedByTheNext) {
  OtherProcess other(attached(
      [](CommitStates& states) {
        claim_first(states);
        EXPECT_TRUE(states.begin_fill(0));
      },
      nothing));
  other.hear_word();
  EXPECT_FALSE(own_.claim(0));
  other.kill();
  EXPECT_TRUE(own_.claim(0));
}

TEST(CommitStatesAlone, NeedNoLedger) {
  CommitStates states = value_of(CommitStates::make("unit-test", 1, nullptr));
  ASSERT_TRUE(states.claim(0));
  EXPECT_FALSE(states.claim(0));
  states.settle(0, CommitState::kPool);
  EXPECT_TRUE(states.is_own(0));
  EXPECT_TRUE(states.disown(0));
}

TEST(CommitStatesAlone, FaultsOfTheHostAreErrors) {
  for (const platform::SystemCall call :
       {platform::SystemCall::kCreateFile, platform::SystemCall::kResizeFile,
        platform::SystemCall::kMapFile}) {
    const platform::PlannedFault fault(call, 1, ENOMEM);
    EXPECT_TRUE(
        fails_with(CommitStates::make("unit-test", 1, nullptr), ErrorCode::kOutOfResources));
    EXPECT_TRUE(fault.happened());
  }
}

}  // namespace
}  // namespace understudy
