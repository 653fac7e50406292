// SPDX-License-Identifier: Apache-2.0
#include "platform/byte_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "platform/unique_fd.h"
#include "platform/unshared_fd.h"
#include "unit/other_process.h"
#include "unit/platform/planned_fault.h"
#include "unit/temporary_file.h"

namespace understudy::platform {
namespace {

constexpr uint64_t kByte = uint64_t{1} << 40;  // far behind the end of the file

class ByteLock : public testing::Test {
 protected:
  UniqueFd open_file() const { return UniqueFd(open(file_.path().c_str(), O_RDWR | O_CLOEXEC)); }

  TemporaryFile file_{""};
};

TEST_F(ByteLock, IsOfOneAtATime) {
  const UniqueFd own = open_file();
  ASSERT_TRUE(try_lock_byte(own.get(), kByte));
  OtherProcess child([&](const Line& line) {
    const UniqueFd file = open_file();
    EXPECT_FALSE(try_lock_byte(file.get(), kByte));
    EXPECT_TRUE(is_locked_by_other(file.get(), kByte));
    EXPECT_TRUE(try_lock_byte(file.get(), kByte + 1));
    line.say();
    line.hear_word();
    EXPECT_FALSE(is_locked_by_other(file.get(), kByte));
    EXPECT_TRUE(try_lock_byte(file.get(), kByte));
  });
  child.hear_word();
  EXPECT_FALSE(is_locked_by_other(own.get(), kByte));
  EXPECT_TRUE(is_locked_by_other(own.get(), kByte + 1));
  unlock_byte(own.get(), kByte);
  child.say();
  EXPECT_TRUE(child.ended_well());
}

TEST_F(ByteLock, OpeningMayTakeItsOwnAgain) {
  const UniqueFd own = open_file();
  EXPECT_TRUE(try_lock_byte(own.get(), kByte));
  EXPECT_TRUE(try_lock_byte(own.get(), kByte));
  EXPECT_FALSE(is_locked_by_other(own.get(), kByte));
}

TEST_F(ByteLock, OneByteOfARangeIsEnough) {
  const UniqueFd own = open_file();
  OtherProcess child([&](const Line& line) {
    const UniqueFd file = open_file();
    EXPECT_TRUE(try_lock_byte(file.get(), kByte + 7));
    line.say();
    line.hear_word();
  });
  child.hear_word();
  EXPECT_TRUE(is_locked_by_other(own.get(), kByte, 8));
  EXPECT_FALSE(is_locked_by_other(own.get(), kByte, 7));
  EXPECT_FALSE(is_locked_by_other(own.get(), kByte + 8, 100));
  child.say();
  EXPECT_TRUE(child.ended_well());
}

TEST_F(ByteLock, GoesWithAProcessThatIsKilled) {
  const UniqueFd own = open_file();
  OtherProcess child([&](const Line& line) {
    const UniqueFd file = open_file();
    EXPECT_TRUE(try_lock_byte(file.get(), kByte));
    line.say();
    line.hear();
  });
  child.hear_word();
  EXPECT_FALSE(try_lock_byte(own.get(), kByte));
  child.kill();
  EXPECT_FALSE(is_locked_by_other(own.get(), kByte));
  EXPECT_TRUE(try_lock_byte(own.get(), kByte));
}

TEST_F(ByteLock, IsOfOneOpeningOfTheFile) {
  const UniqueFd own = open_file();
  ASSERT_TRUE(try_lock_byte(own.get(), kByte));
  {
    const UniqueFd other = open_file();
    EXPECT_FALSE(try_lock_byte(other.get(), kByte));
    EXPECT_TRUE(is_locked_by_other(other.get(), kByte));
  }
  // Nor does it go when another opening is closed.
  const UniqueFd other = open_file();
  EXPECT_TRUE(is_locked_by_other(other.get(), kByte));
}

TEST_F(ByteLock, WhatCannotBeToldCountsAsLocked) {
  EXPECT_EQ(byte_lock_state(-1, kByte), ByteLockState::kUnknown);
  EXPECT_TRUE(is_locked_by_other(-1, kByte));
}

// ---- Locks for life ----

TEST_F(ByteLock, LockForLifeNeedsNoDescriptor) {
  const UniqueFd own = open_file();
  {
    std::optional<LifeLock> life = LifeLock::try_take(UnsharedFd(open_file()), kByte);
    ASSERT_TRUE(life);
    EXPECT_TRUE(is_locked_by_other(own.get(), kByte));
    EXPECT_FALSE(is_locked_by_other(own.get(), kByte + 1));
    EXPECT_FALSE(LifeLock::try_take(UnsharedFd(open_file()), kByte));
    EXPECT_TRUE(is_locked_by_other(own.get(), kByte));
    // It moves with its object.
    const LifeLock moved = std::move(*life);
    life.reset();
    EXPECT_TRUE(is_locked_by_other(own.get(), kByte));
  }
  EXPECT_FALSE(is_locked_by_other(own.get(), kByte));
}

TEST_F(ByteLock, LockForLifeSurvivesTheEndOfAllDescriptors) {
  const UniqueFd own = open_file();
  OtherProcess child([&](const Line& line) {
    const auto life = LifeLock::try_take(UnsharedFd(open_file()), kByte);
    EXPECT_TRUE(life);
    (void)open_file();
    // All but the line, which has the highest number.
    for (int each = 3; each < line.descriptor(); ++each) close(each);
    line.say();
    line.hear();
  });
  child.hear_word();
  EXPECT_TRUE(is_locked_by_other(own.get(), kByte));
  child.kill();
  EXPECT_FALSE(is_locked_by_other(own.get(), kByte));
}

TEST_F(ByteLock, LockForLifeEndsWithItsProcessThoughAChildOfItLives) {
  const UniqueFd own = open_file();
  OtherProcess parent([&](const Line& line) {
    const auto life = LifeLock::try_take(UnsharedFd(open_file()), kByte);
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    line.say(static_cast<uint64_t>(child));
    line.hear();
  });
  const auto child = static_cast<pid_t>(parent.hear_word());
  EXPECT_TRUE(is_locked_by_other(own.get(), kByte));
  parent.kill();
  EXPECT_FALSE(is_locked_by_other(own.get(), kByte));
  EXPECT_EQ(kill(child, SIGKILL), 0);
}

TEST_F(ByteLock, LockForLifeEndsWhenTheProcessExecutesAnotherProgram) {
  const UniqueFd own = open_file();
  OtherProcess child([&](const Line&) {
    const auto life = LifeLock::try_take(UnsharedFd(open_file()), kByte);
    EXPECT_TRUE(life && is_locked_by_other(own.get(), kByte));
    execl("/bin/sleep", "sleep", "60", nullptr);
  });
  const Deadline patience = Clock::now() + std::chrono::seconds(60);
  // Its line is closed when it executes the program, and the lock a little earlier.
  EXPECT_FALSE(child.hear());
  EXPECT_TRUE(lock_byte(own.get(), kByte, patience));
}

TEST_F(ByteLock, HostThatDoesNotLockGivesNoLockForLife) {
  const PlannedFault fault(SystemCall::kLockByte, 1, ENOLCK);
  EXPECT_FALSE(LifeLock::try_take(UnsharedFd(open_file()), kByte));
  EXPECT_TRUE(fault.happened());
  EXPECT_TRUE(LifeLock::try_take(UnsharedFd(open_file()), kByte));
}

// ---- Waiting ----

TEST_F(ByteLock, WaitsUntilTheDeadlineAndNoLonger) {
  const UniqueFd own = open_file();
  ASSERT_TRUE(lock_byte(own.get(), kByte, Clock::now()));
  OtherProcess child([&](const Line&) {
    const UniqueFd file = open_file();
    const Deadline deadline = Clock::now() + std::chrono::milliseconds(20);
    EXPECT_FALSE(lock_byte(file.get(), kByte, deadline));
    EXPECT_GE(Clock::now(), deadline);
  });
  EXPECT_TRUE(child.ended_well());
}

TEST_F(ByteLock, WaitsForTheOtherToLetGo) {
  const UniqueFd own = open_file();
  ASSERT_TRUE(try_lock_byte(own.get(), kByte));
  OtherProcess child([&](const Line& line) {
    const UniqueFd file = open_file();
    line.say();
    EXPECT_TRUE(lock_byte(file.get(), kByte, Clock::now() + std::chrono::seconds(60)));
  });
  child.hear_word();
  unlock_byte(own.get(), kByte);
  EXPECT_TRUE(child.ended_well());
}

TEST_F(ByteLock, HostThatDoesNotLockIsTriedAgainWhileThereIsTime) {
  const UniqueFd own = open_file();
  {
    const PlannedFault fault(SystemCall::kLockByte, 1, ENOLCK);
    EXPECT_FALSE(try_lock_byte(own.get(), kByte));
    EXPECT_TRUE(fault.happened());
  }
  const PlannedFault fault(SystemCall::kLockByte, 1, ENOLCK);
  EXPECT_TRUE(lock_byte(own.get(), kByte, Clock::now() + std::chrono::seconds(60)));
  EXPECT_TRUE(fault.happened());
}

// Where it cannot be told, nobody is taken for dead.
TEST_F(ByteLock, DescriptorThatIsNoneTakesNoLocksAndMayHaveThoseOfOthers) {
  EXPECT_FALSE(try_lock_byte(-1, kByte));
  EXPECT_TRUE(is_locked_by_other(-1, kByte));
  EXPECT_FALSE(lock_byte(-1, kByte, Clock::now()));
}

}  // namespace
}  // namespace understudy::platform
