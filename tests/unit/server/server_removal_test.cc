// SPDX-License-Identifier: Apache-2.0
//
// What is left of a server is removed when no process uses it, and nothing else ever is.
#include "server/server_removal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "platform/byte_lock.h"
#include "platform/fault_plan.h"
#include "unit/ledger_image.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

namespace fs = std::filesystem;

class ServerRemovalTest : public testing::Test {
 protected:
  RemovalOutcome remove(RemovalMode mode = RemovalMode::kRemove) const {
    return remove_abandoned_server(server_.directory().path(), mode).outcome;
  }
  void make_abandoned() const {
    server_.with_process_that_dies([](Server&) {});
  }
  void make_socket(const std::string& name) const {
    EXPECT_EQ(mknod(server_.directory().at(name).c_str(), S_IFSOCK | 0600, 0), 0);
  }
  bool has_ledger() const { return fs::exists(server_.ledger_path()); }

  TestServer server_;
};

TEST_F(ServerRemovalTest, AbandonedServerIsRemoved) {
  make_abandoned();
  make_socket("process-3");
  make_socket("process-511");
  EXPECT_EQ(remove(RemovalMode::kOnlyLook), RemovalOutcome::kRemoved);
  EXPECT_TRUE(has_ledger());
  EXPECT_EQ(remove(), RemovalOutcome::kRemoved);
  EXPECT_FALSE(fs::exists(server_.directory().path()));
  EXPECT_EQ(remove(), RemovalOutcome::kAbsent);
}

TEST_F(ServerRemovalTest, ServerInUseStays) {
  OtherProcess other(server_.member());
  other.hear_word();
  EXPECT_EQ(remove(), RemovalOutcome::kInUse);
  EXPECT_TRUE(has_ledger());
  const std::unique_ptr<Server> joined = server_.join();
  EXPECT_EQ(joined->slots().own_slot(), 1u);
}

TEST_F(ServerRemovalTest, ServerInUseOfAnotherVersionStays) {
  OtherProcess other(server_.member());
  other.hear_word();
  const LedgerImage image(server_);
  ++image.header().version;
  EXPECT_EQ(remove(), RemovalOutcome::kInUse);
  --image.header().version;
}

TEST_F(ServerRemovalTest, AbandonedServerOfAnotherVersionIsRemoved) {
  make_abandoned();
  {
    const LedgerImage image(server_);
    ++image.header().version;
  }
  EXPECT_EQ(remove(), RemovalOutcome::kRemoved);
}

TEST_F(ServerRemovalTest, ServerThatIsBeingJoinedStays) {
  make_abandoned();
  const LedgerImage image(server_);
  ASSERT_TRUE(platform::try_lock_byte(image.descriptor(), kJoinByte));
  EXPECT_EQ(remove(), RemovalOutcome::kInUse);
  EXPECT_TRUE(has_ledger());
}

TEST_F(ServerRemovalTest, OtherDirectoriesStay) {
  EXPECT_EQ(remove(), RemovalOutcome::kNotServer);
  std::ofstream(server_.ledger_path()) << "accounts of 1923";
  EXPECT_EQ(remove(), RemovalOutcome::kNotServer);
  EXPECT_TRUE(has_ledger());
  fs::remove(server_.ledger_path());
  fs::create_directory(server_.ledger_path());
  EXPECT_EQ(remove(), RemovalOutcome::kNotServer);
  EXPECT_TRUE(has_ledger());
}

// A process was killed before the header was whole.
TEST_F(ServerRemovalTest, ServerThatNeverBeganIsRemoved) {
  for (const size_t zeros : {size_t{0}, sizeof(LedgerHeader), size_t{kSlotsOffset}}) {
    fs::create_directory(server_.directory().path());
    fs::permissions(server_.directory().path(), fs::perms::owner_all);
    std::ofstream(server_.ledger_path()) << std::string(zeros, '\0');
    EXPECT_EQ(remove(), RemovalOutcome::kRemoved) << zeros;
    EXPECT_FALSE(fs::exists(server_.directory().path())) << zeros;
  }
}

TEST_F(ServerRemovalTest, ProcessThatIsKilledAsItBeginsAServerLeavesWhatCanBeRemoved) {
  OtherProcess joining([&](const Line&) {
    platform::plan_stop(platform::SystemCall::kCommit, 1);
    (void)server_.try_join();
  });
  joining.wait_until_stopped();
  EXPECT_EQ(remove(), RemovalOutcome::kInUse);
  joining.kill();
  EXPECT_EQ(remove(), RemovalOutcome::kRemoved);
  EXPECT_FALSE(fs::exists(server_.directory().path()));
}

