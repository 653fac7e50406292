// SPDX-License-Identifier: Apache-2.0
//
// Backing files that another process has: what it sees of them, and whose budget pays for what.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "memory/backing_file.h"
#include "unit/expect_result.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::bytes_behind;
using platform::cpu_can_read;
using platform::FileKind;
using platform::MemoryFile;
using platform::PlannedFault;
using platform::SystemCall;

constexpr uint64_t kGranules = 16;
constexpr uint64_t kSize = kGranules * kGranule;
constexpr uint64_t kStopped = 3;  // granules

class BackingFileAttach : public testing::Test {
 protected:
  static BackingFileOptions options(const Server& server, Poison poison = Poison::kOff) {
    BackingFileOptions wanted;
    wanted.name = "unit-test";
    wanted.collapse = false;
    wanted.poison = poison;
    wanted.slots = &server.slots();
    return wanted;
  }
  std::unique_ptr<BackingFile> make(Poison poison = Poison::kOff) {
    return value_of(BackingFile::create(options(*joined_, poison), kSize, budget_));
  }
  static MemoryFile copy_of(const MemoryFile& file) {
    return MemoryFile::adopt(platform::UniqueFd(dup(file.descriptor())), file.kind(), file.size());
  }
  // In the same process, which is all that visibility needs.
  Result<std::unique_ptr<BackingFile>> try_attach(const BackingFile& backing) {
    return BackingFile::attach(options(*joined_), copy_of(backing.file()),
                               copy_of(backing.states_file()), other_budget_);
  }
  // What another process may do with a backing file: attaches, does its part, says so, and goes
  // when told.
  template <typename Body>
  auto attached(const BackingFile& backing, Body body, Poison poison = Poison::kOff) {
    const auto file = backing.file().identity();
    const auto states = backing.states_file().identity();
    return [this, &backing, file, states, body, poison](const Line& line) {
      const auto open = [](const MemoryFile& theirs, const platform::FileIdentity& identity) {
        return value_of(MemoryFile::open_of_process(getppid(), theirs.descriptor(), identity,
                                                    theirs.kind(), theirs.size()));
      };
      const std::unique_ptr<Server> joined = server_.join();
      const std::unique_ptr<BackingFile> own =
          value_of(BackingFile::attach(options(*joined, poison), open(backing.file(), file),
                                       open(backing.states_file(), states), other_budget_));
      body(*own, line);
      line.say();
      line.hear();
    };
  }
  static uint8_t* bytes(const BackingFile& backing, uint64_t offset) {
    return static_cast<uint8_t*>(to_pointer(backing.alias(offset)));
  }

  TestServer server_;
  std::unique_ptr<Server> joined_ = server_.join();
  HostBudget budget_{HostBudget::Kind::kFixed, kSize};
  HostBudget other_budget_{HostBudget::Kind::kFixed, kSize};
};

TEST_F(BackingFileAttach, NothingIsSeenUntilItIsShown) {
  const auto backing = make();
  ASSERT_TRUE(is_ok(backing->commit(0, kSize)));
  bytes(*backing, 2 * kGranule)[5] = 0x55;
  const auto attached = value_of(try_attach(*backing));
  EXPECT_EQ(attached->size(), kSize);
  EXPECT_EQ(attached->kind(), backing->kind());
  EXPECT_TRUE(is_aligned(attached->alias(0), kHugePage));
  EXPECT_FALSE(cpu_can_read(attached->alias(2 * kGranule)));
  ASSERT_TRUE(is_ok(attached->show(2 * kGranule, 2 * kGranule)));
  EXPECT_EQ(bytes(*attached, 2 * kGranule)[5], 0x55);
  bytes(*attached, 3 * kGranule)[6] = 0x66;
  EXPECT_EQ(bytes(*backing, 3 * kGranule)[6], 0x66);
  EXPECT_FALSE(cpu_can_read(attached->alias(2 * kGranule - 1)));
  EXPECT_FALSE(cpu_can_read(attached->alias(4 * kGranule)));
  attached->hide(2 * kGranule, 2 * kGranule);
  EXPECT_FALSE(cpu_can_read(attached->alias(2 * kGranule)));
  EXPECT_FALSE(cpu_can_read(attached->alias(3 * kGranule)));
  EXPECT_EQ(bytes(*backing, 2 * kGranule)[5], 0x55);
}

