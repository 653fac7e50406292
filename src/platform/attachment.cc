// SPDX-License-Identifier: Apache-2.0
#include "platform/attachment.h"

#include <sys/mman.h>
#include <sys/shm.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/kill_point.h"
#include "platform/fault_plan.h"

namespace understudy::platform {

namespace {

// Of all segments, by which one is known that a process left which was killed while it made it.
constexpr key_t kKey = 0x75736e64;
// No other program's segment is likely to have it. Memory is what is touched, a page.
constexpr size_t kSize = 0x5eed;

int make_segment_of(key_t key) { return shmget(key, kSize, IPC_CREAT | IPC_EXCL | SHM_R | SHM_W); }

// Its key is kKey until it is marked for removal; from then on it is attached by its number.
int make_segment() {
  const int made = make_segment_of(kKey);
  if (made >= 0 || errno != EEXIST) return made;
  const int left = shmget(kKey, kSize, SHM_R | SHM_W);
  shmid_ds status;
  if (left >= 0 && shmctl(left, IPC_STAT, &status) == 0 && status.shm_nattch == 0) {
    shmctl(left, IPC_RMID, nullptr);
  }
  // Where another process is making one at this moment, or another user left one.
  const int after = make_segment_of(kKey);
  return after >= 0 ? after : make_segment_of(IPC_PRIVATE);
}

}  // namespace

std::optional<Attachment> Attachment::attach(int32_t segment, int flags) {
  void* const memory = shmat(segment, nullptr, flags);
  if (memory == MAP_FAILED) return std::nullopt;
  std::optional<Attachment> attached(Attachment(segment, memory));
  // A child that had it would count.
  if (madvise(memory, kSize, MADV_DONTFORK) != 0) return std::nullopt;
  return attached;
}

std::optional<Attachment> Attachment::make(const Mark& mark) {
  if (planned_fault(SystemCall::kAttach) != 0) return std::nullopt;
  const int segment = make_segment();
  if (segment < 0) return std::nullopt;
  US_KILL_POINT("segment.made");
  std::optional<Attachment> made = attach(segment, 0);
  // From now on it ends with its last attachment.
  shmctl(segment, IPC_RMID, nullptr);
  if (made) memcpy(made->memory_, mark.data(), sizeof mark);
  return made;
}

std::optional<Attachment> Attachment::join(int32_t segment, const Mark& mark) {
  if (planned_fault(SystemCall::kAttach) != 0) return std::nullopt;
  shmid_ds status;
  const bool may_be_it = shmctl(segment, IPC_STAT, &status) == 0 && status.shm_segsz == kSize;
  if (!may_be_it) return std::nullopt;
  std::optional<Attachment> joined = attach(segment, SHM_RDONLY);
  if (joined && memcmp(joined->memory_, mark.data(), sizeof mark) != 0) return std::nullopt;
  return joined;
}

Attachment::~Attachment() {
  if (memory_ != nullptr) shmdt(memory_);
}

std::optional<uint64_t> Attachment::count() const {
  shmid_ds status;
  if (shmctl(segment_, IPC_STAT, &status) != 0) return std::nullopt;
  return status.shm_nattch;
}

}  // namespace understudy::platform
