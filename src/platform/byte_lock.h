// SPDX-License-Identifier: Apache-2.0
//
// Locks on single bytes of a file by which processes see each other. A lock belongs to one opening
// of the file (an open file description, fcntl_locking(2)), not to a process: other descriptors of
// the file may be opened and closed, and a second opening in the same process sees it as another
// process does.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/deadline.h"
#include "platform/unshared_fd.h"

namespace understudy::platform {

// False if another opening has it.
bool try_lock_byte(int file, uint64_t byte);
// The same, but tries until the deadline.
bool lock_byte(int file, uint64_t byte, Deadline deadline);
void unlock_byte(int file, uint64_t byte);
// Whether another opening has a lock on a byte of the range.
enum class ByteLockState : uint8_t { kFree, kLocked, kUnknown };
ByteLockState byte_lock_state(int file, uint64_t byte, uint64_t count = 1);
// The same; also where it cannot be told.
inline bool is_locked_by_other(int file, uint64_t byte, uint64_t count = 1) {
  return byte_lock_state(file, byte, count) != ByteLockState::kFree;
}

// A lock that this process keeps without a descriptor: a mapping keeps the opening of the file. No
// descriptor that the program closes ends it, and no child of fork inherits it. The kernel drops it
// when the process ends or executes another program, however that happens.
class LifeLock {
 public:
  LifeLock() = default;
  LifeLock(LifeLock&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  LifeLock& operator=(LifeLock&& other) noexcept {
    std::swap(page_, other.page_);
    return *this;
  }
  ~LifeLock();

  // `file` is an opening that nothing else is done with; the caller closes it afterwards. Nothing
  // if another has the byte, or the host cannot.
  static std::optional<LifeLock> try_take(const UnsharedFd& file, uint64_t byte);

 private:
  explicit LifeLock(void* page) : page_(page) {}

  void* page_ = nullptr;
};

}  // namespace understudy::platform
