// SPDX-License-Identifier: Apache-2.0
#include "platform/process_identity.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <thread>

#include "unit/expect_result.h"
#include "unit/other_process.h"

namespace understudy::platform {
namespace {

std::optional<ProcessIdentity> identity_of(int32_t id) { return value_of(identity_of_process(id)); }

bool is_readable(const UniqueFd& descriptor) {
  pollfd polled{descriptor.get(), POLLIN, 0};
  return poll(&polled, 1, 0) == 1;
}

TEST(ProcessIdentityTest, IsTheSameHoweverItIsAskedFor) {
  const ProcessIdentity own = own_identity();
  EXPECT_EQ(own.id, getpid());
  EXPECT_NE(own.birth, 0u);
  EXPECT_EQ(identity_of(getpid()), own);
  OtherProcess child([&](const Line& line) {
    EXPECT_NE(own_identity(), own);
    EXPECT_EQ(identity_of(own.id), own);
    line.say(own_identity().birth);
    line.hear();
  });
  const uint64_t birth = child.hear_word();
  EXPECT_EQ(identity_of(child.id()), (ProcessIdentity{child.id(), birth}));
}

TEST(ProcessIdentityTest, NumberThatNobodyHasNamesNobody) {
  for (const int32_t id :
       {0, -1, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    EXPECT_FALSE(identity_of(id)) << id;
    EXPECT_FALSE(open_process(id).valid()) << id;
  }
}

TEST(ProcessIdentityTest, ProcessThatHasEndedIsNone) {
  OtherProcess child([](const Line&) {});
  const pid_t id = child.id();
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(id), &ended, WEXITED | WNOWAIT), 0);
  // It has ended, but its number is still its own.
  EXPECT_FALSE(identity_of(id));
  EXPECT_TRUE(child.ended_well());
  EXPECT_FALSE(identity_of(id));
}

TEST(ProcessIdentityTest, NumberOfAThreadIsNoProcess) {
  std::thread([] {
    EXPECT_FALSE(identity_of(static_cast<int32_t>(syscall(SYS_gettid))));
    EXPECT_EQ(own_identity().id, getpid());
  }).join();
}

TEST(ProcessIdentityTest, NameOfTheProgramDoesNotMatter) {
  OtherProcess child([](const Line& line) {
    ASSERT_EQ(prctl(PR_SET_NAME, ") R 1 (2"), 0);
    line.say(own_identity().birth);
    line.hear();
  });
  const uint64_t birth = child.hear_word();
  EXPECT_EQ(identity_of(child.id()), (ProcessIdentity{child.id(), birth}));
}

TEST(ProcessIdentityTest, ProcessesOneAfterTheOtherDiffer) {
  OtherProcess first([](const Line& line) { line.say(own_identity().birth); });
  const uint64_t birth = first.hear_word();
  EXPECT_TRUE(first.ended_well());
  OtherProcess second([](const Line& line) { line.say(own_identity().birth); });
  EXPECT_NE(second.hear_word(), birth);
  EXPECT_TRUE(second.ended_well());
}

// To be without descriptors is not to be without a process.
TEST(ProcessIdentityTest, WantOfDescriptorsIsAnErrorAndNotNobody) {
  OtherProcess child([](const Line&) {
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit none{0, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_TRUE(fails_with(identity_of_process(getppid()), ErrorCode::kOutOfResources));
    EXPECT_FALSE(identity_of(0));
    EXPECT_EQ(own_identity().id, getpid());
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_TRUE(identity_of(getppid()));
  });
  EXPECT_TRUE(child.ended_well());
}

TEST(OpenProcess, BecomesReadableWhenTheProcessEnds) {
  OtherProcess child([](const Line& line) { line.hear(); });
  const UniqueFd descriptor = open_process(child.id());
  ASSERT_TRUE(descriptor.valid());
  EXPECT_FALSE(is_readable(descriptor));
  EXPECT_FALSE(has_ended(descriptor.get()));
  child.say();
  EXPECT_TRUE(child.ended_well());
  EXPECT_TRUE(is_readable(descriptor));
  EXPECT_TRUE(has_ended(descriptor.get()));
}

}  // namespace
}  // namespace understudy::platform
