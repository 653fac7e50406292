// SPDX-License-Identifier: Apache-2.0
#include "platform/byte_lock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/pause.h"
#include "platform/fault_plan.h"

namespace understudy::platform {

namespace {

struct flock on_bytes(short type, uint64_t byte, uint64_t count) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = static_cast<off_t>(count);
  return lock;
}

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

bool try_lock_byte(int file, uint64_t byte) {
  if (planned_fault(SystemCall::kLockByte) != 0) return false;
  struct flock lock = on_bytes(F_WRLCK, byte, 1);
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool lock_byte(int file, uint64_t byte, Deadline deadline) {
  // Longer each time: hundreds that wait would leave no time to the one that has it.
  constexpr std::chrono::microseconds kLongest(2000);
  for (auto time = kShortNap; !try_lock_byte(file, byte); time = std::min(2 * time, kLongest)) {
    if (has_passed(deadline)) return false;
    nap(time);
  }
  return true;
}

void unlock_byte(int file, uint64_t byte) {
  struct flock lock = on_bytes(F_UNLCK, byte, 1);
  fcntl(file, F_OFD_SETLK, &lock);
}

ByteLockState byte_lock_state(int file, uint64_t byte, uint64_t count) {
  struct flock lock = on_bytes(F_WRLCK, byte, count);
  if (fcntl(file, F_OFD_GETLK, &lock) != 0) return ByteLockState::kUnknown;
  return lock.l_type == F_UNLCK ? ByteLockState::kFree : ByteLockState::kLocked;
}

std::optional<LifeLock> LifeLock::try_take(const UnsharedFd& file, uint64_t byte) {
  // Never touched; a file of any length will do.
  void* const page = mmap(nullptr, page_size(), PROT_NONE, MAP_SHARED, file.get(), 0);
  if (page == MAP_FAILED) return std::nullopt;
  std::optional<LifeLock> taken(LifeLock{page});
  // A child that had the page would keep the lock.
  if (madvise(page, page_size(), MADV_DONTFORK) != 0 || !try_lock_byte(file.get(), byte)) {
    return std::nullopt;
  }
  return taken;
}

LifeLock::~LifeLock() {
  if (page_ != nullptr) munmap(page_, page_size());
}

}  // namespace understudy::platform
