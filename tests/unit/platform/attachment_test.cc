// SPDX-License-Identifier: Apache-2.0
#include "platform/attachment.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>

#include "base/kill_point.h"
#include "unit/other_process.h"
#include "unit/platform/planned_fault.h"

namespace understudy::platform {
namespace {

constexpr Attachment::Mark kMark{0x1234, 0x5678};

class AttachmentTest : public testing::Test {
 protected:
  // A process that attaches and lives until it is told or killed.
  auto member() const {
    return [this](const Line& line) {
      const std::optional<Attachment> joined = Attachment::join(made_->segment(), kMark);
      EXPECT_TRUE(joined);
      line.say();
      line.hear();
    };
  }
  uint64_t count() const { return made_->count().value_or(0); }

  std::optional<Attachment> made_ = Attachment::make(kMark);
};

TEST_F(AttachmentTest, EndOfAProcessIsSeenAtOnce) {
  ASSERT_TRUE(made_);
  EXPECT_EQ(count(), 1u);
  std::deque<OtherProcess> members;
  for (unsigned i = 0; i < 5; ++i) {
    members.emplace_back(member());
    members.back().hear_word();
    EXPECT_EQ(count(), i + 2);
  }
  while (!members.empty()) {
    members.front().kill();
    members.pop_front();
    EXPECT_EQ(count(), members.size() + 1);
  }
}

TEST_F(AttachmentTest, ForkChildrenDoNotCount) {
  OtherProcess parent([&](const Line& line) {
    const std::optional<Attachment> joined = Attachment::join(made_->segment(), kMark);
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    line.say(static_cast<uint64_t>(child));
    line.hear();
  });
  const auto child = static_cast<pid_t>(parent.hear_word());
  EXPECT_EQ(count(), 2u);
  parent.kill();
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(kill(child, SIGKILL), 0);
}

TEST_F(AttachmentTest, EndsWithTheProgramOfAProcess) {
  OtherProcess other([&](const Line& line) {
    const std::optional<Attachment> joined = Attachment::join(made_->segment(), kMark);
    line.say();
    line.hear_word();
    execl("/bin/sleep", "sleep", "1000", nullptr);
  });
  other.hear_word();
  EXPECT_EQ(count(), 2u);
  other.say();
  EXPECT_FALSE(other.hear()) << "the line ends with the program";
  EXPECT_EQ(count(), 1u);
  other.kill();
}

TEST_F(AttachmentTest, EndsWithItsObject) {
  {
    const std::optional<Attachment> second = Attachment::join(made_->segment(), kMark);
    EXPECT_EQ(count(), 2u);
  }
  EXPECT_EQ(count(), 1u);
  const int32_t segment = made_->segment();
  made_.reset();
  EXPECT_FALSE(Attachment::join(segment, kMark)) << "the last one has gone";
}

// Its number is that of another one in another namespace.
TEST_F(AttachmentTest, SegmentWithAnotherMarkIsNotAttached) {
  EXPECT_FALSE(Attachment::join(made_->segment(), {kMark[0], kMark[1] + 1}));
  EXPECT_EQ(count(), 1u);
}

TEST_F(AttachmentTest, SegmentThatThereIsNotIsNotAttached) {
  EXPECT_FALSE(Attachment::join(-1, kMark));
}

TEST_F(AttachmentTest, HostThatHasNoneIsSurvived) {
  {
    const PlannedFault fault(SystemCall::kAttach, 1, ENOSYS);
    EXPECT_FALSE(Attachment::make(kMark));
  }
  const PlannedFault fault(SystemCall::kAttach, 1, ENOSYS);
  EXPECT_FALSE(Attachment::join(made_->segment(), kMark));
}

// The segment that it leaves is removed by the next one.
TEST_F(AttachmentTest, DeathWhileOneIsMadeKeepsNoOtherFromIt) {
  OtherProcess maker([](const Line&) {
    kill_point_handler.store([](const char* name) {
      if (strcmp(name, "segment.made") == 0) raise(SIGKILL);
    });
    (void)Attachment::make(kMark);
  });
  EXPECT_TRUE(maker.ended_by(SIGKILL));
  const std::optional<Attachment> next = Attachment::make(kMark);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->count(), 1u);
}

}  // namespace
}  // namespace understudy::platform
