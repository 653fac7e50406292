// SPDX-License-Identifier: Apache-2.0
//
// Snapshots with several processes: capacity that goes to another process and comes back, shared
// memory, processes that are killed, fork or end in every state.
// Covers: SNAP-14, SNAP-15, SNAP-17, SNAP-19, SNAP-25, SNAP-26.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "rules/share_objects.h"
#include "rules/snapshot_objects.h"
#include "support/fork_safety.h"

namespace understudy_test {
namespace {

constexpr size_t kHeld = 64 * kMiB;

class SnapshotProcess : public SnapshotTest {
 protected:
  void TearDown() override {
    (void)unlock_process();
    EXPECT_EQ(free_bytes(), before_);
    SnapshotTest::TearDown();
  }

 private:
  size_t before_ = 0;

 protected:
  void SetUp() override {
    SnapshotTest::SetUp();
    before_ = free_bytes();
  }
};

// Takes all huge pages that are free when it is asked to, and gives them back when told.
US_PEER(TakesWhatIsFree) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  while (true) {
    const auto command = channel.receive<char>();
    if (command == 'e') return;
    const size_t free = free_bytes(ACL_HBM_MEM_HUGE);
    void* block = nullptr;
    const aclError code = aclrtMallocAlign32(&block, free, ACL_MEM_MALLOC_HUGE_ONLY);
    channel.send(free);
    channel.send(code);
    (void)channel.receive<char>();
    if (code == ACL_SUCCESS) {
      EXPECT_SUCCESS(aclrtFree(block));
    }
    channel.send(free_bytes(ACL_HBM_MEM_HUGE));
  }
}

TEST_F(SnapshotProcess, SNAP_17_SNAP_25_SNAP_26_AnotherProcessTakesTheCapacity) {
  const size_t empty = free_bytes(ACL_HBM_MEM_HUGE);
  const DeviceBlock block(kHeld, ACL_MEM_MALLOC_HUGE_ONLY, kMallocAlign32);
  copy_in(block.data(), pattern(kMiB, 5));
  const DeviceBlock small(100, ACL_MEM_MALLOC_NORMAL_ONLY);
  copy_in(small.data(), pattern(100, 6));
  const size_t held = free_bytes(ACL_HBM_MEM_HUGE);
  EXPECT_EQ(held, empty - kHeld);
  Peer other(TakesWhatIsFree);
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(back_up_process());
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), empty);
  other.send('t');
  EXPECT_EQ(other.receive<size_t>(), empty);  // the other one sees exactly what was given back
  EXPECT_SUCCESS(other.receive<aclError>());
  for (int i = 0; i < 2; ++i) {
    const MemoryFigures before = memory_figures();
    expect_refused(kRestoreRefused, restore_process);
    expect_refused(kUnlockRefused, unlock_process);
    EXPECT_EQ(memory_figures(), before);  // not even the normal pages, for which there was room
    expect_state(ProcessState::kBackedUp);
  }
  other.send('f');
  EXPECT_EQ(other.receive<size_t>(), empty);
  EXPECT_SUCCESS(restore_process());
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), held);
  // While it has its memory, the other one gets the rest alone.
  other.send('t');
  EXPECT_EQ(other.receive<size_t>(), held);
  EXPECT_SUCCESS(other.receive<aclError>());
  EXPECT_SUCCESS(unlock_process());
  other.send('f');
  EXPECT_EQ(other.receive<size_t>(), held);
  other.send('e');
  other.finish();
  EXPECT_EQ(copy_out(block.data(), kMiB), pattern(kMiB, 5));
  EXPECT_EQ(copy_out(small.data(), 100), pattern(100, 6));
}

// A process that dies with what it has taken does not keep a restore from succeeding.
TEST_F(SnapshotProcess, SNAP_25_WhatADeadProcessHadIsFree) {
  const DeviceBlock block(kHeld, ACL_MEM_MALLOC_HUGE_ONLY);
  copy_in(block.data(), pattern(kMiB, 5));
  Peer other(TakesWhatIsFree);
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(back_up_process());
  other.send('t');
  (void)other.receive<size_t>();
  EXPECT_SUCCESS(other.receive<aclError>());
  expect_refused(kRestoreRefused, restore_process);
  other.kill();
  EXPECT_SUCCESS(restore_process());
  EXPECT_SUCCESS(unlock_process());
  EXPECT_EQ(copy_out(block.data(), kMiB), pattern(kMiB, 5));
}

// ---- Shared memory ----

US_PEER(ReadsAndWritesAShare) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const auto token = channel.receive<uint64_t>();
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMemImportFromShareableHandle(token, 0, &handle));
  void* const start = reserve(2 * kMiB);
  EXPECT_SUCCESS(aclrtMapMem(start, 2 * kMiB, 0, handle, 0));
  channel.send('m');
  (void)channel.receive<char>();
  EXPECT_EQ(copy_out(start, 4096), pattern(4096, 1));
  copy_in(start, pattern(4096, 2));
  channel.send('w');
  channel.wait_for_end();
}

