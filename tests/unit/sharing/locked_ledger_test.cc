// SPDX-License-Identifier: Apache-2.0
//
// What sharing does while another process has the ledger's lock and does not get on: frees do not
// wait, and threads that export or import the same memory meet in the middle.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "base/pause.h"
#include "unit/sharing/sharing_rig.h"

namespace understudy {
namespace {

constexpr uint64_t kBlock = 2 * kGranule;
constexpr uint64_t kSmall = 5000;
constexpr std::chrono::seconds kNoise(3);

class LockedLedger : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer ends a child that starts a thread if its parent had several";
#endif
  }
  // Locks and unlocks the ledger as it is told, in turn.
  auto locker() {
    return [this](const Line& line) {
      const std::unique_ptr<Server> joined = server_.join();
      while (line.hear()) {
        const LedgerLock lock(joined->slots().mutex(), kNever);
        line.say();
        line.hear();
      }
    };
  }
  // A process that prepares something, says so, goes on when the ledger is locked, says so, and
  // ends when it is free again.
  template <typename Prepare, typename Locked, typename Unlocked>
  void run(Prepare prepare, Locked locked, Unlocked unlocked) {
    OtherProcess lock(locker());
    OtherProcess child([&](const Line& line) {
      SharingRig rig(server_);
      auto state = prepare(rig);
      line.say();
      line.hear_word();
      locked(rig, state, [&] { line.say(); });
      line.hear_word();
      unlocked(rig, state);
      OtherProcess::end_child();
    });
    child.hear_word();
    lock.say();
    lock.hear_word();
    child.say();
    child.hear_word();
    lock.say();
    child.say();
    EXPECT_TRUE(child.ended_well());
  }
  static uint64_t all_used(const SharingRig& rig) {
    return rig.used() + rig.used(PageKind::kNormal);
  }
  // By the share server's thread.
  static void wait_until_nothing_is_used(const SharingRig& rig) {
    while (all_used(rig) != 0) nap();
  }

  TestServer server_;
};

TEST_F(LockedLedger, FreesDoNotWaitAndComeToPassLater) {
  struct Exports {
    BlockHandle block;
    VirtualAddress small;
    VirtualAddress large;
  };
  run(
      [](SharingRig& rig) {
        const Exports made{rig.create(kBlock), rig.allocate(kSmall), rig.allocate(kBlock)};
        EXPECT_TRUE(is_ok(rig.sharing.export_block(made.block, ShareKind::kNumber, true)));
        for (const VirtualAddress address : {made.small, made.large}) {
          EXPECT_TRUE(is_ok(rig.sharing.export_allocation(address, kSmall, true)));
        }
        return made;
      },
      [](SharingRig& rig, const Exports& made, auto done) {
        const Deadline begin = Clock::now();
        EXPECT_TRUE(is_ok(rig.physical.free(made.block)));
        EXPECT_TRUE(is_ok(rig.device_memory.free(made.small)));
        EXPECT_TRUE(is_ok(rig.device_memory.free(made.large)));
        rig.sharing.reclaim_returned();
        EXPECT_LT(Clock::now() - begin, kNoise);
        EXPECT_NE(all_used(rig), 0u);
        done();
      },
      [](SharingRig& rig, const Exports&) { wait_until_nothing_is_used(rig); });
}

TEST_F(LockedLedger, KeyIsClosedAtOnce) {
  run(
      [](SharingRig& rig) {
        return value_of(rig.sharing.export_allocation(rig.allocate(kSmall), kSmall, true));
      },
      [](SharingRig& rig, const ShareToken& token, auto done) {
        const Deadline begin = Clock::now();
        EXPECT_TRUE(is_ok(rig.sharing.close_export({token, ShareKind::kKey})));
        EXPECT_LT(Clock::now() - begin, kNoise);
        done();
      },
      [](SharingRig& rig, const ShareToken& token) {
        EXPECT_TRUE(fails_with(rig.sharing.import_allocation({.name = {token, ShareKind::kKey}}),
                               ErrorCode::kInvalidHandle));
      });
}

