// SPDX-License-Identifier: Apache-2.0
#include "platform/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "platform/fault_plan.h"

namespace understudy::platform {

namespace {

long membarrier(int command) {
  if (const int failure = planned_fault(SystemCall::kFence)) {
    errno = failure;
    return -1;
  }
  return syscall(SYS_membarrier, command, 0, 0);
}

enum class Support : uint8_t { kUnknown, kMissing, kPresent };

}  // namespace

bool has_heavy_fence() {
  // Of the kernel and of the filters that the process inherited: the same for its children.
  static std::atomic<Support> support{Support::kUnknown};
  Support known = support.load(std::memory_order_relaxed);
  if (known == Support::kUnknown) {
    const long commands = membarrier(MEMBARRIER_CMD_QUERY);
    known = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 ? Support::kPresent
                                                                               : Support::kMissing;
    support.store(known, std::memory_order_relaxed);
  }
  return known == Support::kPresent;
}

Result<void> heavy_fence() {
  // Not at the start of the process: with several threads the kernel takes milliseconds for it.
  if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
      membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
    return {};
  }
  return Error::system(ErrorCode::kOutOfResources, errno, "the kernel gives no memory barrier");
}

}  // namespace understudy::platform
