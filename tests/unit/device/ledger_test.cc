// SPDX-License-Identifier: Apache-2.0
//
// Who joins a server and who is of it: slots, tags, ends of processes. What they share is in
// share_table_test.cc and shared_events_test.cc, deaths in the middle in ledger_repair_test.cc.
#include "device/ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "platform/byte_lock.h"
#include "platform/process_identity.h"
#include "unit/platform/planned_fault.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

// Where the locks of the slots are in the file, as every version of the library must have them.
constexpr uint64_t kSlotBytes = (uint64_t{1} << 40) + 1;

class LedgerTest : public testing::Test {
 protected:
  // A process that joined and lives until it is told or killed.
  auto member() {
    return [this](const Line& line) {
      const std::unique_ptr<Ledger> ledger = server_.join();
      line.say(ledger->own_tag().word());
      line.hear();
    };
  }

  TestServer server_;
};

TEST_F(LedgerTest, FirstProcessBeginsTheServer) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  EXPECT_EQ(ledger->shape(), TestServer::shape());
  EXPECT_EQ(ledger->own_slot(), 0u);
  EXPECT_NE(ledger->server(), (std::array<uint64_t, 2>{}));
  EXPECT_EQ(ledger->directory()->path(), server_.directory().path());
  EXPECT_EQ(ledger->own().process, getpid());
  EXPECT_EQ(ledger->own().birth, platform::own_identity().birth);
  EXPECT_TRUE(ledger->is_alive(ledger->own_tag()));
}

TEST_F(LedgerTest, SecondProcessJoinsTheSameServer) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Ledger> theirs = server_.join();
    line.say(theirs->server()[0]);
    line.say(theirs->own_tag().word());
    EXPECT_TRUE(theirs->is_alive(0U));
    EXPECT_TRUE(theirs->is_alive(theirs->tag_of(0)));
    line.hear();
  });
  EXPECT_EQ(other.hear_word(), ledger->server()[0]);
  const ProcessTag tag(static_cast<uint32_t>(other.hear_word()));
  EXPECT_EQ(tag.slot(), 1u);
  EXPECT_NE(tag, ledger->own_tag());
  EXPECT_EQ(ledger->tag_of(1), tag);
  EXPECT_EQ(ledger->slot(1).process, other.id());
  EXPECT_TRUE(ledger->is_alive(tag));
  other.kill();
  EXPECT_FALSE(ledger->is_alive(tag));
  EXPECT_FALSE(ledger->is_alive(1U));
}

TEST_F(LedgerTest, ServerLivesOnWithoutTheProcessThatBeganIt) {
  OtherProcess first(member());
  first.hear_word();
  const std::unique_ptr<Ledger> ledger = server_.join();
  const auto id = ledger->server();
  first.kill();
  OtherProcess third([&](const Line&) { EXPECT_EQ(server_.join()->server(), id); });
  EXPECT_TRUE(third.ended_well());
}

TEST_F(LedgerTest, ServerWithoutProcessesBeginsAnew) {
  const auto id = server_.join()->server();
  ServerShape other = TestServer::shape();
  other.memory *= 2;
  std::ofstream(server_.directory().at("process-3")) << "left behind";
  const std::unique_ptr<Ledger> ledger = value_of(server_.try_join(other));
  EXPECT_NE(ledger->server(), id);
  EXPECT_EQ(ledger->shape(), other);
  EXPECT_EQ(ledger->own_slot(), 0u);
  EXPECT_FALSE(std::filesystem::exists(server_.directory().at("process-3")));
}

TEST_F(LedgerTest, OtherDevicesThanThoseOfTheLiveServerAreRefused) {
  OtherProcess first(member());
  first.hear_word();
  std::vector<ServerShape> shapes(4, TestServer::shape());
  shapes[0].devices = 3;
  shapes[1].memory += kMiB;
  shapes[2].normal_memory += kMiB;
  shapes[3].product = {'o', 't', 'h', 'e', 'r'};
  for (const ServerShape& shape : shapes) {
    const auto refused = server_.try_join(shape);
    ASSERT_TRUE(fails_with(refused, ErrorCode::kInvalidArgument));
    const std::string text = refused.error().text();
    EXPECT_NE(text.find("product test, 2 devices of 68 MiB"), std::string::npos) << text;
  }
  EXPECT_TRUE(is_ok(server_.try_join()));
}

