// SPDX-License-Identifier: Apache-2.0
#include "platform/byte_lock.h"

#include <fcntl.h>
#include <unistd.h>

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

}  // namespace

bool try_lock_byte(int file, uint64_t byte) {
  if (planned_fault(SystemCall::kLockByte) != 0) return false;
  struct flock lock = on_bytes(F_WRLCK, byte, 1);
  return fcntl(file, F_SETLK, &lock) == 0;
}

bool lock_byte(int file, uint64_t byte, Deadline deadline) {
  while (!try_lock_byte(file, byte)) {
    if (has_passed(deadline)) return false;
    nap();
  }
  return true;
}

void unlock_byte(int file, uint64_t byte) {
  struct flock lock = on_bytes(F_UNLCK, byte, 1);
  fcntl(file, F_SETLK, &lock);
}

bool is_locked_by_other(int file, uint64_t byte, uint64_t count) {
  struct flock lock = on_bytes(F_WRLCK, byte, count);
  // Where it cannot be told, nobody is taken for dead.
  return fcntl(file, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace understudy::platform
