// SPDX-License-Identifier: Apache-2.0
#include "platform/page_commit.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/size_text.h"
#include "platform/fault_plan.h"

// Newer than the headers of Debian 12.
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace understudy::platform {

namespace {

Error commit_failure(int number, VirtualRange range) {
  return Error::system(ErrorCode::kOutOfMemory, number,
                       "the host cannot make 2 MiB pages for %s of device memory (errno %d)",
                       SizeText(range.size).c_str(), number);
}

}  // namespace

Result<void> commit_collapsed(VirtualRange range) {
  if (const int number = planned_fault(SystemCall::kCommit); number != 0) {
    return commit_failure(number, range);
  }
  for (VirtualAddress at = range.base; at < range.end(); at += kHugePage) {
    if (madvise(to_pointer(at), kNormalPage, MADV_POPULATE_WRITE) != 0) {
      return commit_failure(errno, range);
    }
  }
  if (madvise(to_pointer(range.base), range.size, MADV_COLLAPSE) != 0) {
    return commit_failure(errno, range);
  }
  return {};
}

}  // namespace understudy::platform