TEST_F(LedgerTest, TornFileOfNobodyIsBegunAnew) {
  for (const std::string& content :
       {std::string(), std::string("torn"), std::string(4096, '\xff'), std::string(100'000, 'x')}) {
    std::ofstream(server_.ledger_path(), std::ios::binary | std::ios::trunc) << content;
    const auto ledger = server_.try_join();
    ASSERT_TRUE(is_ok(ledger)) << content.size();
    EXPECT_EQ(ledger.value()->own_slot(), 0u);
    EXPECT_EQ(ledger.value()->header().slots.load(), 1u);
  }
}

TEST_F(LedgerTest, FileThatLiveProcessesHaveAndIsNotOursIsLeftAlone) {
  using Damage = void (*)(LedgerHeader&);
  for (const Damage damage : std::vector<Damage>{
           [](LedgerHeader& header) { header.magic = 0; },
           [](LedgerHeader& header) { ++header.version; },
           [](LedgerHeader& header) { header.header_bytes = 1; },
           [](LedgerHeader& header) { header.shape.devices = 9; },
           [](LedgerHeader& header) { ++header.check; },
       }) {
    OtherProcess first([&](const Line& line) {
      const std::unique_ptr<Ledger> ledger = server_.join();
      damage(ledger->header());
      line.say();
      line.hear();
    });
    first.hear_word();
    EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kNoPermission));
  }
}

TEST_F(LedgerTest, FileThatWasCutShortIsLeftAlone) {
  OtherProcess first(member());
  first.hear_word();
  ASSERT_EQ(truncate(server_.ledger_path().c_str(), 10), 0);
  EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kNoPermission));
}

TEST_F(LedgerTest, SlotOfAProcessThatDiedIsTakenAgainWithAnotherTag) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  std::vector<ProcessTag> tags;
  for (int i = 0; i < 3; ++i) {
    OtherProcess other(member());
    tags.emplace_back(static_cast<uint32_t>(other.hear_word()));
    EXPECT_EQ(tags.back().slot(), 1u);
    EXPECT_TRUE(ledger->is_alive(tags.back()));
    for (size_t earlier = 0; earlier + 1 < tags.size(); ++earlier) {
      EXPECT_NE(tags[earlier], tags.back());
      EXPECT_FALSE(ledger->is_alive(tags[earlier]));
    }
    other.kill();
  }
  EXPECT_EQ(ledger->header().slots.load(), 2u);
}

// The same where it was the first slot.
TEST_F(LedgerTest, FirstSlotIsTakenAgainWhenItsProcessDied) {
  OtherProcess first(member());
  first.hear_word();
  OtherProcess second(member());
  second.hear_word();
  first.kill();
  const std::unique_ptr<Ledger> ledger = server_.join();
  EXPECT_EQ(ledger->own_slot(), 0u);
}

TEST_F(LedgerTest, EndedProcessesAreCleared) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  server_.with_process_that_dies([](Ledger& theirs) {
    theirs.own().devices[1].words[1].store(77);
    theirs.own().stores.store(3);
  });
  EXPECT_NE(ledger->slot(1).taken.load(), 0u);
  std::ofstream(server_.directory().at("process-1")) << "its socket";
  const uint64_t changes = ledger->header().changes.load();
  ledger->reclaim_if_any();
  EXPECT_EQ(ledger->slot(1).taken.load(), 0u);
  EXPECT_EQ(ledger->slot(1).devices[1].words[1].load(), 0u);
  EXPECT_FALSE(std::filesystem::exists(server_.directory().at("process-1")));
  EXPECT_EQ(ledger->header().changes.load(), changes + 2);
  ledger->reclaim_if_any();
  EXPECT_EQ(ledger->header().changes.load(), changes + 2);
  EXPECT_NE(ledger->own().taken.load(), 0u);
}

TEST_F(LedgerTest, LiveProcessesAreNotCleared) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  OtherProcess other(member());
  other.hear_word();
  // Nor is one that does not move.
  ASSERT_EQ(kill(other.id(), SIGSTOP), 0);
  ledger->reclaim(value_of(ledger->lock()));
  EXPECT_NE(ledger->slot(1).taken.load(), 0u);
  ASSERT_EQ(kill(other.id(), SIGCONT), 0);
}

TEST_F(LedgerTest, NobodyIsAlive) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  EXPECT_FALSE(ledger->is_alive(ProcessTag()));
  EXPECT_FALSE(ledger->is_alive(ProcessTag(kProcessSlots - 1, 1)));
  EXPECT_FALSE(ledger->is_alive(ProcessTag(0, ledger->own().generation.load() + 1)));
}

