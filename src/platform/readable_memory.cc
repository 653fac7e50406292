// SPDX-License-Identifier: Apache-2.0
#include "platform/readable_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include "platform/kept_errno.h"

namespace understudy::platform {

bool try_read(const void* from, void* to, size_t size) noexcept {
  const KeptErrno kept_errno;
  const iovec local{to, size};
  const iovec remote{const_cast<void*>(from), size};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

}  // namespace understudy::platform