TEST_F(ServerRemovalTest, LinkToAServerStays) {
  make_abandoned();
  const TemporaryDirectory other;
  const std::string link = other.at("link");
  fs::create_directory_symlink(server_.directory().path(), link);
  EXPECT_EQ(remove_abandoned_server(link, RemovalMode::kRemove).outcome,
            RemovalOutcome::kNotServer);
  EXPECT_TRUE(has_ledger());
}

TEST_F(ServerRemovalTest, DirectoryThatOthersMayLookIntoStays) {
  make_abandoned();
  fs::permissions(server_.directory().path(), fs::perms::all);
  EXPECT_EQ(remove(), RemovalOutcome::kNotServer);
  EXPECT_TRUE(has_ledger());
}

TEST_F(ServerRemovalTest, OtherFilesStayAndAreNamed) {
  make_abandoned();
  std::ofstream(server_.directory().at("notes")) << "mine";
  for (const RemovalMode mode : {RemovalMode::kOnlyLook, RemovalMode::kRemove}) {
    EXPECT_TRUE(has_ledger());
    const Removal removal = remove_abandoned_server(server_.directory().path(), mode);
    EXPECT_EQ(removal.outcome, RemovalOutcome::kLeftOver);
    EXPECT_EQ(removal.explanation,
              server_.directory().path() + " has other files in it and stays without its ledger");
  }
  EXPECT_FALSE(has_ledger());
  EXPECT_TRUE(fs::exists(server_.directory().at("notes")));
}

TEST_F(ServerRemovalTest, FilesWithNamesLikeThoseOfSocketsStay) {
  make_abandoned();
  const std::vector<std::string> sockets = {"process-512", "process-03", "process-1x", "1",
                                            "process-"};
  for (const std::string& name : sockets) make_socket(name);
  const std::vector<std::string> files = {"process-data.csv", "process-7"};
  for (const std::string& name : files) std::ofstream(server_.directory().at(name)) << "mine";
  EXPECT_EQ(remove(), RemovalOutcome::kLeftOver);
  for (const std::string& name : sockets) EXPECT_TRUE(fs::exists(server_.directory().at(name)));
  for (const std::string& name : files) EXPECT_TRUE(fs::exists(server_.directory().at(name)));
}

TEST_F(ServerRemovalTest, ProcessThatWaitsToJoinBeginsANewServer) {
  make_abandoned();
  // The place of a removal that has the lock and is about to unlink.
  auto image = std::make_unique<LedgerImage>(server_);
  ASSERT_TRUE(platform::try_lock_byte(image->descriptor(), kJoinByte));
  OtherProcess waiting([&](const Line& line) {
    image.reset();  // a copy of the descriptor would keep the lock
    line.say();
    const std::unique_ptr<Server> theirs = server_.join();
    EXPECT_EQ(theirs->slots().own_slot(), 0u);
    EXPECT_TRUE(fs::exists(server_.ledger_path()));
    line.say();
    line.hear();
  });
  waiting.hear_word();
  fs::remove(server_.ledger_path());
  std::error_code begun_already;
  fs::remove(server_.directory().path(), begun_already);
  image.reset();  // gives the lock up
  waiting.hear_word();
  const std::unique_ptr<Server> joined = server_.join();
  EXPECT_EQ(joined->slots().own_slot(), 1u);
}

TEST_F(ServerRemovalTest, ProcessThatOpensARemovedLedgerBeginsANewServer) {
  make_abandoned();
  OtherProcess joining([&](const Line&) {
    platform::plan_stop(platform::SystemCall::kStatFile, 1);
    const Result<std::unique_ptr<Server>> theirs = server_.try_join();
    ASSERT_TRUE(is_ok(theirs));
    EXPECT_TRUE(has_ledger());
  });
  joining.wait_until_stopped();
  EXPECT_EQ(remove(), RemovalOutcome::kRemoved);
  joining.go_on();
  EXPECT_TRUE(joining.ended_well());
}

TEST_F(ServerRemovalTest, RemovalsAndJoinsAtATimeLeaveNoProcessAlone) {
  constexpr int kRounds = 100;
  OtherProcess remover([&](const Line& line) {
    line.say();
    for (int i = 0; i < kRounds * 10; ++i) (void)remove();
  });
  remover.hear_word();
  for (int i = 0; i < kRounds; ++i) {
    const Result<std::unique_ptr<Server>> joined = server_.try_join();
    ASSERT_TRUE(is_ok(joined));
    EXPECT_EQ(remove(), RemovalOutcome::kInUse);
    EXPECT_TRUE(joined.value()->capacity().charge({0, PageKind::kHuge, 2 * kMiB}));
  }
  EXPECT_TRUE(remover.ended_well());
}

}  // namespace
}  // namespace understudy
