// SPDX-License-Identifier: Apache-2.0
//
// The slots that processes have in a ledger, which are taken again, and their tags, which are not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/pause.h"
#include "platform/byte_lock.h"
#include "platform/local_socket.h"
#include "platform/private_directory.h"
#include "platform/process_identity.h"
#include "server/server.h"
#include "unit/expect_result.h"
#include "unit/ledger_image.h"
#include "unit/platform/planned_fault.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

// Where the locks of the slots are in the file, as every version of the library must have them.
static_assert(kSlotBytes == (uint64_t{1} << 40) + 1);

class ProcessSlotsTest : public testing::Test {
 protected:
  TestServer server_;
};

TEST_F(ProcessSlotsTest, SlotOfAProcessThatDiedIsTakenAgainWithAnotherTag) {
  const std::unique_ptr<Server> joined = server_.join();
  std::vector<ProcessTag> tags;
  for (int i = 0; i < 3; ++i) {
    OtherProcess other(server_.member());
    tags.emplace_back(other.hear_word());
    EXPECT_EQ(tags.back().slot(), 1u);
    EXPECT_TRUE(joined->slots().is_alive(tags.back()));
    for (size_t earlier = 0; earlier + 1 < tags.size(); ++earlier) {
      EXPECT_NE(tags[earlier], tags.back());
      EXPECT_FALSE(joined->slots().is_alive(tags[earlier]));
    }
    other.kill();
  }
  joined->slots().reclaim_if_any();
  EXPECT_EQ(joined->slots().count(), 1u);
}

// Its socket goes with it; a file of the user's that has the name of one stays.
TEST_F(ProcessSlotsTest, OnlySocketsAreRemovedWithASlot) {
  namespace fs = std::filesystem;
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess first(server_.member());
  first.hear_word();
  OtherProcess second(server_.member());
  second.hear_word();
  const std::string path = server_.directory().path();
  const platform::PrivateDirectory directory = value_of(platform::PrivateDirectory::open(path));
  const platform::UnsharedFd socket = value_of(platform::listen_at(directory, "process-1"));
  std::ofstream(path + "/process-2") << "mine";
  first.kill();
  second.kill();
  joined->slots().reclaim_if_any();
  EXPECT_EQ(joined->slots().count(), 1u);
  EXPECT_FALSE(fs::exists(path + "/process-1"));
  EXPECT_TRUE(fs::is_regular_file(path + "/process-2"));
}

// The same where others have later slots.
TEST_F(ProcessSlotsTest, SlotBetweenOthersIsTakenAgainWhenItsProcessDied) {
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess first(server_.member());
  const ProcessTag dead(first.hear_word());
  OtherProcess last(server_.member());
  EXPECT_EQ(ProcessTag(last.hear_word()).slot(), 2u);
  first.kill();
  joined->slots().reclaim_if_any();
  EXPECT_EQ(joined->slots().count(), 3u);
  OtherProcess next(server_.member());
  const ProcessTag tag(next.hear_word());
  EXPECT_EQ(tag.slot(), dead.slot());
  EXPECT_EQ(tag.generation(), dead.generation() + 1);
  EXPECT_FALSE(joined->slots().is_alive(dead));
  EXPECT_FALSE(joined->slots().is_alive(ShortProcessTag(dead)));
  EXPECT_TRUE(joined->slots().is_alive(tag));
  EXPECT_TRUE(joined->slots().is_alive(ShortProcessTag(tag)));
}

// The same where it was the first slot.
TEST_F(ProcessSlotsTest, FirstSlotIsTakenAgainWhenItsProcessDied) {
  OtherProcess first(server_.member());
  first.hear_word();
  OtherProcess second(server_.member());
  second.hear_word();
  first.kill();
  const std::unique_ptr<Server> joined = server_.join();
  EXPECT_EQ(joined->slots().own_slot(), 0u);
}

TEST_F(ProcessSlotsTest, FreeSlotsAtTheEndAreNotLookedAt) {
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess first(server_.member());
  first.hear_word();
  OtherProcess last(server_.member());
  const ProcessTag tag(last.hear_word());
  first.kill();
  joined->slots().reclaim_if_any();
  EXPECT_EQ(joined->slots().count(), 3u);
  EXPECT_TRUE(joined->slots().is_alive(tag));
  last.kill();
  joined->slots().reclaim_if_any();
  EXPECT_EQ(joined->slots().count(), 1u);
  EXPECT_FALSE(joined->slots().is_alive(tag));
  EXPECT_TRUE(joined->slots().is_alive(joined->slots().own_tag()));
}

