// SPDX-License-Identifier: Apache-2.0
//
// Who joins a server, and how processes end. Their slots and tags are in process_slots_test.cc,
// what they share in share_table_test.cc and event_table_test.cc, deaths in the middle in
// ledger_repair_test.cc.
#include "server/server.h"

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

#include "platform/local_socket.h"
#include "platform/private_directory.h"
#include "platform/process_identity.h"
#include "unit/expect_result.h"
#include "unit/ledger_image.h"
#include "unit/platform/planned_fault.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

// The holder of the lock is this number until it has a slot.
constexpr LedgerMutexWord::Holder kJoiner = 1U << 30 | 7;

void lock_as_joiner(const LedgerImage& image) {
  struct All final : LedgerMutexWord::Census {
    bool is_alive(LedgerMutexWord::Holder) const override { return true; }
  };
  EXPECT_EQ(image.header().mutex.lock(kJoiner, All(), kNever), LedgerLocking::kTaken);
}

class ServerTest : public testing::Test {
 protected:
  TestServer server_;
};

TEST_F(ServerTest, FirstProcessBeginsTheServer) {
  const std::unique_ptr<Server> joined = server_.join();
  const LedgerImage image(server_);
  EXPECT_EQ(joined->shape(), TestServer::shape());
  EXPECT_EQ(joined->slots().own_slot(), 0u);
  EXPECT_NE(joined->id(), (std::array<uint64_t, 2>{}));
  EXPECT_EQ(joined->directory()->path(), server_.directory().path());
  EXPECT_EQ(image.slot(0).process, getpid());
  EXPECT_EQ(image.slot(0).birth, platform::own_identity().birth);
  EXPECT_TRUE(joined->slots().is_alive(joined->slots().own_tag()));
}

TEST_F(ServerTest, SecondProcessJoinsTheSameServer) {
  const std::unique_ptr<Server> joined = server_.join();
  const LedgerImage image(server_);
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Server> theirs = server_.join();
    line.say(theirs->id()[0]);
    line.say(theirs->slots().own_tag().word());
    EXPECT_TRUE(theirs->slots().is_slot_alive(0));
    EXPECT_TRUE(theirs->slots().is_alive(theirs->slots().tag_of(0)));
    line.hear();
  });
  EXPECT_EQ(other.hear_word(), joined->id()[0]);
  const ProcessTag tag(other.hear_word());
  EXPECT_EQ(tag.slot(), 1u);
  EXPECT_NE(tag, joined->slots().own_tag());
  EXPECT_EQ(joined->slots().tag_of(1), tag);
  EXPECT_EQ(image.slot(1).process, other.id());
  EXPECT_TRUE(joined->slots().is_alive(tag));
  other.kill();
  EXPECT_FALSE(joined->slots().is_alive(tag));
  EXPECT_FALSE(joined->slots().is_slot_alive(1));
}

TEST_F(ServerTest, ServerLivesOnWithoutTheProcessThatBeganIt) {
  OtherProcess first(server_.member());
  first.hear_word();
  const std::unique_ptr<Server> joined = server_.join();
  const auto id = joined->id();
  first.kill();
  OtherProcess third([&](const Line&) { EXPECT_EQ(server_.join()->id(), id); });
  EXPECT_TRUE(third.ended_well());
}

TEST_F(ServerTest, ServerWithoutProcessesBeginsAnew) {
  const auto id = server_.join()->id();
  ServerShape other = TestServer::shape();
  other.memory *= 2;
  ASSERT_EQ(mknod(server_.directory().at("process-3").c_str(), S_IFSOCK | 0600, 0), 0);
  std::ofstream(server_.directory().at("process-data.csv")) << "not the server's";
  const std::unique_ptr<Server> joined = value_of(server_.try_join(other));
  EXPECT_NE(joined->id(), id);
  EXPECT_EQ(joined->shape(), other);
  EXPECT_EQ(joined->slots().own_slot(), 0u);
  EXPECT_FALSE(std::filesystem::exists(server_.directory().at("process-3")));
  EXPECT_TRUE(std::filesystem::exists(server_.directory().at("process-data.csv")));
}