TEST_F(BackingFileAttach, EndOfItLeavesNoWindow) {
  const auto backing = make();
  VirtualAddress alias = 0;
  {
    const auto attached = value_of(try_attach(*backing));
    alias = attached->alias(0);
    ASSERT_TRUE(is_ok(attached->show(0, kSize)));
    ASSERT_TRUE(is_ok(attached->commit(0, kGranule)));
    EXPECT_TRUE(cpu_can_read(alias));
  }
  EXPECT_FALSE(cpu_can_read(alias));
  EXPECT_EQ(other_budget_.taken(), 0u);
}

TEST_F(BackingFileAttach, FaultsOfTheHostAreErrors) {
  const auto backing = make();
  for (const SystemCall call : {SystemCall::kMapFile, SystemCall::kReserveAddresses}) {
    const PlannedFault fault(call, 1, ENOMEM);
    EXPECT_FALSE(try_attach(*backing).ok());
    EXPECT_TRUE(fault.happened());
  }
  const auto attached = value_of(try_attach(*backing));
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_FALSE(attached->show(0, kGranule).ok());
    EXPECT_TRUE(fault.happened());
  }
  EXPECT_FALSE(cpu_can_read(attached->alias(0)));
  EXPECT_TRUE(is_ok(attached->show(0, kGranule)));
}

TEST_F(BackingFileAttach, AnotherProcessUsesPartsAndCommitsWholeGranules) {
  const auto backing = make(Poison::kOn);
  ASSERT_TRUE(is_ok(backing->commit(0, 1)));
  ASSERT_TRUE(is_ok(backing->commit(kGranule, 1)));
  bytes(*backing, 0)[5] = 0x55;
  OtherProcess other(attached(
      *backing,
      [this](BackingFile& theirs, const Line&) {
        ASSERT_TRUE(is_ok(theirs.show(0, 2 * kGranule)));
        const BackingFile::Run run = theirs.run_at(0, kGranule);
        EXPECT_TRUE(run.is_committed);
        EXPECT_EQ(run.size, kPartBytes);
        EXPECT_EQ(bytes(theirs, 0)[5], 0x55);
        // What is there is used as it is.
        ASSERT_TRUE(is_ok(theirs.commit(kGranule, kGranule)));
        EXPECT_TRUE(theirs.is_committed_at(kGranule));
        EXPECT_EQ(bytes(theirs, kGranule)[kPartBytes], BackingFile::kPoisonByte);
        EXPECT_EQ(other_budget_.taken(), kGranule);
      },
      Poison::kOn));
  other.hear_word();
  EXPECT_EQ(backing->state_at(0), CommitState::kPartial);
  EXPECT_TRUE(backing->is_committed_at(kGranule));
  EXPECT_EQ(bytes(*backing, 0)[5], 0x55);
  // Until it gives the granule back it has paid for its part.
  EXPECT_EQ(budget_.taken(), 2 * kPartBytes);
  backing->decommit(0, kSize);
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(backing->backing().total(), 0u);
}

TEST_F(BackingFileAttach, ProcessThatCommitsAGranulePaysForIt) {
  const auto backing = make();
  ASSERT_TRUE(is_ok(backing->commit(0, kGranule)));
  OtherProcess other(attached(*backing, [this](BackingFile& theirs, const Line&) {
    EXPECT_TRUE(theirs.is_committed_at(0));
    EXPECT_TRUE(is_ok(theirs.show(0, 4 * kGranule)));
    EXPECT_TRUE(is_ok(theirs.commit(0, 3 * kGranule)));
    EXPECT_EQ(theirs.backing().total(), 2 * kGranule);
    EXPECT_EQ(other_budget_.taken(), 2 * kGranule);
    bytes(theirs, 2 * kGranule)[1] = 0x11;
  }));
  other.hear_word();
  EXPECT_TRUE(backing->is_all_committed(0, 3 * kGranule));
  EXPECT_EQ(backing->backing().total(), kGranule);
  EXPECT_EQ(budget_.taken(), kGranule);
  EXPECT_EQ(bytes_behind(backing->file()), 3 * kGranule);
  EXPECT_EQ(bytes(*backing, 2 * kGranule)[1], 0x11);
  // Committed as it is, it costs nothing.
  EXPECT_TRUE(is_ok(backing->commit(0, 3 * kGranule)));
  EXPECT_EQ(budget_.taken(), kGranule);
  // Nor is anything given back that others have paid.
  backing->decommit(0, 3 * kGranule);
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(backing->backing().total(), 0u);
  EXPECT_EQ(bytes_behind(backing->file()), 0u);
}

