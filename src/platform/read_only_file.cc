// SPDX-License-Identifier: Apache-2.0
#include "platform/read_only_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/no_cancel.h"

namespace understudy::platform {

Result<ReadOnlyFile> ReadOnlyFile::open(const std::string& path) {
  const NoCancel no_cancel;
  // A pipe or a device must not keep us waiting.
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) {
    const int number = errno;
    return Error::system(ErrorCode::kOutOfResources, number, "the host cannot open %s (errno %d)",
                         path.c_str(), number);
  }
  struct stat status;
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error::format(ErrorCode::kNoPermission, "%s is not a plain file", path.c_str());
  }
  return ReadOnlyFile(std::move(file));
}

bool ReadOnlyFile::read_at(uint64_t offset, std::span<std::byte> bytes) const {
  const NoCancel no_cancel;
  while (!bytes.empty()) {
    const ssize_t got =
        pread(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

}  // namespace understudy::platform
