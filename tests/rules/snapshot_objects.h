// SPDX-License-Identifier: Apache-2.0
//
// What the tests of snapshots share.
#pragma once

#include <unistd.h>

#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "rules/async_objects.h"
#include "rules/vmm_objects.h"
#include "support/locked_call.h"
#include "support/peer.h"

namespace understudy_test {

inline aclError lock_process() { return aclrtSnapShotProcessLock(getpid(), nullptr); }
inline aclError back_up_process() { return aclrtSnapShotProcessBackup(getpid(), nullptr); }
inline aclError restore_process() { return aclrtSnapShotProcessRestore(getpid(), nullptr); }
inline aclError unlock_process() { return aclrtSnapShotProcessUnlock(getpid(), nullptr); }

inline constexpr aclError kLockRefused = ACL_ERROR_SNAPSHOT_LOCK_FAILED;
inline constexpr aclError kUnlockRefused = ACL_ERROR_SNAPSHOT_UNLOCK_FAILED;
inline constexpr aclError kBackupRefused = ACL_ERROR_SNAPSHOT_BACKUP_FAILED;
inline constexpr aclError kRestoreRefused = ACL_ERROR_SNAPSHOT_RESTORE_FAILED;

// One of these calls is refused with this code, and says why.
inline void expect_refused(aclError code, aclError (*call)()) {
  (void)recent_error();
  EXPECT_TRUE(fails_with(code, call(), "aclrtSnapShotProcess"));
}

enum class ProcessState : uint8_t { kRunning, kLocked, kBackedUp };

// Brings the process from RUNNING to a state.
inline void enter(ProcessState state) {
  if (state == ProcessState::kRunning) return;
  ASSERT_SUCCESS(lock_process());
  if (state == ProcessState::kBackedUp) {
    ASSERT_SUCCESS(back_up_process());
  }
}

// The state, as the calls tell that it refuses. Changes nothing, unless it is another one.
inline void expect_state(ProcessState state) {
  switch (state) {
    case ProcessState::kRunning:
      expect_refused(kBackupRefused, back_up_process);
      expect_refused(kRestoreRefused, restore_process);
      expect_refused(kUnlockRefused, unlock_process);
      break;
    case ProcessState::kLocked:
      expect_refused(kLockRefused, lock_process);
      expect_refused(kRestoreRefused, restore_process);
      break;
    case ProcessState::kBackedUp:
      expect_refused(kLockRefused, lock_process);
      expect_refused(kBackupRefused, back_up_process);
      break;
  }
}

// Leaves no process locked behind.
class SnapshotTest : public DeviceTest {
 protected:
  void TearDown() override {
    (void)unlock_process();
    (void)recent_error();
    DeviceTest::TearDown();
  }
};

// A class-W call on a thread of its own.
class HeldCall {
 public:
  explicit HeldCall(std::function<aclError()> call)
      : code_(std::async(std::launch::async, std::move(call))) {}

  // Waits until so many calls wait at the lock.
  static void wait_for(uint64_t calls) {
    while (held_calls() < calls) std::this_thread::yield();
  }
  aclError code() { return code_.get(); }

 private:
  std::future<aclError> code_;
};

}  // namespace understudy_test
