// SPDX-License-Identifier: Apache-2.0
//
// Who joins a server, and how processes end. Their slots and tags are in ledger_slots_test.cc, what
// they share in share_table_test.cc and shared_events_test.cc, deaths in the middle in
// ledger_repair_test.cc.
#include "device/ledger.h"

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

#include "platform/process_identity.h"
#include "unit/platform/planned_fault.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

// What a process has the mutex as until it has a slot.
constexpr LedgerMutex::Holder kJoiner = 1U << 30 | 7;

void lock_as_joiner(Ledger& ledger) {
  struct All final : LedgerMutex::Census {
    bool is_alive(LedgerMutex::Holder) const override { return true; }
  };
  EXPECT_EQ(ledger.header().mutex.lock(kJoiner, All(), kNever), LedgerLocking::kTaken);
}

class LedgerTest : public testing::Test {
 protected:
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
    EXPECT_TRUE(theirs->is_slot_alive(0));
    EXPECT_TRUE(theirs->is_alive(theirs->tag_of(0)));
    line.hear();
  });
  EXPECT_EQ(other.hear_word(), ledger->server()[0]);
  const ProcessTag tag(other.hear_word());
  EXPECT_EQ(tag.slot(), 1u);
  EXPECT_NE(tag, ledger->own_tag());
  EXPECT_EQ(ledger->tag_of(1), tag);
  EXPECT_EQ(ledger->slot(1).process, other.id());
  EXPECT_TRUE(ledger->is_alive(tag));
  other.kill();
  EXPECT_FALSE(ledger->is_alive(tag));
  EXPECT_FALSE(ledger->is_slot_alive(1));
}

TEST_F(LedgerTest, ServerLivesOnWithoutTheProcessThatBeganIt) {
  OtherProcess first(server_.member());
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
  OtherProcess first(server_.member());
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
  OtherProcess first(server_.member());
  first.hear_word();
  ASSERT_EQ(truncate(server_.ledger_path().c_str(), 10), 0);
  EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kNoPermission));
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
  OtherProcess other(server_.member());
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

// How long a lock is waited for is in ledger_mutex_test.cc.
TEST_F(LedgerTest, LockOfAProcessIsTakenWhenItDies) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Ledger> theirs = server_.join();
    const LedgerLock lock = value_of(theirs->lock());
    line.say();
    line.hear();
  });
  other.hear_word();
  other.kill();
  EXPECT_TRUE(is_ok(ledger->lock()));
  EXPECT_TRUE(is_ok(ledger->lock()));
}

// It has no slot yet by which it could be known.
TEST_F(LedgerTest, LockOfAProcessThatDiedWhenItJoinedIsTaken) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  server_.with_process_that_dies([](Ledger& theirs) { lock_as_joiner(theirs); });
  EXPECT_TRUE(is_ok(ledger->lock()));
}

TEST_F(LedgerTest, FaultsOfTheHostAreErrorsAndTheNextTrySucceeds) {
  OtherProcess first(server_.member());
  first.hear_word();
  for (const SystemCall call : {SystemCall::kOpenFile, SystemCall::kMapFile, SystemCall::kCommit}) {
    const PlannedFault fault(call, call == SystemCall::kOpenFile ? 2 : 1, ENOMEM);
    EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kOutOfResources));
    EXPECT_TRUE(fault.happened());
    EXPECT_TRUE(is_ok(server_.try_join()));
  }
}

TEST_F(LedgerTest, FaultsAtTheBeginningOfAServerAreErrors) {
  const PlannedFault fault(SystemCall::kCommit, 1, ENOSPC);
  EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kOutOfResources));
  EXPECT_TRUE(fault.happened());
  EXPECT_TRUE(is_ok(server_.try_join()));
}

TEST_F(LedgerTest, PrivateServerIsOfThisProcessAlone) {
  const std::unique_ptr<Ledger> ledger = value_of(Ledger::make_private(TestServer::shape()));
  EXPECT_EQ(ledger->directory(), nullptr);
  EXPECT_TRUE(ledger->is_alive(ledger->own_tag()));
  EXPECT_FALSE(ledger->is_slot_alive(1));
  ledger->reclaim_if_any();
  EXPECT_NE(ledger->own().taken.load(), 0u);
  const std::unique_ptr<Ledger> other = value_of(Ledger::make_private(TestServer::shape()));
  EXPECT_NE(other->server(), ledger->server());
}

}  // namespace
}  // namespace understudy