TEST_F(BackingFileAttach, HiddenMemoryIsNoLongerPaidForAndKeepsItsBytes) {
  const auto backing = make();
  OtherProcess other(attached(*backing, [this](BackingFile& theirs, const Line&) {
    EXPECT_TRUE(is_ok(theirs.show(0, 4 * kGranule)));
    EXPECT_TRUE(is_ok(theirs.commit(0, 4 * kGranule)));
    bytes(theirs, kGranule)[1] = 0x11;
    theirs.hide(0, 2 * kGranule);
    EXPECT_EQ(other_budget_.taken(), 2 * kGranule);
    EXPECT_EQ(theirs.backing().total(), 2 * kGranule);
    theirs.hide(0, 2 * kGranule);
    EXPECT_EQ(other_budget_.taken(), 2 * kGranule);
  }));
  other.hear_word();
  EXPECT_TRUE(backing->is_all_committed(0, 4 * kGranule));
  EXPECT_EQ(bytes(*backing, kGranule)[1], 0x11);
  EXPECT_EQ(budget_.taken(), 0u);
  other.kill();
  backing->decommit(0, 4 * kGranule);
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(bytes_behind(backing->file()), 0u);
}

TEST_F(BackingFileAttach, ProcessThatDiedWhileCommittingIsNotWaitedFor) {
  const auto backing = make(Poison::kOn);
  OtherProcess other([&, identity = backing->states_file().identity()](const Line&) {
    const std::unique_ptr<Server> joined = server_.join();
    const MemoryFile& theirs = backing->states_file();
    CommitStates states = value_of(CommitStates::attach(
        value_of(MemoryFile::open_of_process(getppid(), theirs.descriptor(), identity,
                                             theirs.kind(), theirs.size())),
        kGranules, &joined->slots()));
    for (const uint64_t granule : {0U, 1U, 3U}) EXPECT_TRUE(states.claim(granule));
    OtherProcess::end_child();
  });
  EXPECT_TRUE(other.ended_well());
  EXPECT_EQ(backing->state_at(0), CommitState::kCommitting);
  EXPECT_EQ(backing->committed_bytes_in(0, kSize), 0u);
  ASSERT_TRUE(is_ok(backing->commit(0, 4 * kGranule)));
  EXPECT_EQ(budget_.taken(), 4 * kGranule);
  for (const uint64_t granule : {0U, 1U, 2U, 3U}) {
    EXPECT_EQ(bytes(*backing, granule * kGranule)[kGranule - 1], BackingFile::kPoisonByte)
        << granule;
  }
}

TEST_F(BackingFileAttach, PartsStayWhenAProcessDiesAtTheirGranule) {
  const auto backing = make(Poison::kOn);
  ASSERT_TRUE(is_ok(backing->commit(0, 1)));
  bytes(*backing, 0)[3] = 0x33;
  OtherProcess other(attached(
      *backing,
      [](BackingFile& theirs, const Line&) {
        ASSERT_TRUE(is_ok(theirs.show(0, kGranule)));
        platform::plan_stop(SystemCall::kCommit, 1, 0);
        (void)theirs.commit(0, kGranule);
      },
      Poison::kOn));
  other.wait_until_stopped();
  EXPECT_EQ(backing->state_at(0), CommitState::kCommitting);
  other.kill();
  // What is there needs no one's leave; more of it is to be had, and then all of it.
  EXPECT_TRUE(is_ok(backing->commit(0, 2)));
  EXPECT_EQ(backing->run_at(0, kGranule).size, kPartBytes);
  ASSERT_TRUE(is_ok(backing->commit(4 * kPartBytes, 1)));
  EXPECT_EQ(backing->state_at(0), CommitState::kPartial);
  EXPECT_EQ(bytes(*backing, 0)[3], 0x33);
  ASSERT_TRUE(is_ok(backing->commit(0, kGranule)));
  EXPECT_EQ(bytes(*backing, 0)[3], 0x33);
  EXPECT_EQ(bytes(*backing, 0)[kGranule - 1], BackingFile::kPoisonByte);
  EXPECT_EQ(budget_.taken(), kGranule);
}