TEST_F(SnapshotProcess, SNAP_19_SharedMemoryStaysChargedAndUsable) {
  const size_t empty = free_bytes(ACL_HBM_MEM_HUGE);
  {
    const LiveMapping exported(2 * kMiB);
    const DeviceBlock own(kHeld, ACL_MEM_MALLOC_HUGE_ONLY, kMallocAlign32);
    copy_in(exported.data(), pattern(4096, 1));
    uint64_t token = 0;
    EXPECT_SUCCESS(aclrtMemExportToShareableHandle(exported.handle(), ACL_MEM_HANDLE_TYPE_NONE,
                                                   ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
                                                   &token));
    Peer importer(ReadsAndWritesAShare);
    importer.send(token);
    (void)importer.receive<char>();
    const size_t held = free_bytes(ACL_HBM_MEM_HUGE);
    EXPECT_SUCCESS(lock_process());
    EXPECT_SUCCESS(back_up_process());
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), empty - 2 * kMiB);
    importer.send('g');
    EXPECT_EQ(importer.receive<char>(), 'w');  // it can still read and write
    EXPECT_SUCCESS(restore_process());
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), held);
    EXPECT_SUCCESS(unlock_process());
    EXPECT_EQ(copy_out(exported.data(), 4096), pattern(4096, 2));
    importer.finish();
  }
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), empty);
}

TEST_F(SnapshotProcess, SNAP_19_AllocationsSharedByKeyStayCharged) {
  const size_t empty_huge = free_bytes(ACL_HBM_MEM_HUGE);
  const size_t empty_normal = free_bytes(ACL_HBM_MEM_NORMAL);
  const DeviceBlock large(2 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY, kMallocAlign32);
  const DeviceBlock small(4096, ACL_MEM_MALLOC_NORMAL_ONLY, kMallocAlign32);
  const DeviceBlock own(4096, ACL_MEM_MALLOC_NORMAL_ONLY, kMallocAlign32);
  std::array<char, 65> large_key{};
  std::array<char, 65> small_key{};
  EXPECT_SUCCESS(aclrtIpcMemGetExportKey(large.data(), 2 * kMiB, large_key.data(), 65, 1));
  EXPECT_SUCCESS(aclrtIpcMemGetExportKey(small.data(), 4096, small_key.data(), 65, 1));
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(back_up_process());
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), empty_huge - 2 * kMiB);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), empty_normal - 4096);
  EXPECT_SUCCESS(unlock_process());
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), empty_normal - 2 * 4096);
  EXPECT_SUCCESS(aclrtIpcMemClose(large_key.data()));
  EXPECT_SUCCESS(aclrtIpcMemClose(small_key.data()));
}

// ---- Ends ----

US_PEER(HoldsMemoryInAState) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const auto state = channel.receive<ProcessState>();
  void* block = nullptr;
  ASSERT_SUCCESS(aclrtMallocAlign32(&block, kHeld, ACL_MEM_MALLOC_HUGE_ONLY));
  ASSERT_SUCCESS(aclrtMemset(block, kHeld, 1, kMiB));
  enter(state);
  channel.send('r');
  channel.wait_for_end();
  exit(0);  // in that state, with memory, and without any call
}

TEST_F(SnapshotProcess, SNAP_14_KilledInEachStateNothingIsLost) {
  const size_t empty = free_bytes(ACL_HBM_MEM_HUGE);
  for (const ProcessState state :
       {ProcessState::kRunning, ProcessState::kLocked, ProcessState::kBackedUp}) {
    SCOPED_TRACE(static_cast<int>(state));
    Peer victim(HoldsMemoryInAState);
    victim.send(state);
    (void)victim.receive<char>();
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE),
              state == ProcessState::kBackedUp ? empty : empty - kHeld);
    victim.kill();
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), empty);
  }
}

// Goes through the states until it is killed.
US_PEER(GoesAround) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  void* block = nullptr;
  ASSERT_SUCCESS(aclrtMallocAlign32(&block, kHeld, ACL_MEM_MALLOC_HUGE_ONLY));
  channel.send('r');
  while (true) {
    ASSERT_SUCCESS(lock_process());
    ASSERT_SUCCESS(back_up_process());
    ASSERT_SUCCESS(restore_process());
    ASSERT_SUCCESS(unlock_process());
  }
}

TEST_F(SnapshotProcess, SNAP_14_KilledAtAnyInstantTheFiguresAreExact) {
  const size_t empty = free_bytes(ACL_HBM_MEM_HUGE);
  for (int round = 0; round < 20; ++round) {
    Peer victim(GoesAround);
    (void)victim.receive<char>();
    for (int looks = 0; looks < round * 50; ++looks) {
      const size_t free = free_bytes(ACL_HBM_MEM_HUGE);
      EXPECT_TRUE(free == empty || free == empty - kHeld) << free;
    }
    victim.kill();
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), empty);
  }
}

