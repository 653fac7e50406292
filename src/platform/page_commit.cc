// SPDX-License-Identifier: Apache-2.0
#include "platform/page_commit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/no_cancel.h"
#include "base/size_text.h"
#include "platform/fault_plan.h"
#include "platform/unique_fd.h"

// Newer than the headers of Debian 12.
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace understudy::platform {

namespace {

Error commit_failure(int number, VirtualRange range, const char* pages) {
  return Error::system(ErrorCode::kOutOfMemory, number,
                       "the host cannot make %s pages for %s of device memory (errno %d)", pages,
                       SizeText(range.size).c_str(), number);
}

// The kernel does not know the advice, or a container does not let it through.
bool means_unknown_advice(int number) {
  return number == EINVAL || number == ENOSYS || number == EPERM || number == EACCES;
}

// Returns 0 or the errno: EINVAL where the advice is not to be had.
int populate(VirtualRange range) {
  if (madvise(to_pointer(range.base), range.size, MADV_POPULATE_WRITE) == 0) return 0;
  return means_unknown_advice(errno) ? EINVAL : errno;
}

// For kernels before 5.14, and for containers that do not know the advice: the kernel copies every
// page to a pipe and back onto itself. Where it gets no page, it answers instead of raising a
// signal.
int copy_onto_itself(VirtualRange range) {
  const NoCancel no_cancel;
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
  const UniqueFd out(ends[0]);
  const UniqueFd in(ends[1]);
  for (VirtualAddress at = range.base; at < range.end(); at += kNormalPage) {
    // A page always fits, so neither waits.
    constexpr auto kPage = static_cast<ssize_t>(kNormalPage);
    if (write(in.get(), to_pointer(at), kNormalPage) != kPage ||
        read(out.get(), to_pointer(at), kNormalPage) != kPage) {
      return errno == EFAULT ? ENOMEM : errno;
    }
  }
  return 0;
}

}  // namespace

int commit_pages(VirtualRange range) {
  const int number = populate(range);
  return number == EINVAL ? copy_onto_itself(range) : number;
}

Result<void> commit_small(VirtualRange range) {
  int number = planned_fault(SystemCall::kCommit);
  if (number == 0) number = populate(range);
  if (number == 0) return {};
  return commit_failure(number, range, "4 KiB");
}

Result<void> commit_collapsed(VirtualRange range) {
  constexpr const char* kPages = "2 MiB";
  if (const int number = planned_fault(SystemCall::kCommit); number != 0) {
    return commit_failure(number, range, kPages);
  }
  // By the advice alone: a process that is stopped at this may go on when another one has written
  // to the range, and a page that is copied onto itself then would undo that.
  for (VirtualAddress at = range.base; at < range.end(); at += kHugePage) {
    if (const int number = populate({at, kNormalPage}); number != 0) {
      return commit_failure(number, range, kPages);
    }
  }
  if (madvise(to_pointer(range.base), range.size, MADV_COLLAPSE) != 0) {
    return commit_failure(errno, range, kPages);
  }
  return {};
}

}  // namespace understudy::platform
