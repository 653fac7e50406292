// SPDX-License-Identifier: Apache-2.0
//
// What a viewer sees of a server that it does not join: live, abandoned, damaged, of another
// version. Sizes and counts are those that the processes wrote into their parts of the ledger.
#include "server/server_view.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "unit/ledger_image.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

class ServerViewTest : public testing::Test {
 protected:
  ServerView look() const { return look_at_server(server_.directory().path()); }
  // What the ledger is as a file, to see that a look changes nothing.
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void resize_ledger(uint64_t size) const {
    std::filesystem::resize_file(server_.ledger_path(), size);
  }

  TestServer server_;
};

TEST_F(ServerViewTest, NoDirectoryIsNoServer) {
  const ServerView view = look_at_server(server_.directory().at("nowhere"));
  EXPECT_EQ(view.state, ServerState::kAbsent);
  EXPECT_NE(view.explanation.find("nowhere"), std::string::npos);
}

TEST_F(ServerViewTest, DirectoryWithoutALedgerIsNoServer) {
  EXPECT_EQ(look().state, ServerState::kAbsent);
}

TEST_F(ServerViewTest, LedgerThatIsNoPlainFileIsNotRead) {
  std::filesystem::create_directory(server_.ledger_path());
  EXPECT_EQ(look().state, ServerState::kUnreadable);
  std::filesystem::remove(server_.ledger_path());
  ASSERT_EQ(mkfifo(server_.ledger_path().c_str(), 0600), 0);
  EXPECT_EQ(look().state, ServerState::kUnreadable);
}

TEST_F(ServerViewTest, ShapeAndUseOfALiveServer) {
  const std::unique_ptr<Server> joined = server_.join();
  ASSERT_TRUE(joined->capacity().charge({0, PageKind::kHuge, 6 * kMiB}));
  ASSERT_TRUE(joined->capacity().charge({1, PageKind::kNormal, 12 * kKiB}));
  joined->capacity().credit({0, PageKind::kHuge, 4 * kMiB});
  const ServerView view = look();
  ASSERT_EQ(view.state, ServerState::kLive);
  EXPECT_EQ(view.product, "test");
  EXPECT_EQ(view.memory, TestServer::kNormalMemory + TestServer::kHugeMemory);
  EXPECT_EQ(view.normal_memory, TestServer::kNormalMemory);
  ASSERT_EQ(view.devices.size(), TestServer::kDevices);
  EXPECT_EQ(view.devices[0].capacity.huge, TestServer::kHugeMemory);
  EXPECT_EQ(view.devices[0].used.huge, 2 * kMiB);
  EXPECT_EQ(view.devices[0].used.normal, 0u);
  EXPECT_EQ(view.devices[1].used.normal, 12 * kKiB);
  ASSERT_EQ(view.processes.size(), 1u);
  const ProcessView& process = view.processes[0];
  EXPECT_EQ(process.process, getpid());
  EXPECT_FALSE(process.is_of_other_namespace);
  EXPECT_EQ(process.devices[0].used.huge, 2 * kMiB);
  EXPECT_EQ(process.devices[0].peak, 6 * kMiB);
  EXPECT_EQ(process.devices[0].allocations, 1u);
  EXPECT_EQ(process.all_devices().used.total(), 2 * kMiB + 12 * kKiB);
  EXPECT_EQ(process.all_devices().allocations, 2u);
}

TEST_F(ServerViewTest, ModulesCountForThePeak) {
  const std::unique_ptr<Server> joined = server_.join();
  ASSERT_TRUE(joined->capacity().charge({0, PageKind::kHuge, 2 * kMiB}));
  joined->capacity().credit({0, PageKind::kHuge, 2 * kMiB});
  ASSERT_TRUE(joined->capacity().charge({0, PageKind::kHuge, 4 * kMiB, 7}));
  EXPECT_EQ(look().processes.at(0).devices[0].peak, 4 * kMiB);
}

