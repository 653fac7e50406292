// SPDX-License-Identifier: Apache-2.0
#include "platform/byte_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>

#include "platform/unique_fd.h"
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

TEST_F(ByteLock, IsOfOneProcessAtATime) {
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

TEST_F(ByteLock, ProcessMayTakeItsOwnAgain) {
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

TEST_F(ByteLock, ChildDoesNotInheritIt) {
  const UniqueFd own = open_file();
  ASSERT_TRUE(try_lock_byte(own.get(), kByte));
  OtherProcess child([&](const Line&) { EXPECT_FALSE(try_lock_byte(own.get(), kByte)); });
  EXPECT_TRUE(child.ended_well());
  // Nor does the child's end drop it.
  OtherProcess other([&](const Line&) { EXPECT_TRUE(is_locked_by_other(own.get(), kByte)); });
  EXPECT_TRUE(other.ended_well());
}

TEST_F(ByteLock, ClosingAnyDescriptorOfTheFileDropsIt) {
  const UniqueFd own = open_file();
  ASSERT_TRUE(try_lock_byte(own.get(), kByte));
  (void)open_file();
  OtherProcess child([&](const Line&) { EXPECT_FALSE(is_locked_by_other(own.get(), kByte)); });
  EXPECT_TRUE(child.ended_well());
}

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
