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

#include "base/no_cancel.h"
#include "platform/text_file.h"

namespace understudy::platform {

namespace {

constexpr auto kProcessFileSystem = 0x50494446;  // PIDFS_MAGIC

uint64_t own_pid_namespace() {
  struct stat status;
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// Where /proc is that of another namespace, "self" is right and the own number is not.
std::string folder_of(int32_t id) {
  return "/proc/" + (id == getpid() ? std::string("self") : std::to_string(id)) + "/";
}

struct Started {
  char state = 0;
  uint64_t ticks = 0;  // of the clock, since the machine started
};

std::optional<Started> read_start(int32_t id) {
  const auto text = read_text_file(folder_of(id) + "stat");
  // The name of the program, in parentheses, may contain anything.
  const size_t end = text ? text->rfind(')') : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  Started started;
  const int found = sscanf(text->c_str() + end + 1,
                           " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                           "%*d %*d %" SCNu64,
                           &started.state, &started.ticks);
  return found == 2 ? std::optional(started) : std::nullopt;
}

// Files of /proc exist for the numbers of threads as well.
bool is_thread_of_other(int32_t id) {
  const auto text = read_text_file(folder_of(id) + "status");
  const size_t at = text ? text->find("\nTgid:") : std::string::npos;
  int32_t process = 0;
  return id != getpid() && at != std::string::npos &&
         sscanf(text->c_str() + at, "\nTgid: %" SCNd32, &process) == 1 && process != id;
}

Error cannot_look(int number, int32_t id) {
  return Error::system(ErrorCode::kOutOfResources, number,
                       "the host does not let this process look at process %d (errno %d)", id,
                       number);
}

// By /proc alone, for processes that may have no descriptor of another one.
Result<std::optional<ProcessIdentity>> identity_by_start(int32_t id, int number) {
  const std::optional<Started> started = read_start(id);
  if (!started && !read_start(getpid())) return cannot_look(number, id);
  const bool has_ended = !started || started->state == 'Z' || started->state == 'X';
  if (has_ended || is_thread_of_other(id)) return std::optional<ProcessIdentity>();
  return std::optional(
      ProcessIdentity{id, ProcessIdentity::kStartTime | started->ticks, own_pid_namespace()});
}

bool means_refused(int number) { return number == ENOSYS || number == EPERM || number == EACCES; }

bool means_exhausted(int number) {
  return number == EMFILE || number == ENFILE || number == ENOMEM;
}

}  // namespace

bool has_ended(int process) {
  const NoCancel no_cancel;
  pollfd ended{process, POLLIN, 0};
  return poll(&ended, 1, 0) != 0;
}

UniqueFd open_process(int32_t id) {
  if (id <= 0) return UniqueFd();
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, id, 0)));
}

Result<std::optional<ProcessIdentity>> identity_of_process(int32_t id) {
  const auto no_process = std::optional<ProcessIdentity>();
  if (id <= 0) return no_process;
  const UniqueFd process = open_process(id);
  if (!process.valid()) {
    const int number = errno;
    if (means_refused(number)) return identity_by_start(id, number);
    if (means_exhausted(number)) return cannot_look(number, id);
    return no_process;
  }
  struct statfs file_system;
  struct stat status;
  if (fstatfs(process.get(), &file_system) == 0 && file_system.f_type == kProcessFileSystem &&
      fstat(process.get(), &status) == 0) {
    if (has_ended(process.get())) return no_process;
    return std::optional(ProcessIdentity{id, status.st_ino, own_pid_namespace()});
  }
  const Result<std::optional<ProcessIdentity>> found = identity_by_start(id, 0);
  // The number may have changed hands while it was read.
  if (has_ended(process.get())) return no_process;
  return found;
}

ProcessIdentity own_identity() {
  const int32_t id = getpid();
  const Result<std::optional<ProcessIdentity>> identity = identity_of_process(id);
  if (identity.ok() && identity.value()) return *identity.value();
  return {id, 0, own_pid_namespace()};
}

Presence presence_of(const ProcessIdentity& identity) {
  const uint64_t own = own_pid_namespace();
  if (identity.birth == 0 || own == 0 || identity.pid_namespace != own) return Presence::kUnknown;
  const bool by_start = (identity.birth & ProcessIdentity::kStartTime) != 0;
  const auto found =
      by_start ? identity_by_start(identity.id, 0) : identity_of_process(identity.id);
  if (!found.ok()) return Presence::kUnknown;
  if (!found.value()) return Presence::kGone;
  if (*found.value() == identity) return Presence::kThere;
  const bool same_means =
      ((found.value()->birth ^ identity.birth) & ProcessIdentity::kStartTime) == 0;
  return same_means ? Presence::kGone : Presence::kUnknown;
}

}  // namespace understudy::platform