TEST_F(ServerViewTest, FiguresThatAProcessTellsOfItself) {
  const std::unique_ptr<Server> joined = server_.join();
  const OwnFigures& figures = joined->figures();
  figures.set_soc("Ascend910B3");
  figures.add_backing(BackingKind::kSmallPages, 8);
  figures.add_backing(BackingKind::kCollapsed, 32);
  figures.add_backing(BackingKind::kCollapsed, -16);
  figures.add_backing(BackingKind::kHugetlb, 64);
  figures.set_page_locked(128);
  for (int i = 0; i < 3; ++i) figures.add_stream();
  figures.remove_stream();
  figures.busy_mark(0)->store(1);
  figures.busy_mark(ProcessFigures::kStreamMarks - 1)->store(1);
  const ServerView view = look();
  EXPECT_EQ(view.soc, "Ascend910B3");
  const ProcessView& process = view.processes.at(0);
  EXPECT_EQ(process.host.small_pages, 8u);
  EXPECT_EQ(process.host.collapsed, 16u);
  EXPECT_EQ(process.host.hugetlb, 64u);
  EXPECT_EQ(process.host.behind_blocks(), 88u);
  EXPECT_EQ(process.host.page_locked, 128u);
  EXPECT_EQ(process.streams, 2u);
  EXPECT_EQ(process.busy_streams, 2u);
}

TEST_F(ServerViewTest, EachStreamHasAMarkOfItsOwn) {
  const std::unique_ptr<Server> joined = server_.join();
  std::vector<std::atomic<uint8_t>*> marks;
  for (uint32_t stream = 0; stream < ProcessFigures::kStreamMarks; ++stream) {
    marks.push_back(joined->figures().busy_mark(stream));
  }
  std::sort(marks.begin(), marks.end());
  EXPECT_EQ(std::adjacent_find(marks.begin(), marks.end()), marks.end());
  EXPECT_EQ(marks.back() - marks.front(), ProcessFigures::kStreamMarks - 1);
  EXPECT_EQ(joined->figures().busy_mark(ProcessFigures::kStreamMarks), nullptr);
}

TEST_F(ServerViewTest, NoAllocationOfManyThreadsIsLost) {
  constexpr int kThreads = 40;  // more than have a row of their own
  constexpr int kCharges = 500;
  const std::unique_ptr<Server> joined = server_.join();
  run_on_threads(kThreads, [&](int) {
    for (int i = 0; i < kCharges; ++i) {
      const Charge charge{1, PageKind::kNormal, 4 * kKiB};
      ASSERT_TRUE(joined->capacity().charge(charge));
      joined->capacity().credit(charge);
    }
  });
  const ServerView view = look();
  EXPECT_EQ(view.processes.at(0).devices[1].allocations, uint64_t{kThreads} * kCharges);
  EXPECT_EQ(view.processes.at(0).devices[0].allocations, 0u);
}

TEST_F(ServerViewTest, SharedMemoryIsOfNoProcess) {
  const std::unique_ptr<Server> joined = server_.join();
  ASSERT_TRUE(joined->capacity().charge({0, PageKind::kHuge, 8 * kMiB}));
  ShareDescription description;
  description.location = {LocationKind::kDevice, 0};
  description.page_kind = PageKind::kHuge;
  description.size = description.usable = description.charged = 2 * kMiB;
  ASSERT_TRUE(is_ok(joined->shares().add(description)));
  const ServerView view = look();
  EXPECT_EQ(view.devices[0].used.huge, 8 * kMiB);
  EXPECT_EQ(view.devices[0].shared.huge, 2 * kMiB);
  EXPECT_EQ(view.processes.at(0).devices[0].used.huge, 6 * kMiB);
  EXPECT_EQ(view.processes.at(0).exports, 1u);
  EXPECT_EQ(view.processes.at(0).holds, 1u);
}