TEST_F(ProcessSlotsTest, ProcessThatOthersTookForDeadKnowsIt) {
  const std::unique_ptr<Server> joined = server_.join();
  EXPECT_TRUE(joined->slots().has_own_slot());
  const LedgerImage image(server_);
  image.slot(0).taken.store(0);
  EXPECT_FALSE(joined->slots().has_own_slot());
  // Nor is the slot its own when the next one has it.
  image.slot(0).taken.store(1);
  image.slot(0).generation.fetch_add(1);
  EXPECT_FALSE(joined->slots().has_own_slot());
  EXPECT_FALSE(joined->slots().is_alive(joined->slots().own_tag()));
  EXPECT_FALSE(can_lock(*joined));
}

// ---- Who lives: the kernel says so, not a lock ----

TEST_F(ProcessSlotsTest, ProcessThatClosesTheFileIsAlive) {
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Server> theirs = server_.join();
    LedgerImage(server_).pages(theirs->slots().own_slot()).store(77);
    line.say(theirs->slots().own_tag().word());
    line.hear_word();
    close(open(server_.ledger_path().c_str(), O_RDONLY | O_CLOEXEC));
    line.say();
    line.hear_word();
    for (int each = 3; each < line.descriptor(); ++each) close(each);
    line.say();
    line.hear_word();
    // It sees the others as before, and takes part.
    EXPECT_TRUE(theirs->slots().is_slot_alive(0));
    EXPECT_TRUE(can_lock(*theirs));
    line.say();
    line.hear_word();
    EXPECT_TRUE(theirs->slots().is_slot_alive(0));
    EXPECT_FALSE(theirs->slots().is_slot_alive(2));
    theirs->slots().reclaim_if_any();
    EXPECT_EQ(LedgerImage(server_).slot(2).taken.load(), 0u);
    line.say();
    line.hear();
  });
  const ProcessTag tag(other.hear_word());
  for (int i = 0; i < 2; ++i) {
    other.say();
    other.hear_word();
    EXPECT_TRUE(joined->slots().is_alive(tag));
    reclaim(*joined);
    EXPECT_EQ(LedgerImage(server_).pages(1).load(), 77u);
    OtherProcess next(server_.member());
    EXPECT_EQ(ProcessTag(next.hear_word()).slot(), 2u);
  }
  other.say();
  other.hear_word();
  server_.with_process_that_dies([](Server& theirs) { EXPECT_EQ(theirs.slots().own_slot(), 2u); });
  other.say();
  other.hear_word();
  other.kill();
  EXPECT_FALSE(joined->slots().is_alive(tag));
}

// A slot of a process that is not what its lock says.
class ProcessLiveness : public ProcessSlotsTest {
 protected:
  static constexpr unsigned kSlot = 1;

  void take_slot_as(const platform::ProcessIdentity& identity) {
    OtherProcess backing(server_.member());  // so that the slot has memory
    backing.hear_word();
    backing.kill();
    joined_->slots().reclaim_if_any();
    ProcessSlot& slot = image_.slot(kSlot);
    slot.process = identity.id;
    slot.birth = identity.birth;
    slot.pid_namespace = identity.pid_namespace;
    slot.taken.store(1);
    image_.header().slots.store(kSlot + 1);
  }
  void lock_slot() {
    ASSERT_TRUE(platform::try_lock_byte(image_.descriptor(), kSlotBytes + kSlot));
  }
  bool is_cleared() {
    reclaim(*joined_);
    return image_.slot(kSlot).taken.load() == 0;
  }
  static platform::ProcessIdentity gone() {
    platform::ProcessIdentity identity;
    OtherProcess other([](const Line& line) { line.hear(); });
    identity = *value_of(platform::identity_of_process(other.id()));
    other.kill();
    return identity;
  }
  static platform::ProcessIdentity of_other_namespace() {
    platform::ProcessIdentity identity = platform::own_identity();
    ++identity.pid_namespace;
    return identity;
  }

  std::unique_ptr<Server> joined_ = server_.join();
  LedgerImage image_{server_};
};

