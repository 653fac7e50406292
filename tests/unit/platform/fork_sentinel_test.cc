// SPDX-License-Identifier: Apache-2.0
#include "platform/fork_sentinel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "platform/memory_file.h"
#include "unit/expect_result.h"

namespace understudy::platform {
namespace {

int result_of(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// Runs the body in a child of fork and gives what it returned there.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return result_of(child);
}

// The same in a child that the C library knows nothing of.
template <typename Body>
int in_cloned_child(Body body) {
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
  if (child == 0) _exit(body());
  return result_of(child);
}

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

MemoryFile make_store() {
  return value_of(MemoryFile::create(FileKind::kShared, "unit-test", 4096));
}

class ForkSentinel : public testing::Test {
 protected:
  ForkSentinel() { arm_fork_sentinel(); }
};

TEST_F(ForkSentinel, ProcessThatArmedItIsNoForkChild) {
  EXPECT_FALSE(in_fork_child());
  arm_fork_sentinel();
  EXPECT_FALSE(in_fork_child());
}

TEST_F(ForkSentinel, ChildNoticesAndItsParentDoesNot) {
  EXPECT_EQ(in_child([] { return in_fork_child() ? 7 : 1; }), 7);
  EXPECT_EQ(in_cloned_child([] { return in_fork_child() ? 7 : 1; }), 7);
  EXPECT_FALSE(in_fork_child());
}

TEST_F(ForkSentinel, ChildThatArmsItAgainIsAProcessOfItsOwn) {
  const int code = in_child([] {
    if (!in_fork_child()) return 1;
    arm_fork_sentinel();
    if (in_fork_child()) return 2;
    // Its own child notices in turn.
    return in_child([] { return in_fork_child() ? 7 : 3; });
  });
  EXPECT_EQ(code, 7);
}

TEST_F(ForkSentinel, ChildFindsTheTurnFreeThatItsParentHas) {
  const ProcessTurn turn;
  const auto takes_it = [] {
    alarm(30);
    const ProcessTurn own;
    return 7;
  };
  EXPECT_EQ(in_child(takes_it), 7);
  EXPECT_EQ(in_cloned_child(takes_it), 7);
}

TEST_F(ForkSentinel, OneThreadHasTheTurnAtATime) {
  int inside = 0;
  int most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        const ProcessTurn turn;
        most = std::max(most, ++inside);
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

// Both are process 1, of a pid namespace each.
TEST_F(ForkSentinel, ChildWithTheNumberOfItsParentIsAnotherProcess) {
  const auto in_new_namespace = [](auto body) {
    const auto child = static_cast<pid_t>(
        syscall(SYS_clone, SIGCHLD | CLONE_NEWPID, nullptr, nullptr, nullptr, 0));
    if (child < 0) return 100;  // not allowed
    if (child == 0) _exit(body());
    return result_of(child);
  };
  const int code = in_new_namespace([&] {
    arm_fork_sentinel();
    const MemoryFile store = make_store();
    return in_new_namespace([&] {
      if (getpid() != 1 || !in_fork_child()) return 1;
      close_inherited_descriptors();
      return is_open(store.descriptor()) ? 2 : 7;
    });
  });
  if (code == 100) GTEST_SKIP() << "no new namespace without privileges";
  EXPECT_EQ(code, 7);
}

TEST_F(ForkSentinel, ForkClosesTheStoresOfTheParentAndNothingElse) {
  const MemoryFile store = make_store();
  const UniqueFd other(open("/dev/null", O_RDONLY));
  const int code = in_child(
      [&] { return (is_open(store.descriptor()) ? 1 : 0) | (is_open(other.get()) ? 0 : 2); });
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(is_open(store.descriptor()));
}

TEST_F(ForkSentinel, ClonedChildClosesTheStoresItself) {
  const MemoryFile store = make_store();
  const UniqueFd other(open("/dev/null", O_RDONLY));
  const int code = in_cloned_child([&] {
    if (!is_open(store.descriptor())) return 1;
    close_inherited_descriptors();
    return (is_open(store.descriptor()) ? 2 : 0) | (is_open(other.get()) ? 0 : 4);
  });
  EXPECT_EQ(code, 0);
}

TEST_F(ForkSentinel, ProcessNeverClosesItsOwnStores) {
  const MemoryFile store = make_store();
  close_inherited_descriptors();
  EXPECT_TRUE(is_open(store.descriptor()));
  // Nor does a child those that it made since.
  const int code = in_child([] {
    const MemoryFile own = make_store();
    close_inherited_descriptors();
    return is_open(own.descriptor()) ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(ForkSentinel, DescriptorOfAnEndedStoreIsForgotten) {
  std::optional<MemoryFile> store = make_store();
  const int number = store->descriptor();
  store.reset();
  // The number now means another file, which a child must keep.
  const UniqueFd other(open("/dev/null", O_RDONLY));
  ASSERT_EQ(other.get(), number);
  EXPECT_EQ(in_child([&] { return is_open(number) ? 0 : 1; }), 0);
}

TEST_F(ForkSentinel, NumberThatMeansAnotherFileByNowIsLeftAlone) {
  const UniqueFd registered(open("/dev/null", O_RDONLY));
  close_in_fork_child(registered.get());
  // Closed and opened behind our back, without a word to the registry.
  const UniqueFd other(open("/dev/zero", O_RDONLY));
  ASSERT_EQ(dup2(other.get(), registered.get()), registered.get());
  EXPECT_EQ(in_child([&] { return is_open(registered.get()) ? 0 : 1; }), 0);
  forget_for_fork_child(registered.get());
}

TEST_F(ForkSentinel, RegistrationHasRoomAgainAfterManyStores) {
  for (int i = 0; i < 1000; ++i) (void)make_store();
  const MemoryFile store = make_store();
  EXPECT_EQ(in_child([&] { return is_open(store.descriptor()) ? 1 : 0; }), 0);
}

}  // namespace
}  // namespace understudy::platform