TEST_F(ServerViewTest, WhatDevicesUseWhenIdleIsUsed) {
  ServerShape shape = TestServer::shape();
  shape.idle_usage = {.normal = 4 * kKiB, .huge = 6 * kMiB};
  const std::unique_ptr<Server> joined = value_of(server_.try_join(shape));
  ASSERT_TRUE(joined->capacity().charge({0, PageKind::kHuge, 2 * kMiB}));
  const ServerView view = look();
  EXPECT_EQ(view.devices[0].used.huge, 8 * kMiB);
  EXPECT_EQ(view.devices[0].used.normal, 4 * kKiB);
  EXPECT_EQ(view.devices[1].used.huge, 6 * kMiB);
  EXPECT_EQ(view.devices[1].idle.huge, 6 * kMiB);
  EXPECT_EQ(view.devices[1].capacity.huge, TestServer::kHugeMemory);
}

TEST_F(ServerViewTest, DeadProcessesAreNotShown) {
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Server> theirs = server_.join();
    EXPECT_TRUE(theirs->capacity().charge({0, PageKind::kHuge, 2 * kMiB}));
    line.say();
    line.hear();
  });
  other.hear_word();
  ServerView view = look();
  ASSERT_EQ(view.processes.size(), 2u);
  EXPECT_EQ(view.processes[1].process, other.id());
  EXPECT_EQ(view.devices[0].used.huge, 2 * kMiB);
  other.kill();
  view = look();
  ASSERT_EQ(view.processes.size(), 1u);
  EXPECT_EQ(view.devices[0].used.huge, 0u);
}

TEST_F(ServerViewTest, ServerWhoseProcessesAreAllDeadIsAbandoned) {
  server_.with_process_that_dies([](Server& theirs) {
    EXPECT_TRUE(theirs.capacity().charge({0, PageKind::kHuge, 2 * kMiB}));
  });
  const ServerView view = look();
  EXPECT_EQ(view.state, ServerState::kAbandoned);
  EXPECT_TRUE(view.processes.empty());
  EXPECT_EQ(view.product, "test");
  EXPECT_NE(view.explanation.find(server_.directory().path()), std::string::npos);
}

TEST_F(ServerViewTest, SlotOfTheNextProcessStartsWithoutFigures) {
  server_.with_process_that_dies([](Server& theirs) {
    EXPECT_TRUE(theirs.capacity().charge({0, PageKind::kHuge, 2 * kMiB}));
    theirs.figures().add_stream();
    theirs.figures().set_page_locked(5);
  });
  const std::unique_ptr<Server> first = server_.join();
  server_.with_process_that_dies([](Server& theirs) {
    EXPECT_TRUE(theirs.capacity().charge({0, PageKind::kHuge, 2 * kMiB}));
    theirs.figures().add_stream();
  });
  OtherProcess other(server_.member());
  EXPECT_EQ(ProcessTag(other.hear_word()).slot(), 1u);
  const ServerView view = look();
  ASSERT_EQ(view.processes.size(), 2u);
  for (const ProcessView& process : view.processes) {
    EXPECT_EQ(process.devices[0].peak, 0u);
    EXPECT_EQ(process.devices[0].allocations, 0u);
    EXPECT_EQ(process.streams, 0u);
    EXPECT_EQ(process.host.page_locked, 0u);
  }
}

TEST_F(ServerViewTest, LookingChangesNothingAndTakesNoSlot) {
  const std::unique_ptr<Server> joined = server_.join();
  const std::string before = bytes_of(server_.ledger_path());
  EXPECT_EQ(look().state, ServerState::kLive);
  EXPECT_EQ(bytes_of(server_.ledger_path()), before);
  EXPECT_EQ(joined->slots().count(), 1u);
}

TEST_F(ServerViewTest, LookDoesNotWaitForTheLock) {
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess stopped([&](const Line& line) {
    const std::unique_ptr<Server> theirs = server_.join();
    const LedgerLock lock(theirs->slots().mutex(), kNever);
    const LedgerImage image(server_);
    image.header().changes.fetch_add(1);  // in the middle of a change
    line.say();
    line.hear();
  });
  stopped.hear_word();
  EXPECT_EQ(look().state, ServerState::kLive);
  EXPECT_EQ(look().processes.size(), 2u);
}

