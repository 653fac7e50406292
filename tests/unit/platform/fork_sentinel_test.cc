// SPDX-License-Identifier: Apache-2.0
#include "platform/fork_sentinel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "platform/memory_file.h"
#include "unit/expect_result.h"

namespace understudy::platform {
namespace {

// Runs the body in a fork child and gives what it returned there.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

class ForkSentinel : public testing::Test {
 protected:
  void SetUp() override {
    if (!arm_fork_sentinel()) GTEST_SKIP() << "this kernel has no MADV_WIPEONFORK";
  }
};

TEST_F(ForkSentinel, ProcessThatArmedItIsNoForkChild) {
  EXPECT_FALSE(in_fork_child());
  EXPECT_TRUE(arm_fork_sentinel());
  EXPECT_FALSE(in_fork_child());
}

TEST_F(ForkSentinel, ChildNoticesAndItsParentDoesNot) {
  EXPECT_EQ(in_child([] { return in_fork_child() ? 7 : 1; }), 7);
  EXPECT_FALSE(in_fork_child());
}

TEST_F(ForkSentinel, ChildThatArmsItAgainIsAProcessOfItsOwn) {
  EXPECT_EQ(in_child([] {
              if (!in_fork_child() || !arm_fork_sentinel() || in_fork_child()) return 1;
              // Its own child notices in turn.
              return in_child([] { return in_fork_child() ? 7 : 1; });
            }),
            7);
}

TEST_F(ForkSentinel, ChildClosesTheStoresOfItsParentAndNothingElse) {
  const MemoryFile store = value_of(MemoryFile::create(FileKind::kShared, "unit-test", 4096));
  const UniqueFd other(open("/dev/null", O_RDONLY));
  const int mine = store.descriptor();
  EXPECT_EQ(in_child([&] {
              if (!is_open(mine)) return 1;
              close_inherited_descriptors();
              return (is_open(mine) ? 2 : 0) | (is_open(other.get()) ? 0 : 4);
            }),
            0);
  EXPECT_TRUE(is_open(mine));
}

TEST_F(ForkSentinel, DescriptorOfAnEndedStoreIsForgotten) {
  std::optional<MemoryFile> store =
      value_of(MemoryFile::create(FileKind::kShared, "unit-test", 4096));
  const int number = store->descriptor();
  store.reset();
  // The number now means another file, which a child must keep.
  const UniqueFd other(open("/dev/null", O_RDONLY));
  ASSERT_EQ(other.get(), number);
  EXPECT_EQ(in_child([&] {
              close_inherited_descriptors();
              return is_open(number) ? 0 : 1;
            }),
            0);
}

TEST_F(ForkSentinel, RegistrationHasRoomAgainAfterManyStores) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(is_ok(MemoryFile::create(FileKind::kShared, "unit-test", 4096)));
  }
  const MemoryFile store = value_of(MemoryFile::create(FileKind::kShared, "unit-test", 4096));
  EXPECT_EQ(in_child([&] {
              close_inherited_descriptors();
              return is_open(store.descriptor()) ? 1 : 0;
            }),
            0);
}

}  // namespace
}  // namespace understudy::platform