// Of a process that fills the granule and does not get on.
TEST_F(BackingFileAttach, PartsThatAreThereAreUsedWithoutTheProcessThatIsAtTheirGranule) {
  const auto backing = make();
  ASSERT_TRUE(is_ok(backing->commit(0, 1)));
  bytes(*backing, 0)[3] = 0x33;
  OtherProcess other([&, identity = backing->states_file().identity()](const Line& line) {
    const std::unique_ptr<Server> joined = server_.join();
    const MemoryFile& theirs = backing->states_file();
    CommitStates states = value_of(CommitStates::attach(
        value_of(MemoryFile::open_of_process(getppid(), theirs.descriptor(), identity,
                                             theirs.kind(), theirs.size())),
        kGranules, &joined->slots()));
    EXPECT_TRUE(states.claim(0));
    EXPECT_TRUE(states.begin_fill(0));
    line.say();
    line.hear();
  });
  other.hear_word();
  // Each of those that waited would take 5 s.
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(is_ok(backing->commit(1, 2))) << i;
  for (int i = 0; i < 2000; ++i) backing->note_read(1);
  EXPECT_EQ(backing->state_at(0), CommitState::kFilling);
  EXPECT_TRUE(fails_with(backing->commit(kPartBytes, 1), ErrorCode::kConnection));
  EXPECT_EQ(budget_.taken(), kPartBytes);
  other.kill();
  ASSERT_TRUE(is_ok(backing->commit(kPartBytes, 1)));
  EXPECT_EQ(bytes(*backing, 0)[3], 0x33);
}

TEST_F(BackingFileAttach, MemoryThatTheOtherProcessCommitsIsFreshAsOurs) {
  const auto backing = make(Poison::kOn);
  OtherProcess other(attached(
      *backing,
      [](BackingFile& theirs, const Line&) {
        EXPECT_EQ(theirs.fresh_byte(), BackingFile::kPoisonByte);
        EXPECT_TRUE(is_ok(theirs.show(kGranule, kGranule)));
        EXPECT_TRUE(is_ok(theirs.commit(kGranule, kGranule)));
      },
      Poison::kOn));
  other.hear_word();
  EXPECT_EQ(bytes(*backing, kGranule)[0], BackingFile::kPoisonByte);
  EXPECT_EQ(bytes(*backing, kGranule)[kGranule - 1], BackingFile::kPoisonByte);
}

TEST_F(BackingFileAttach, ProcessesThatCommitTheSameGranulesPayOnce) {
  const auto backing = make();
  OtherProcess other(attached(*backing, [this](BackingFile& theirs, const Line& line) {
    EXPECT_TRUE(is_ok(theirs.show(0, kSize)));
    line.say();
    line.hear_word();
    for (uint64_t granule = kGranules; granule-- > 0;) {
      EXPECT_TRUE(is_ok(theirs.commit(granule * kGranule, kGranule)));
    }
    line.say(other_budget_.taken());
  }));
  other.hear_word();
  other.say();
  EXPECT_TRUE(is_ok(backing->commit(0, kSize)));
  EXPECT_EQ(other.hear_word() + budget_.taken(), kSize);
  EXPECT_EQ(bytes_behind(backing->file()), kSize);
}

// ---- A process that is stopped while it commits ----

// Stops in the middle of a commit of the first granules, in which the host then fails or not.
auto stopped_commit(int system_number) {
  return [system_number](BackingFile& own, const Line&) {
    ASSERT_TRUE(is_ok(own.show(0, kStopped * kGranule)));
    platform::plan_stop(SystemCall::kCommit, 1, system_number);
    const Result<void> committed = own.commit(0, kStopped * kGranule);
    EXPECT_EQ(committed.ok(), system_number == 0);
    EXPECT_EQ(own.backing().total(), 0u) << "counts what another process has committed";
  };
}

TEST_F(BackingFileAttach, CommitOfAStoppedProcessIsTakenOverAndItsBytesStay) {
  for (const Poison poison : {Poison::kOff, Poison::kOn}) {
    for (const int system_number : {0, ENOMEM}) {
      SCOPED_TRACE(system_number);
      const auto backing = make(poison);
      OtherProcess other(attached(*backing, stopped_commit(system_number), poison));
      other.wait_until_stopped();
      EXPECT_EQ(backing->state_at(0), CommitState::kCommitting);
      ASSERT_TRUE(is_ok(backing->commit(0, kStopped * kGranule)));
      EXPECT_EQ(bytes(*backing, kGranule)[3], backing->fresh_byte());
      const std::vector<uint8_t> written(kStopped * kGranule, 0x77);
      memcpy(bytes(*backing, 0), written.data(), written.size());
      other.go_on();
      other.hear_word();
      EXPECT_EQ(memcmp(bytes(*backing, 0), written.data(), written.size()), 0) << "bytes are lost";
      EXPECT_TRUE(backing->is_all_committed(0, kStopped * kGranule));
      EXPECT_EQ(budget_.taken(), kStopped * kGranule);
      other.say();
      EXPECT_TRUE(other.ended_well());
    }
  }
}

}  // namespace
}  // namespace understudy