TEST_F(ProcessLiveness, ProcessThatTheKernelKnowsIsAliveWithoutItsLock) {
  OtherProcess other([](const Line& line) { line.hear(); });
  take_slot_as(*value_of(platform::identity_of_process(other.id())));
  EXPECT_TRUE(joined_->slots().is_slot_alive(kSlot));
  EXPECT_FALSE(is_cleared());
  other.kill();
  EXPECT_FALSE(joined_->slots().is_slot_alive(kSlot));
  EXPECT_TRUE(is_cleared());
}

// A child of it may have inherited the lock at an unlucky moment.
TEST_F(ProcessLiveness, ProcessThatTheKernelDoesNotKnowIsDeadThoughItsLockIsHeld) {
  take_slot_as(gone());
  lock_slot();
  EXPECT_TRUE(is_cleared());
  // The next process passes over a slot whose lock it cannot have.
  OtherProcess next(server_.member());
  EXPECT_EQ(ProcessTag(next.hear_word()).slot(), kSlot + 1);
}

TEST_F(ProcessLiveness, ProcessOfAnotherPidNamespaceIsDeadWhenItsLockIsFree) {
  take_slot_as(of_other_namespace());
  lock_slot();
  EXPECT_TRUE(joined_->slots().is_slot_alive(kSlot));
  EXPECT_FALSE(is_cleared());
  platform::unlock_byte(image_.descriptor(), kSlotBytes + kSlot);
  EXPECT_FALSE(joined_->slots().is_slot_alive(kSlot));
  EXPECT_TRUE(is_cleared());
}

TEST_F(ProcessLiveness, ProcessWithoutABirthIsDeadWhenItsLockIsFree) {
  take_slot_as({getpid(), 0, platform::own_identity().pid_namespace});
  lock_slot();
  EXPECT_FALSE(is_cleared());
  platform::unlock_byte(image_.descriptor(), kSlotBytes + kSlot);
  EXPECT_TRUE(is_cleared());
}

TEST_F(ProcessLiveness, ServerOfAProcessWithoutItsLockIsNotBegunAnew) {
  OtherProcess other([](const Line& line) { line.hear(); });
  take_slot_as(*value_of(platform::identity_of_process(other.id())));
  const auto id = joined_->id();
  joined_.reset();
  EXPECT_EQ(server_.join()->id(), id);
  other.kill();
  EXPECT_NE(server_.join()->id(), id);
}

// What it had went with the program that it was.
TEST_F(ProcessLiveness, ProcessThatExecutedAnotherProgramHasOneSlot) {
  take_slot_as(platform::own_identity());
  OtherProcess other(server_.member());
  EXPECT_EQ(ProcessTag(other.hear_word()).slot(), kSlot + 1);
  joined_.reset();
  joined_ = server_.join();
  EXPECT_EQ(joined_->slots().own_slot(), 0u);
  EXPECT_EQ(image_.slot(kSlot).taken.load(), 0u);
}

// As a copy of the library in the same process has.
TEST_F(ProcessLiveness, SecondLedgerOfAProcessHasASlotOfItsOwn) {
  image_.pages(0).store(77);
  const std::unique_ptr<Server> copy = server_.join();
  EXPECT_EQ(copy->slots().own_slot(), 1u);
  EXPECT_EQ(copy->id(), joined_->id());
  reclaim(*copy);
  reclaim(*joined_);
  EXPECT_TRUE(joined_->slots().has_own_slot() && copy->slots().has_own_slot());
  EXPECT_TRUE(joined_->slots().is_alive(copy->slots().own_tag()) &&
              copy->slots().is_alive(joined_->slots().own_tag()));
  EXPECT_EQ(image_.pages(0).load(), 77u);
}

TEST_F(ProcessSlotsTest, EndOfAProcessIsNoticedThoughAChildOfItLives) {
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess parent([&](const Line& line) {
    const std::unique_ptr<Server> theirs = server_.join();
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    line.say(static_cast<uint64_t>(child));
    line.hear();
  });
  const auto child = static_cast<pid_t>(parent.hear_word());
  EXPECT_TRUE(joined->slots().is_slot_alive(1));
  parent.kill();
  EXPECT_FALSE(joined->slots().is_slot_alive(1));
  joined->slots().reclaim_if_any();
  EXPECT_EQ(LedgerImage(server_).slot(1).taken.load(), 0u);
  EXPECT_EQ(kill(child, SIGKILL), 0);
}

// ---- Ends that are noticed without asking for each process ----

