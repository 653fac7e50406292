// SPDX-License-Identifier: Apache-2.0
//
// Whether a call waits while the process is locked (aclrtSnapShotProcessLock). Nothing here sleeps
// for a time: the library tells how many calls wait.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "acl/acl.h"
#include "acl/acl_understudy.h"

namespace understudy_test {

inline uint64_t held_calls() {
  aclUnderstudyObjects objects{};
  EXPECT_EQ(aclUnderstudyCountObjects(&objects), ACL_SUCCESS);
  return objects.heldCalls;
}

struct LockedCall {
  bool waited = false;
  int code = ACL_SUCCESS;
};

// Makes a call on this thread while the process is locked, and unlocks it: at once if the call
// waits, otherwise behind it. The code of the lock, if it fails.
template <typename Call>
LockedCall call_while_locked(Call call) {
  LockedCall result;
  result.code = aclrtSnapShotProcessLock(getpid(), nullptr);
  if (result.code != ACL_SUCCESS) return result;
  std::atomic<bool> is_over{false};
  std::atomic<bool> waited{false};
  std::thread watcher([&] {
    while (!is_over.load() && !waited.load()) {
      if (held_calls() > 0) waited.store(true);
      std::this_thread::yield();
    }
    EXPECT_EQ(aclrtSnapShotProcessUnlock(getpid(), nullptr), ACL_SUCCESS);
  });
  result.code = call();
  is_over.store(true);
  watcher.join();
  result.waited = waited.load();
  return result;
}

}  // namespace understudy_test
