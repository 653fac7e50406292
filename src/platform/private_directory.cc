// SPDX-License-Identifier: Apache-2.0
#include "platform/private_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "platform/fault_plan.h"
#include "platform/fork_sentinel.h"

namespace understudy::platform {

namespace {

Error cannot_open(int number, const std::string& path) {
  return Error::system(ErrorCode::kOutOfResources, number, "the host cannot open %s (errno %d)",
                       path.c_str(), number);
}

Error unfit(const std::string& path, const char* why) {
  return Error::format(ErrorCode::kNoPermission, "%s %s", path.c_str(), why);
}

}  // namespace

std::string default_server_directory() {
  return "/dev/shm/understudy-" + std::to_string(geteuid());
}

Result<PrivateDirectory> PrivateDirectory::open_or_make(const std::string& wanted) {
  // With a slash behind it, a link would be followed.
  const std::string path = wanted.substr(0, wanted.find_last_not_of('/') + 1);
  int number = planned_fault(SystemCall::kOpenFile);
  if (number == 0 && mkdir(path.c_str(), S_IRWXU) != 0 && errno == ENOENT) {
    std::error_code ignored;  // what is wrong shows when it is opened
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    mkdir(path.c_str(), S_IRWXU);
  }
  UniqueFd descriptor;
  if (number == 0) {
    descriptor = UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!descriptor.valid()) number = errno;
  }
  if (number == ENOTDIR || number == ELOOP) return unfit(path, "is not a directory");
  if (number != 0) return cannot_open(number, path);
  struct stat status;
  if (fstat(descriptor.get(), &status) != 0) return cannot_open(errno, path);
  if (status.st_uid != geteuid()) return unfit(path, "belongs to another user");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return unfit(path, "is open to other users; its mode must be 0700");
  }
  close_in_fork_child(descriptor.get());
  return PrivateDirectory(path, std::move(descriptor));
}

PrivateDirectory::~PrivateDirectory() {
  if (descriptor_.valid()) forget_for_fork_child(descriptor_.get());
}

Result<UniqueFd> PrivateDirectory::open_file(const char* name) const {
  const std::string path = path_ + "/" + name;
  int number = planned_fault(SystemCall::kOpenFile);
  UniqueFd file;
  if (number == 0) {
    // A pipe or a device must not keep us waiting.
    file =
        UniqueFd(openat(descriptor_.get(), name,
                        O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file.valid()) number = errno;
  }
  if (number == ELOOP || number == EISDIR || number == ENXIO) {
    return unfit(path, "is not a plain file");
  }
  if (number != 0) return cannot_open(number, path);
  struct stat status;
  if (fstat(file.get(), &status) != 0) return cannot_open(errno, path);
  if (!S_ISREG(status.st_mode)) return unfit(path, "is not a plain file");
  if (status.st_uid != geteuid()) return unfit(path, "belongs to another user");
  if (status.st_nlink != 1) return unfit(path, "has other names or was removed");
  close_in_fork_child(file.get());
  return file;
}

void PrivateDirectory::remove(const char* name) const { unlinkat(descriptor_.get(), name, 0); }

void PrivateDirectory::remove_all(const char* prefix) const {
  // By the descriptor: the path may mean another directory by now.
  std::error_code ignored;
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor_.get());
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix)) remove(name.c_str());
  }
}

}  // namespace understudy::platform