TEST_F(ProcessSlotsTest, EndsOfProcessesThatAttachAreCounted) {
  const std::unique_ptr<Server> joined = server_.join();
  const LedgerImage image(server_);
  const LedgerHeader& header = image.header();
  EXPECT_EQ(header.counted.count(), 1u);
  OtherProcess other(server_.member());
  other.hear_word();
  EXPECT_EQ(header.counted.count(), 2u);
  EXPECT_TRUE(header.uncounted.empty());
  joined->slots().reclaim_if_any();
  EXPECT_EQ(header.counted.count(), 2u);
  other.kill();
  joined->slots().reclaim_if_any();
  EXPECT_EQ(header.counted.count(), 1u);
}

// As in another IPC namespace, or where the host has no such segments.
TEST_F(ProcessSlotsTest, EndOfAProcessThatCannotAttachIsNoticed) {
  const std::unique_ptr<Server> joined = server_.join();
  const LedgerImage image(server_);
  const LedgerHeader& header = image.header();
  const auto without_segment = [&](const Line& line) {
    const PlannedFault fault(SystemCall::kAttach, 1, ENOSYS);
    server_.member()(line);
  };
  OtherProcess other(without_segment);
  other.hear_word();
  EXPECT_EQ(header.counted.count(), 1u);
  EXPECT_EQ(header.uncounted.count(), 1u);
  joined->slots().reclaim_if_any();
  EXPECT_EQ(header.uncounted.count(), 1u);
  other.kill();
  joined->slots().reclaim_if_any();
  EXPECT_TRUE(header.uncounted.empty());
  EXPECT_EQ(joined->slots().count(), 1u);
}

TEST_F(ProcessSlotsTest, ProcessThatCannotAttachNoticesTheEndsOfTheOthers) {
  OtherProcess counted(server_.member());
  counted.hear_word();
  const PlannedFault fault(SystemCall::kAttach, 1, ENOSYS);
  const std::unique_ptr<Server> joined = server_.join();
  EXPECT_EQ(joined->slots().own_slot(), 1u);
  joined->slots().reclaim_if_any();
  const LedgerImage image(server_);
  EXPECT_NE(image.slot(0).taken.load(), 0u);
  counted.kill();
  joined->slots().reclaim_if_any();
  EXPECT_EQ(image.slot(0).taken.load(), 0u);
  // With no one left who is counted, the next one makes a segment of its own.
  OtherProcess next(server_.member());
  next.hear_word();
  EXPECT_TRUE(image.header().counted.has(0));
}

// As of a child that a process forked while it attached.
TEST_F(ProcessSlotsTest, AttachmentOfNoProcessHidesNoEnd) {
  const std::unique_ptr<Server> joined = server_.join();
  const LedgerImage image(server_);
  const auto extra = platform::Attachment::join(image.header().segment, image.header().server);
  ASSERT_TRUE(extra);
  OtherProcess other(server_.member());
  other.hear_word();
  other.kill();
  joined->slots().reclaim_if_any();
  EXPECT_EQ(image.header().counted.count(), 1u);
  EXPECT_EQ(joined->slots().count(), 1u);
}

// It keeps what it has charged, and is asked for by itself from then on.
TEST_F(ProcessSlotsTest, ProcessThatExecutesAnotherProgramIsNoLongerCounted) {
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Server> theirs = server_.join();
    EXPECT_TRUE(theirs->capacity().charge({0, PageKind::kHuge, kHugePage}));
    line.say();
    line.hear_word();
    execl("/bin/sleep", "sleep", "1000", nullptr);
  });
  other.hear_word();
  other.say();
  EXPECT_FALSE(other.hear()) << "the line ends with the program";
  const LedgerImage image(server_);
  // Its files are closed when the next one begins to run.
  while (platform::is_locked_by_other(image.descriptor(), kSlotBytes + 1)) nap();
  for (int look = 0; look < 2; ++look) {
    EXPECT_EQ(joined->capacity().figures(0, PageKind::kHuge).free,
              TestServer::kHugeMemory - kHugePage);
    EXPECT_EQ(image.header().counted.count(), 1u);
    EXPECT_EQ(image.header().uncounted.count(), 1u);
  }
  other.kill();
  EXPECT_EQ(joined->capacity().figures(0, PageKind::kHuge).free, TestServer::kHugeMemory);
  EXPECT_TRUE(image.header().uncounted.empty());
}