TEST_F(LedgerTest, ServerWithAllSlotsTakenRefusesTheNext) {
  // One process may have the locks of many slots: to others that is the same.
  OtherProcess crowd([&](const Line& line) {
    const std::unique_ptr<Ledger> theirs = server_.join();
    const platform::UniqueFd file(open(server_.ledger_path().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(kSharesOffset)), 0);
    for (unsigned slot = 1; slot < kProcessSlots; ++slot) {
      ASSERT_TRUE(platform::try_lock_byte(file.get(), kSlotBytes + slot));
      theirs->slot(slot).taken.store(1);
    }
    theirs->header().slots.store(kProcessSlots);
    line.say();
    line.hear_word();
    platform::unlock_byte(file.get(), kSlotBytes + 100);
    line.say();
    line.hear();
  });
  crowd.hear_word();
  EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kOutOfResources));
  crowd.say();
  crowd.hear_word();
  EXPECT_EQ(server_.join()->own_slot(), 100u);
}

TEST_F(LedgerTest, LocksAreOfOneProcessAtATimeAndNeverWaitedForLong) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Ledger> theirs = server_.join();
    const LedgerLock lock = value_of(theirs->lock());
    line.say();
    line.hear();
  });
  other.hear_word();
  const auto begin = Clock::now();
  EXPECT_TRUE(fails_with(ledger->lock(), ErrorCode::kConnection));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
  other.kill();
  EXPECT_TRUE(is_ok(ledger->lock()));
}

TEST_F(LedgerTest, FaultsOfTheHostAreErrorsAndTheNextTrySucceeds) {
  OtherProcess first(member());
  first.hear_word();
  for (const SystemCall call : {SystemCall::kOpenFile, SystemCall::kMapFile, SystemCall::kCommit}) {
    const PlannedFault fault(call, call == SystemCall::kOpenFile ? 2 : 1, ENOMEM);
    EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kOutOfResources));
    EXPECT_TRUE(fault.happened());
    EXPECT_TRUE(is_ok(server_.try_join()));
  }
}

TEST_F(LedgerTest, FaultsAtTheBeginningOfAServerAreErrors) {
  for (const SystemCall call : {SystemCall::kResizeFile, SystemCall::kCommit}) {
    const PlannedFault fault(call, 1, ENOSPC);
    EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kOutOfResources));
    EXPECT_TRUE(fault.happened());
    EXPECT_TRUE(is_ok(server_.try_join()));
  }
}

TEST_F(LedgerTest, SlotWhoseLockCannotBeTakenIsPassedOver) {
  const PlannedFault fault(SystemCall::kLockByte, 2, ENOLCK);  // the first is that of joining
  EXPECT_EQ(server_.join()->own_slot(), 1u);
}

TEST_F(LedgerTest, PrivateServerIsOfThisProcessAlone) {
  const std::unique_ptr<Ledger> ledger = value_of(Ledger::make_private(TestServer::shape()));
  EXPECT_EQ(ledger->directory(), nullptr);
  EXPECT_TRUE(ledger->is_alive(ledger->own_tag()));
  EXPECT_FALSE(ledger->is_alive(1U));
  ledger->reclaim_if_any();
  EXPECT_NE(ledger->own().taken.load(), 0u);
  const std::unique_ptr<Ledger> other = value_of(Ledger::make_private(TestServer::shape()));
  EXPECT_NE(other->server(), ledger->server());
}

TEST(ProcessTagTest, KeepsSlotAndGeneration) {
  EXPECT_TRUE(ProcessTag().is_nobody());
  for (const unsigned slot : {0u, 1u, kProcessSlots - 1}) {
    for (const uint32_t generation : {0u, 1u, 32767u, 32768u, 40000u}) {
      const ProcessTag tag(slot, generation);
      EXPECT_FALSE(tag.is_nobody());
      EXPECT_EQ(tag.slot(), slot);
      EXPECT_TRUE(tag.has_generation(generation));
      EXPECT_FALSE(tag.has_generation(generation + 1));
      EXPECT_EQ(ProcessTag(tag.word()), tag);
      EXPECT_LT(tag.word(), 1U << ProcessTag::kBits);
    }
  }
}

}  // namespace
}  // namespace understudy