TEST_F(ServerTest, OtherDevicesThanThoseOfTheLiveServerAreRefused) {
  OtherProcess first(server_.member());
  first.hear_word();
  struct Other {
    ServerShape shape = TestServer::shape();
    const char* here;
    const char* there;
  };
  std::vector<Other> others = {
      {.here = "product test;", .there = "product other"},
      {.here = "devices 2;", .there = "devices 3"},
      {.here = "memory 68 MiB;", .there = "memory 69 MiB"},
      {.here = "normal_memory 4 MiB;", .there = "normal_memory 5 MiB"},
      {.here = "idle_usage 0 bytes;", .there = "idle_usage 4 KiB"},
      {.here = "idle_usage 0 bytes;", .there = "idle_usage 2 MiB"},
      {.here = "host_p2p_memory none;", .there = "host_p2p_memory 1 MiB"},
  };
  others[0].shape.product = {'o', 't', 'h', 'e', 'r'};
  others[1].shape.devices = 3;
  others[2].shape.memory += kMiB;
  others[3].shape.normal_memory += kMiB;
  others[4].shape.idle_usage.normal = 4 * kKiB;
  others[5].shape.idle_usage.huge = kHugePage;
  others[6].shape.host_window = kMiB;
  for (const Other& other : others) {
    const auto refused = server_.try_join(other.shape);
    ASSERT_TRUE(fails_with(refused, ErrorCode::kInvalidArgument));
    EXPECT_EQ(refused.error().text(), "the live server at " + server_.directory().path() + " has " +
                                          other.here + " this process is configured for " +
                                          other.there);
  }
  EXPECT_TRUE(is_ok(server_.try_join()));
}

TEST_F(ServerTest, TornFileOfNobodyIsBegunAnew) {
  for (const std::string& content :
       {std::string(), std::string("torn"), std::string(4096, '\xff'), std::string(100'000, 'x')}) {
    std::ofstream(server_.ledger_path(), std::ios::binary | std::ios::trunc) << content;
    const auto joined = server_.try_join();
    ASSERT_TRUE(is_ok(joined)) << content.size();
    EXPECT_EQ(joined.value()->slots().own_slot(), 0u);
    EXPECT_EQ(joined.value()->slots().count(), 1u);
  }
}

TEST_F(ServerTest, FileThatLiveProcessesHaveAndIsNotOursIsLeftAlone) {
  using Damage = void (*)(LedgerHeader&);
  for (const Damage damage : std::vector<Damage>{
           [](LedgerHeader& header) { header.magic = 0; },
           [](LedgerHeader& header) { ++header.version; },
           [](LedgerHeader& header) { header.header_bytes = 1; },
           [](LedgerHeader& header) { header.shape.devices = 9; },
           [](LedgerHeader& header) { ++header.check; },
       }) {
    OtherProcess first([&](const Line& line) {
      const std::unique_ptr<Server> joined = server_.join();
      damage(LedgerImage(server_).header());
      line.say();
      line.hear();
    });
    first.hear_word();
    EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kNoPermission));
  }
}

TEST_F(ServerTest, FileThatWasCutShortIsLeftAlone) {
  OtherProcess first(server_.member());
  first.hear_word();
  ASSERT_EQ(truncate(server_.ledger_path().c_str(), 10), 0);
  EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kNoPermission));
}

TEST_F(ServerTest, EndedProcessesAreCleared) {
  const std::unique_ptr<Server> joined = server_.join();
  const LedgerImage image(server_);
  server_.with_process_that_dies([&](Server& theirs) {
    LedgerImage(server_).pages(theirs.slots().own_slot(), 1).store(77);
    theirs.slots().publish_backing_file(0, {});
  });
  EXPECT_NE(image.slot(1).taken.load(), 0u);
  const platform::UnsharedFd socket = value_of(platform::listen_at(
      value_of(platform::PrivateDirectory::open(server_.directory().path())), "process-1"));
  const uint64_t changes = image.header().changes.load();
  joined->slots().reclaim_if_any();
  EXPECT_EQ(image.slot(1).taken.load(), 0u);
  EXPECT_EQ(image.pages(1, 1).load(), 0u);
  EXPECT_FALSE(std::filesystem::exists(server_.directory().at("process-1")));
  EXPECT_EQ(image.header().changes.load(), changes + 2);
  joined->slots().reclaim_if_any();
  EXPECT_EQ(image.header().changes.load(), changes + 2);
  EXPECT_NE(image.slot(0).taken.load(), 0u);
}