TEST_F(ProcessSlotsTest, SegmentOutlivesTheProcessThatMadeIt) {
  OtherProcess maker(server_.member());
  maker.hear_word();
  const std::unique_ptr<Server> joined = server_.join();
  maker.kill();
  joined->slots().reclaim_if_any();
  OtherProcess next(server_.member());
  next.hear_word();
  const LedgerImage image(server_);
  EXPECT_EQ(image.header().counted.count(), 2u);
  next.kill();
  joined->slots().reclaim_if_any();
  EXPECT_EQ(image.header().counted.count(), 1u);
}

TEST_F(ProcessSlotsTest, ProcessThatLeavesTheServerGivesItsSlotBack) {
  OtherProcess other([&](const Line& line) {
    std::unique_ptr<Server> theirs = server_.join();
    EXPECT_TRUE(theirs->capacity().charge({0, PageKind::kHuge, kHugePage}));
    line.say();
    line.hear_word();
    theirs.reset();
    line.say();
    line.hear();
  });
  other.hear_word();
  const std::unique_ptr<Server> joined = server_.join();
  EXPECT_EQ(joined->slots().own_slot(), 1u);
  EXPECT_TRUE(joined->slots().is_slot_alive(0));
  other.say();
  other.hear_word();
  EXPECT_FALSE(joined->slots().is_slot_alive(0));
  EXPECT_EQ(joined->capacity().figures(0, PageKind::kHuge).free, TestServer::kHugeMemory);
}

TEST_F(ProcessSlotsTest, ServerWithAllSlotsTakenRefusesTheNext) {
  // One process may have the locks of many slots: to others that is the same. Slots without an
  // identity are those of processes that could not find out their own.
  OtherProcess crowd([&](const Line& line) {
    const std::unique_ptr<Server> theirs = server_.join();
    const LedgerImage image(server_);
    ASSERT_EQ(ftruncate(image.descriptor(), static_cast<off_t>(kSharesOffset)), 0);
    for (unsigned slot = 1; slot < kProcessSlots; ++slot) {
      ASSERT_TRUE(platform::try_lock_byte(image.descriptor(), kSlotBytes + slot));
      image.slot(slot).taken.store(1);
    }
    image.header().slots.store(kProcessSlots);
    line.say();
    line.hear_word();
    platform::unlock_byte(image.descriptor(), kSlotBytes + 100);
    line.say();
    line.hear();
  });
  crowd.hear_word();
  EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kOutOfResources));
  crowd.say();
  crowd.hear_word();
  EXPECT_EQ(server_.join()->slots().own_slot(), 100u);
}

TEST_F(ProcessSlotsTest, SlotWhoseLockCannotBeTakenIsPassedOver) {
  const PlannedFault fault(SystemCall::kLockByte, 2, ENOLCK);  // the first is that of joining
  EXPECT_EQ(server_.join()->slots().own_slot(), 1u);
}

TEST(ProcessTagTest, KeepsSlotAndGeneration) {
  EXPECT_TRUE(ProcessTag().is_none());
  for (const unsigned slot : {0u, 1u, kProcessSlots - 1}) {
    for (const uint64_t generation : {uint64_t{1}, uint64_t{1} << 19, uint64_t{1} << 40}) {
      const ProcessTag tag(slot, generation);
      EXPECT_FALSE(tag.is_none());
      EXPECT_EQ(tag.slot(), slot);
      EXPECT_EQ(tag.generation(), generation);
      EXPECT_NE(tag, ProcessTag(slot, generation + 1));
      EXPECT_EQ(ProcessTag(tag.word()), tag);
    }
  }
}

TEST(ShortProcessTagTest, TellsHalfAMillionGenerationsOfASlotApart) {
  constexpr uint64_t kGenerations = uint64_t{1} << (ShortProcessTag::kBits - 9);
  static_assert(kProcessSlots == 1U << 9);
  for (const unsigned slot : {0u, kProcessSlots - 1}) {
    const ShortProcessTag tag(ProcessTag(slot, 1));
    EXPECT_EQ(tag.slot(), slot);
    EXPECT_EQ(ShortProcessTag(tag.word()).word(), tag.word());
    EXPECT_NE(ShortProcessTag(ProcessTag(slot, kGenerations)).word(), tag.word());
    EXPECT_EQ(ShortProcessTag(ProcessTag(slot, kGenerations + 1)).word(), tag.word());
    EXPECT_LT(ShortProcessTag(ProcessTag(slot, UINT64_MAX >> 9)).word(),
              1U << ShortProcessTag::kBits);
  }
}

}  // namespace
}  // namespace understudy
