// SPDX-License-Identifier: Apache-2.0
#include "platform/process_identity.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "platform/text_file.h"

namespace understudy::platform {

namespace {

constexpr auto kProcessFileSystem = 0x50494446;  // PIDFS_MAGIC

// In ticks of the clock since the machine started.
std::optional<uint64_t> start_time(int32_t id) {
  const auto text = read_text_file("/proc/" + std::to_string(id) + "/stat");
  // The name of the program, in parentheses, may contain anything.
  const size_t end = text ? text->rfind(')') : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  uint64_t ticks = 0;
  const int found = sscanf(text->c_str() + end + 1,
                           " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                           "%*d %*d %" SCNu64,
                           &ticks);
  return found == 1 ? std::optional(ticks) : std::nullopt;
}

}  // namespace

bool has_ended(int process) {
  pollfd ended{process, POLLIN, 0};
  return poll(&ended, 1, 0) != 0;
}

UniqueFd open_process(int32_t id) {
  if (id <= 0) return UniqueFd();
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, id, 0)));
}

Result<std::optional<ProcessIdentity>> identity_of_process(int32_t id) {
  const auto nobody = std::optional<ProcessIdentity>();
  const UniqueFd process = open_process(id);
  if (!process.valid()) {
    if (id <= 0 || (errno != EMFILE && errno != ENFILE && errno != ENOMEM)) return nobody;
    return Error::system(ErrorCode::kOutOfResources, errno,
                         "the host has no descriptor to look at process %d (errno %d)", id, errno);
  }
  struct statfs file_system;
  struct stat status;
  if (fstatfs(process.get(), &file_system) == 0 && file_system.f_type == kProcessFileSystem &&
      fstat(process.get(), &status) == 0) {
    if (has_ended(process.get())) return nobody;
    return std::optional(ProcessIdentity{id, status.st_ino});
  }
  const std::optional<uint64_t> started = start_time(id);
  // The number may have changed hands while it was read.
  if (!started || has_ended(process.get())) return nobody;
  return std::optional(ProcessIdentity{id, *started});
}

ProcessIdentity own_identity() {
  const int32_t id = getpid();
  const Result<std::optional<ProcessIdentity>> identity = identity_of_process(id);
  if (identity.ok() && identity.value()) return *identity.value();
  return {id, 0};
}

}  // namespace understudy::platform