TEST_F(LockedLedger, AllocationThatIsFreedWhileItIsExportedLeavesNothing) {
  run([](SharingRig& rig) { return rig.allocate(kSmall); },
      [](SharingRig& rig, VirtualAddress address, auto done) {
        std::thread exporter([&] {
          const ShareToken token = value_of(rig.sharing.export_allocation(address, kSmall, true));
          EXPECT_TRUE(fails_with(rig.sharing.import_allocation({.name = {token, ShareKind::kKey}}),
                                 ErrorCode::kInvalidHandle));
        });
        while (rig.sharing.exported_slots() == 0) nap();
        EXPECT_TRUE(is_ok(rig.device_memory.free(address)));
        EXPECT_TRUE(fails_with(rig.device_memory.free(address), ErrorCode::kInvalidParam));
        done();
        exporter.join();
      },
      [](SharingRig& rig, VirtualAddress address) {
        wait_until_nothing_is_used(rig);
        EXPECT_EQ(rig.sharing.exported_slots(), 0u);
        EXPECT_EQ(rig.allocate(kSmall), address) << "the slot can be used again";
      });
}

TEST_F(LockedLedger, ExportThatDoesNotComeThroughLeavesNothingOfAFreedAllocation) {
  run([](SharingRig& rig) { return rig.allocate(kSmall); },
      [](SharingRig& rig, VirtualAddress address, auto done) {
        const Deadline begin = Clock::now();
        std::thread exporter([&] {
          EXPECT_TRUE(fails_with(rig.sharing.export_allocation(address, kSmall, true),
                                 ErrorCode::kConnection));
        });
        while (rig.sharing.exported_slots() == 0) nap();
        EXPECT_TRUE(is_ok(rig.device_memory.free(address)));
        exporter.join();
        EXPECT_LT(Clock::now() - begin, kLedgerPatience + kNoise);
        EXPECT_EQ(rig.sharing.exported_slots(), 0u);
        EXPECT_EQ(all_used(rig), 0u);
        done();
      },
      [](SharingRig& rig, VirtualAddress address) { EXPECT_EQ(rig.allocate(kSmall), address); });
}

TEST_F(LockedLedger, ThreadsThatExportTheSameAllocationGetTheSameToken) {
  for (const uint64_t size : {kSmall, kBlock}) {
    run([size](SharingRig& rig) { return rig.allocate(size); },
        [](SharingRig& rig, VirtualAddress address, auto done) {
          std::array<uint64_t, 3> tokens{};
          std::array<std::thread, 3> threads;
          for (size_t i = 0; i < threads.size(); ++i) {
            threads[i] = std::thread([&, i] {
              tokens[i] = value_of(rig.sharing.export_allocation(address, kSmall, true)).word();
            });
          }
          done();
          for (std::thread& each : threads) each.join();
          EXPECT_EQ(tokens[0], tokens[1]);
          EXPECT_EQ(tokens[0], tokens[2]);
          EXPECT_TRUE(is_ok(rig.device_memory.free(address)));
        },
        [](SharingRig& rig, VirtualAddress) { wait_until_nothing_is_used(rig); });
  }
}

TEST_F(LockedLedger, ImportThatIsOnItsWayOutIsTakenBack) {
  OtherProcess exporter([this](const Line& line) {
    SharingRig rig(server_);
    const BlockHandle handle = rig.create(kBlock);
    rig.fill(rig.map(handle, kBlock), kBlock, 7);
    line.say(value_of(rig.sharing.export_block(handle, ShareKind::kNumber, true)).word());
    line.hear_word();
    OtherProcess::end_child();
  });
  const ShareToken token(exporter.hear_word());
  const ImportRequest request{.name = {token, ShareKind::kNumber}};
  OtherProcess lock(locker());
  OtherProcess importer([&](const Line& line) {
    SharingRig rig(server_);
    for (int round = 0; round < 3; ++round) {
      const BlockHandle first = value_of(rig.sharing.import_block(request)).handle;
      line.say();
      line.hear_word();
      EXPECT_TRUE(is_ok(rig.physical.free(first)));
      line.say();
      const BlockHandle second = value_of(rig.sharing.import_block(request)).handle;
      const VirtualAddress address = rig.map(second, kBlock);
      EXPECT_EQ(rig.content(address, kBlock), 7);
      EXPECT_TRUE(is_ok(rig.space.mapper().unmap(address)));
      EXPECT_TRUE(is_ok(rig.physical.free(second)));
    }
    OtherProcess::end_child();
  });
  for (int round = 0; round < 3; ++round) {
    importer.hear_word();
    lock.say();
    lock.hear_word();
    importer.say();
    importer.hear_word();
    lock.say();
  }
  EXPECT_TRUE(importer.ended_well());
}

}  // namespace
}  // namespace understudy
