// SPDX-License-Identifier: Apache-2.0
//
// A file that is only looked at, by system calls: one that another process cuts short meanwhile
// gives fewer bytes, where a mapping would raise a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

class ReadOnlyFile {
 public:
  // Refuses what is no plain file. The error carries errno.
  static Result<ReadOnlyFile> open(const std::string& path);

  // Fills the bytes from an offset on. False if the file does not have them all.
  bool read_at(uint64_t offset, std::span<std::byte> bytes) const;
  int descriptor() const { return descriptor_.get(); }

 private:
  explicit ReadOnlyFile(UniqueFd descriptor) : descriptor_(std::move(descriptor)) {}

  UniqueFd descriptor_;
};

}  // namespace understudy::platform