TEST_F(ServerViewTest, OtherVersionIsNamed) {
  const std::unique_ptr<Server> joined = server_.join();
  const LedgerImage image(server_);
  image.header().version = kLedgerVersion + 1;
  const ServerView view = look();
  EXPECT_EQ(view.state, ServerState::kOtherVersion);
  EXPECT_NE(view.explanation.find("version " + std::to_string(kLedgerVersion + 1)),
            std::string::npos);
  image.header().version = kLedgerVersion;
}

TEST_F(ServerViewTest, DamagedHeaderIsNoServer) {
  using Damage = void (*)(LedgerHeader&);
  for (const Damage damage : std::vector<Damage>{
           [](LedgerHeader& header) { header.magic = 0; },
           [](LedgerHeader& header) { header.shape.devices = 1000; },
           [](LedgerHeader& header) { ++header.check; },
           [](LedgerHeader& header) { header.slots.store(kProcessSlots + 1); },
       }) {
    server_.with_process_that_dies([](Server&) {});
    const LedgerImage image(server_);
    damage(image.header());
    EXPECT_EQ(look().state, ServerState::kDamaged);
    std::filesystem::remove(server_.ledger_path());
  }
}

TEST_F(ServerViewTest, SlotsOfNonsenseAreSurvived) {
  const std::unique_ptr<Server> joined = server_.join();
  OtherProcess other(server_.member());
  other.hear_word();
  const LedgerImage image(server_);
  image.slot(1).exports = UINT32_MAX;
  image.use(1).peak.store(UINT64_MAX);
  image.pages(1).store(UINT64_MAX);
  image.header().shared[0].words[0].store(UINT64_MAX);
  const ServerView view = look();
  EXPECT_EQ(view.state, ServerState::kLive);
  EXPECT_EQ(view.processes.size(), 2u);
  image.slot(1).birth = 1;  // of a process that never was
  EXPECT_EQ(look().processes.size(), 1u);
  image.header().shared[0].words[0].store(0);
}

TEST_F(ServerViewTest, FileThatIsCutShortIsSurvived) {
  server_.with_process_that_dies([](Server&) {});
  {
    const LedgerImage image(server_);
    ASSERT_EQ(image.header().slots.load(), 1u);
  }
  const auto size = std::filesystem::file_size(server_.ledger_path());
  for (const uint64_t left : {kFiguresOffset, kSlotsOffset + 100, kSlotsOffset, uint64_t{100},
                              uint64_t{1}, uint64_t{0}}) {
    ASSERT_LT(left, size);
    resize_ledger(left);
    const ServerState state = look().state;
    EXPECT_EQ(state, left == kFiguresOffset ? ServerState::kAbandoned : ServerState::kDamaged)
        << left;
  }
}

TEST_F(ServerViewTest, ProcessesThatComeAndGoAreSeenWhole) {
  OtherProcess viewer([&](const Line& line) {
    line.say();
    uint64_t word = 0;
    while (recv(line.descriptor(), &word, sizeof word, MSG_DONTWAIT) < 0) {
      for (const ProcessView& process : look().processes) {
        EXPECT_GT(process.process, 0);
        EXPECT_EQ(process.devices.size(), TestServer::kDevices);
        EXPECT_LE(process.devices[0].allocations, 1u);
      }
    }
  });
  viewer.hear_word();
  for (int i = 0; i < 50; ++i) {
    server_.with_process_that_dies([](Server& theirs) {
      EXPECT_TRUE(theirs.capacity().charge({0, PageKind::kHuge, 2 * kMiB}));
    });
  }
  viewer.say();
  EXPECT_TRUE(viewer.ended_well());
}

}  // namespace
}  // namespace understudy
