// SPDX-License-Identifier: Apache-2.0
#include "own_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace understudy::python {
namespace {

// At most this much per call: the kernel counts in signed numbers.
constexpr size_t kMostPerCall = size_t{1} << 30;

}  // namespace

bool read_own_memory(void* destination, const void* source, size_t size) {
  auto* to = static_cast<char*>(destination);
  auto* from = static_cast<const char*>(source);
  while (size > 0) {
    const size_t part = size < kMostPerCall ? size : kMostPerCall;
    const iovec local{to, part};
    const iovec remote{const_cast<char*>(from), part};
    const ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (copied <= 0) {
      if (errno == EFAULT || copied == 0) return false;
      // Where the call is forbidden, as in some containers, nothing can be found out beforehand.
      memcpy(to, from, size);
      return true;
    }
    to += copied;
    from += copied;
    size -= static_cast<size_t>(copied);
  }
  return true;
}

bool has_readable_ends(const void* address, size_t size) {
  if (size == 0) return true;
  const auto* const first = static_cast<const char*>(address);
  char byte = 0;
  return read_own_memory(&byte, first, 1) && read_own_memory(&byte, first + (size - 1), 1);
}

}  // namespace understudy::python
