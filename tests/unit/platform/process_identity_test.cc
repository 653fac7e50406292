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

#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <thread>

#include "support/refused_calls.h"
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
  EXPECT_EQ(identity_of(child.id()),
            (ProcessIdentity{child.id(), birth, own_identity().pid_namespace}));
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
  EXPECT_EQ(identity_of(child.id()),
            (ProcessIdentity{child.id(), birth, own_identity().pid_namespace}));
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

// By its start alone, where descriptors of processes are not given.
TEST(ProcessIdentityTest, WithoutDescriptorsOfProcessesTheStartTells) {
  for (const int refusal : {ENOSYS, EPERM}) {
    SCOPED_TRACE(refusal);
    OtherProcess ended([](const Line&) {});
    const pid_t zombie = ended.id();
    siginfo_t information;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(zombie), &information, WEXITED | WNOWAIT), 0);
    OtherProcess other([](const Line& line) { line.hear(); });
    OtherProcess child([&](const Line&) {
      ASSERT_TRUE(understudy_test::refuse_system_call(SYS_pidfd_open, refusal));
      const ProcessIdentity own = own_identity();
      EXPECT_EQ(own.id, getpid());
      EXPECT_NE(own.birth & ProcessIdentity::kStartTime, 0u);
      EXPECT_EQ(identity_of(getpid()), own);
      EXPECT_TRUE(identity_of(getppid()));
      EXPECT_NE(identity_of(getppid()), own);
      EXPECT_TRUE(identity_of(other.id()));
      EXPECT_FALSE(identity_of(zombie));
      EXPECT_FALSE(identity_of(std::numeric_limits<int32_t>::max()));
      std::thread([] {
        EXPECT_FALSE(identity_of(static_cast<int32_t>(syscall(SYS_gettid))));
      }).join();
    });
    EXPECT_TRUE(child.ended_well());
    other.say();
    EXPECT_TRUE(other.ended_well());
    EXPECT_TRUE(ended.ended_well());
  }
}

TEST(ProcessIdentityTest, SameNumberInAnotherNamespaceIsAnotherProcess) {
  const ProcessIdentity one{1, 7, 100};
  EXPECT_NE(one, (ProcessIdentity{1, 7, 200}));
  EXPECT_EQ(one, (ProcessIdentity{1, 7, 100}));
  EXPECT_EQ(one, (ProcessIdentity{1, 7, 0})) << "a namespace that is not known may be any";
  EXPECT_NE(own_identity().pid_namespace, 0u);
}

TEST(PresenceOfProcess, IsToldForProcessesOfTheOwnNamespace) {
  EXPECT_EQ(presence_of(own_identity()), Presence::kThere);
  OtherProcess child([](const Line& line) {
    line.say(own_identity().birth);
    line.hear();
  });
  const ProcessIdentity identity{child.id(), child.hear_word(), own_identity().pid_namespace};
  EXPECT_EQ(presence_of(identity), Presence::kThere);
  ProcessIdentity earlier = identity;
  --earlier.birth;
  EXPECT_EQ(presence_of(earlier), Presence::kGone);
  child.say();
  EXPECT_TRUE(child.ended_well());
  EXPECT_EQ(presence_of(identity), Presence::kGone);
}

TEST(PresenceOfProcess, IsUnknownWhereTheNumberMayMeanAnother) {
  ProcessIdentity identity = own_identity();
  ++identity.pid_namespace;
  EXPECT_EQ(presence_of(identity), Presence::kUnknown);
  identity = own_identity();
  identity.birth = 0;
  EXPECT_EQ(presence_of(identity), Presence::kUnknown);
}

// Made by one means and looked at by a process that has another.
TEST(PresenceOfProcess, IdentityByStartIsUnderstoodByAll) {
  OtherProcess child([](const Line& line) {
    ASSERT_TRUE(understudy_test::refuse_system_call(SYS_pidfd_open, ENOSYS));
    line.say(own_identity().birth);
    EXPECT_EQ(presence_of(own_identity()), Presence::kThere);
    const auto parents_birth = line.hear_word();
    const ProcessIdentity parent{getppid(), parents_birth, own_identity().pid_namespace};
    EXPECT_EQ(presence_of(parent), (parents_birth & ProcessIdentity::kStartTime) != 0
                                       ? Presence::kThere
                                       : Presence::kUnknown);
  });
  const ProcessIdentity identity{child.id(), child.hear_word(), own_identity().pid_namespace};
  EXPECT_EQ(presence_of(identity), Presence::kThere);
  child.say(own_identity().birth);
  EXPECT_TRUE(child.ended_well());
  EXPECT_EQ(presence_of(identity), Presence::kGone);
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