TEST_F(ServerTest, LiveProcessesAreNotCleared) {
  const std::unique_ptr<Server> joined = server_.join();
  const LedgerImage image(server_);
  OtherProcess other(server_.member());
  other.hear_word();
  // Nor is one that does not move.
  ASSERT_EQ(kill(other.id(), SIGSTOP), 0);
  reclaim(*joined);
  EXPECT_NE(image.slot(1).taken.load(), 0u);
  ASSERT_EQ(kill(other.id(), SIGCONT), 0);
}

TEST_F(ServerTest, NobodyIsAlive) {
  const std::unique_ptr<Server> joined = server_.join();
  const LedgerImage image(server_);
  EXPECT_FALSE(joined->slots().is_alive(ProcessTag()));
  EXPECT_FALSE(joined->slots().is_alive(ProcessTag(kProcessSlots - 1, 1)));
  EXPECT_FALSE(joined->slots().is_alive(ProcessTag(0, image.slot(0).generation.load() + 1)));
}

// How long a lock is waited for is in ledger_mutex_test.cc.
TEST_F(ServerTest, LockOfAProcessIsTakenWhenItDies) {
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Server> theirs = server_.join();
    const LedgerLock lock(theirs->slots().mutex(), kNever);
    line.say();
    line.hear();
  });
  other.hear_word();
  other.kill();
  EXPECT_TRUE(can_lock(*joined));
  EXPECT_TRUE(can_lock(*joined));
}

// It has no slot yet by which it could be known.
TEST_F(ServerTest, LockOfAProcessThatDiedWhenItJoinedIsTaken) {
  const std::unique_ptr<Server> joined = server_.join();
  server_.with_process_that_dies([&](Server&) { lock_as_joiner(LedgerImage(server_)); });
  EXPECT_TRUE(can_lock(*joined));
}

TEST_F(ServerTest, FaultsOfTheHostAreErrorsAndTheNextTrySucceeds) {
  OtherProcess first(server_.member());
  first.hear_word();
  for (const SystemCall call : {SystemCall::kOpenFile, SystemCall::kMapFile, SystemCall::kCommit}) {
    const PlannedFault fault(call, call == SystemCall::kOpenFile ? 2 : 1, ENOMEM);
    EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kOutOfResources));
    EXPECT_TRUE(fault.happened());
    EXPECT_TRUE(is_ok(server_.try_join()));
  }
}

TEST_F(ServerTest, FaultsAtTheBeginningOfAServerAreErrors) {
  const PlannedFault fault(SystemCall::kCommit, 1, ENOSPC);
  EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kOutOfResources));
  EXPECT_TRUE(fault.happened());
  EXPECT_TRUE(is_ok(server_.try_join()));
}

TEST_F(ServerTest, PrivateServerIsOfThisProcessAlone) {
  const std::unique_ptr<Server> joined =
      value_of(Server::make_private(TestServer::shape(), TestServer::numbers()));
  EXPECT_EQ(joined->directory(), nullptr);
  EXPECT_TRUE(joined->slots().is_alive(joined->slots().own_tag()));
  EXPECT_FALSE(joined->slots().is_slot_alive(1));
  joined->slots().reclaim_if_any();
  EXPECT_TRUE(joined->slots().has_own_slot());
  const std::unique_ptr<Server> other =
      value_of(Server::make_private(TestServer::shape(), TestServer::numbers()));
  EXPECT_NE(other->id(), joined->id());
}

}  // namespace
}  // namespace understudy