TEST_F(SnapshotProcess, SNAP_14_EndsInEachStateByItself) {
  const size_t empty = free_bytes(ACL_HBM_MEM_HUGE);
  for (const ProcessState state :
       {ProcessState::kRunning, ProcessState::kLocked, ProcessState::kBackedUp}) {
    Peer peer(HoldsMemoryInAState);
    peer.send(state);
    (void)peer.receive<char>();
    peer.finish();  // within a minute
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), empty);
  }
}

// Memory that a destructor gives back at the end of the process.
struct FreedAtExit {
  void* block = nullptr;
  ~FreedAtExit() {
    if (block != nullptr && aclrtFree(block) != ACL_SUCCESS) _exit(9);
  }
};

US_PEER(EndsWithThreadsThatWait) {
  static FreedAtExit memory;
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const auto state = channel.receive<ProcessState>();
  ASSERT_SUCCESS(aclrtMallocAlign32(&memory.block, kHeld, ACL_MEM_MALLOC_HUGE_ONLY));
  enter(state);
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      void* host = nullptr;
      (void)aclrtSetDevice(0);
      (void)aclrtMallocHost(&host, 4096);
    }).detach();
  }
  HeldCall::wait_for(3);
  channel.send('r');
  channel.wait_for_end();
  exit(0);
}

TEST_F(SnapshotProcess, SNAP_14_WaitingThreadsAndDestructorsDoNotKeepItFromEnding) {
  const size_t empty = free_bytes(ACL_HBM_MEM_HUGE);
  for (const ProcessState state : {ProcessState::kLocked, ProcessState::kBackedUp}) {
    Peer peer(EndsWithThreadsThatWait);
    peer.send(state);
    (void)peer.receive<char>();
    peer.finish();
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), empty);
  }
}

// ---- Fork ----

// The wait status of a child that runs `body`.
template <typename Body>
int status_of_child(Body body) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

int use_library_in_child() {
  if (unlock_process() != kUnlockRefused) return 1;  // RUNNING
  if (aclrtSetDevice(0) != ACL_SUCCESS) return 2;
  void* block = nullptr;
  if (aclrtMalloc(&block, 4 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY) != ACL_SUCCESS) return 3;
  if (lock_process() != ACL_SUCCESS) return 4;
  if (back_up_process() != ACL_SUCCESS) return 5;
  if (unlock_process() != ACL_SUCCESS) return 6;
  if (aclrtFree(block) != ACL_SUCCESS) return 7;
  return 0;
}

TEST(SnapshotFork, SNAP_15_AChildStartsRunningFromEachState) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const DeviceBlock block(8 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
  copy_in(block.data(), pattern(4096, 2));
  for (const ProcessState state :
       {ProcessState::kRunning, ProcessState::kLocked, ProcessState::kBackedUp}) {
    SCOPED_TRACE(static_cast<int>(state));
    enter(state);
    const MemoryFigures before = memory_figures();
    EXPECT_EQ(status_of_child(use_library_in_child), 0);
    EXPECT_EQ(memory_figures(), before);
    if (state != ProcessState::kRunning) {
      expect_state(state);
      EXPECT_SUCCESS(unlock_process());
    }
    EXPECT_EQ(copy_out(block.data(), 4096), pattern(4096, 2));
  }
}

// Other threads of the parent are in calls, or wait at the lock: they are not in the child.
TEST(SnapshotFork, SNAP_15_WithThreadsInCallsAndThreadsThatWait) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  std::atomic<bool> ends{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] {
      EXPECT_SUCCESS(aclrtSetDevice(0));
      while (!ends.load()) {
        void* block = nullptr;
        EXPECT_SUCCESS(aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
        EXPECT_SUCCESS(aclrtFree(block));
      }
    });
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status_of_child(use_library_in_child), 0);
  EXPECT_SUCCESS(lock_process());
  HeldCall::wait_for(2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status_of_child(use_library_in_child), 0);
  EXPECT_SUCCESS(unlock_process());
  ends.store(true);
  for (std::thread& thread : busy) thread.join();
}

// A callback may fork: the child does not go on with its parent's call.
TEST(SnapshotFork, SNAP_15_FromACallbackOfEachStage) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const DeviceBlock block(8 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
  const MemoryFigures held = memory_figures();
  const auto fork_and_use = [](int32_t, void*) -> uint32_t {
    const pid_t child = fork();
    if (child == 0) return 0;
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return 0;
  };
  for (int stage = 0; stage < 6; ++stage) {
    SCOPED_TRACE(stage);
    const auto number = static_cast<aclrtSnapShotStage>(stage);
    EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(number, fork_and_use, nullptr));
    const pid_t parent = getpid();
    for (const auto step : {lock_process, back_up_process, restore_process, unlock_process}) {
      const aclError code = step();
      if (getpid() != parent) {
        alarm(60);
        _exit(code == ACL_SUCCESS ? 8 : use_library_in_child());
      }
      EXPECT_SUCCESS(code);
    }
    EXPECT_EQ(memory_figures(), held);
    EXPECT_SUCCESS(aclrtSnapShotCallbackUnregister(number, fork_and_use));
  }
}

}  // namespace
}  // namespace understudy_test
