// SPDX-License-Identifier: Apache-2.0
//
// A process is stopped while it has the ledger's lock. Frees do not wait for it, every other call
// answers within 5 s in total, and when the process goes on everything is settled.
//
// To stop a process just there, it exports without end and is stopped at random moments, until a
// third process finds that its own export does not come through.
// Covers: SHARE-38, SHARE-40.
#include <atomic>
#include <thread>
#include <vector>

#include "process/sharing_objects.h"
#include "process/stopped_process.h"

namespace understudy_test::share {
namespace {

using LedgerLockHeld = VirtualMemoryTest;  // compares the memory figures at the end of every test

// Exports on a thread of its own, until told otherwise. Of the process that is stopped.
struct Exports {
  std::atomic<bool> end{false};
  std::thread thread;
};
Exports& exports() {
  static Exports& only = *new Exports();
  return only;
}
void export_without_end() {
  exports().thread = std::thread([] {
    EXPECT_SUCCESS(aclrtSetDevice(0));
    while (!exports().end) {
      const Block block;
      uint64_t token = 0;
      EXPECT_SUCCESS(aclrtMemExportToShareableHandle(block.handle(), ACL_MEM_HANDLE_TYPE_NONE,
                                                     kEveryone, &token));
    }
  });
}
void end_exports() {
  exports().end = true;
  exports().thread.join();
}

aclError export_and_free() {
  const Block block;
  uint64_t token = 0;
  const aclError code =
      aclrtMemExportToShareableHandle(block.handle(), ACL_MEM_HANDLE_TYPE_NONE, kEveryone, &token);
  (void)recent_error();
  return code;
}

// The bare call: what a checked one asks for besides may wait as well.
aclError import_once(uint64_t token) {
  aclrtDrvMemHandle handle = nullptr;
  const aclError code = aclrtMemImportFromShareableHandle(token, 0, &handle);
  if (code == ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtFreePhysical(handle));
  }
  (void)recent_error();
  return code;
}

// The server's ledger, locked by a stopped process.
class HeldLock {
 public:
  HeldLock() {
    std::mt19937 random(2);
    holder_.call(export_without_end);
    for (int attempt = 0; attempt < 3000 && !is_held(); ++attempt) {
      stopped_.reset();
      spend_part_of(std::chrono::milliseconds(1), random);
      stopped_.emplace(holder_);
      probe_.start(export_and_free);
      // Longer than anything but a wait for the lock; a late answer is noticed, too.
      is_held_ = !probe_.peer().channel().becomes_readable(std::chrono::milliseconds(500));
      if (is_held_) is_held_ = !probe_.peer().channel().becomes_readable(kDoubt);
      if (!is_held_) {
        EXPECT_EQ(probe_.result<aclError>(), ACL_SUCCESS);
      }
    }
  }
  // The process goes on, and ends its exports.
  void let_go() {
    stopped_.reset();
    holder_.call(end_exports);
    holder_.finish();
  }
  bool is_held() const { return is_held_; }
  // What the third process was answered.
  aclError answer() { return probe_.result<aclError>(); }

 private:
  static constexpr std::chrono::milliseconds kDoubt{1500};

  Remote holder_;
  Remote probe_;
  std::optional<Stopped> stopped_;
  bool is_held_ = false;
};

TEST_F(LedgerLockHeld, SHARE_38_FreesDoNotWaitAndAnExportAnswersInTime) {
  constexpr size_t kBlocks = 4;
  const size_t before = huge_bytes_free();
  std::vector<aclrtDrvMemHandle> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(create_block(kGranule));
    (void)token_of(blocks.back());
  }
  const Block other;
  {
    HeldLock lock;
    if (!lock.is_held()) {
      for (const aclrtDrvMemHandle block : blocks) EXPECT_SUCCESS(aclrtFreePhysical(block));
      FAIL() << "no process could be stopped while it had the lock of the ledger";
    }
    EXPECT_EQ(lock.answer(), ACL_ERROR_RT_IPC_ERROR);
    {
      const Stopwatch watch;
      for (const aclrtDrvMemHandle block : blocks) EXPECT_SUCCESS(aclrtFreePhysical(block));
      EXPECT_LT(watch.time(), kNoise) << "frees waited";
    }
    {
      const Stopwatch watch;
      uint64_t token = kUntouchedToken;
      EXPECT_FAILS(ACL_ERROR_RT_IPC_ERROR,
                   aclrtMemExportToShareableHandle(other.handle(), ACL_MEM_HANDLE_TYPE_NONE,
                                                   kEveryone, &token));
      EXPECT_EQ(token, kUntouchedToken);
      EXPECT_LT(watch.time(), kLongestCall);
    }
    lock.let_go();
  }
  // What was queued comes to pass at the latest when something is shared again.
  EXPECT_EQ(export_and_free(), ACL_SUCCESS);
  const uint64_t token = token_of(other.handle());
  Remote importer;
  EXPECT_EQ(importer.import(token), ACL_SUCCESS);
  EXPECT_EQ(huge_bytes_free(), before - kGranule);
  EXPECT_EQ(importer.call(huge_bytes_free), before - kGranule);
}

TEST_F(LedgerLockHeld, SHARE_38_SHARE_40_OtherCallsAnswerInTime) {
  const Offer held = offer_block(kGranule, kEveryone, 1);
  const Offer offered = offer_block(kGranule, kEveryone, 2);
  const KeyOffer small = offer_key(4 * kKiB, 3);
  Remote importer;
  View view = importer.call(import_view, held.token, kGranule, 0);
  {
    HeldLock lock;
    ASSERT_TRUE(lock.is_held());
    EXPECT_EQ(lock.answer(), ACL_ERROR_RT_IPC_ERROR);  // and so its block is gone from the figures
    const auto in_time = [](const char* what, auto call) {
      const Stopwatch watch;
      call();
      EXPECT_LT(watch.time(), kLongestCall) << what;
    };
    in_time("import",
            [&] { EXPECT_EQ(importer.call(import_once, offered.token), ACL_ERROR_RT_IPC_ERROR); });
    in_time("bytes", [&] {
      EXPECT_TRUE(importer.call(is_marked, view.start, kGranule, uint8_t{1}));
      EXPECT_TRUE(is_marked(offered.view.start, kGranule, 2));
    });
    in_time("end of an import", [&] { importer.call(close_view, view); });
    in_time("figures", [&] { (void)huge_bytes_free(); });
    in_time("end of an export", [&] { close_view(held.view); });
    in_time("free of an allocation", [&] { EXPECT_SUCCESS(aclrtFree(small.start)); });
    in_time("take and give back", [&] {
      const Block block;
      void* start = nullptr;
      EXPECT_SUCCESS(aclrtMalloc(&start, 4 * kKiB, ACL_MEM_MALLOC_HUGE_FIRST));
      EXPECT_SUCCESS(aclrtFree(start));
    });
    lock.let_go();
  }
  // What both have queued comes to pass at the latest when they share again.
  EXPECT_EQ(export_and_free(), ACL_SUCCESS);
  EXPECT_EQ(importer.call(export_and_free), ACL_SUCCESS);
  EXPECT_EQ(importer.import(offered.token), ACL_SUCCESS);
  EXPECT_EQ(importer.import(held.token), ACL_ERROR_RT_INVALID_HANDLE);
  close_view(offered.view);
}

}  // namespace
}  // namespace understudy_test::share
