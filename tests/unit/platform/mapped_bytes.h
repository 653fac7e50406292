// SPDX-License-Identifier: Apache-2.0
//
// What the kernel knows of a place in memory, asked without touching it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <sstream>
#include <string>

#include "base/virtual_range.h"
#include "platform/memory_file.h"
#include "platform/text_file.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

// Bytes of memory that are behind a file.
inline uint64_t bytes_behind(const MemoryFile& file) {
  struct stat status = {};
  if (fstat(file.descriptor(), &status) != 0) return UINT64_MAX;
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

// Whether a load from this address would give a byte: the kernel loads it and says EFAULT instead
// of raising a signal.
inline bool cpu_can_read(VirtualAddress address) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return false;
  const UniqueFd in(ends[0]);
  const UniqueFd out(ends[1]);
  return syscall(SYS_write, out.get(), to_pointer(address), 1) == 1;
}

// The VmFlags line of the mapping around an address; nothing if the kernel does not show it.
inline std::optional<std::string> kernel_flags_at(VirtualAddress address) {
  std::istringstream lines(read_text_file("/proc/self/smaps").value_or(""));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    uint64_t begin = 0;
    uint64_t end = 0;
    if (sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) {
      inside = begin <= address && address < end;
    } else if (inside && line.rfind("VmFlags:", 0) == 0) {
      return line + " ";
    }
  }
  return std::nullopt;
}

}  // namespace understudy::platform
