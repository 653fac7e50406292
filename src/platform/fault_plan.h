// SPDX-License-Identifier: Apache-2.0
//
// Lets a test make the n-th system call of a kind fail. Each platform function asks before its
// call; with no plan that is one relaxed load. For unit tests: nothing in the library sets a plan.
#pragma once

#include <cstdint>

namespace understudy::platform {

enum class SystemCall : uint8_t {
  kCreateFile,
  kResizeFile,
  kReserveAddresses,
  kMapFile,
  kUnmap,
  kCommit,
  kDiscard,
  kLock,
  kStartThread,
  kOpenFile,
  kStatFile,
  kLockByte,
  kConnect,
  kSend,
  kReceive,
  kFence,
  kAttach,
  kCount,
};

// The `n`-th call of this kind from now on (1 is the next one) fails with `system_number`, once.
void plan_fault(SystemCall call, int n, int system_number);
// The same, but the process is stopped first (SIGSTOP). When it goes on, the call is made, or fails
// if the number is not 0.
void plan_stop(SystemCall call, int n, int system_number = 0);
void clear_fault_plan();

// 0, or the errno that this call must fail with.
int planned_fault(SystemCall call);

}  // namespace understudy::platform
