// SPDX-License-Identifier: Apache-2.0
#include "platform/private_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/no_cancel.h"
#include "platform/fault_plan.h"
#include "platform/fork_sentinel.h"
#include "platform/system_number.h"

namespace understudy::platform {

namespace {

constexpr int kMakeAttempts = 16;

std::string reason(int number) { return std::generic_category().message(number); }

// A path that is too long for sockets in the directory is shown in part: the reason needs room.

Error cannot_open(int number, const std::string& path) {
  return Error::system(ErrorCode::kOutOfResources, number, "%.120s cannot be opened: %s",
                       path.c_str(), reason(number).c_str());
}

Error cannot_make(int number, const std::string& path) {
  return Error::system(ErrorCode::kOutOfResources, number, "%.120s cannot be made: %s",
                       path.c_str(), reason(number).c_str());
}

bool is_link(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

// Makes a directory, and those around it. 0, also if it was there, or errno.
int make_directory(const std::string& path) {
  if (mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST) return 0;
  if (errno != ENOENT) return errno;
  std::error_code around;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), around);
  if (around) return around.value();
  return mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST ? 0 : errno;
}

Error unfit(const std::string& path, const char* why) {
  return Error::format(ErrorCode::kNoPermission, "%.120s %s", path.c_str(), why);
}

// With a slash behind it, a link would be followed. The root is nothing but slashes.
std::string without_slashes(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

}  // namespace

bool is_removed(int file) {
  struct stat status;
  return fstat(file, &status) == 0 && status.st_nlink == 0;
}

std::string default_server_directory() {
  return "/dev/shm/understudy-" + std::to_string(geteuid());
}

Result<PrivateDirectory> PrivateDirectory::open_or_make(const std::string& wanted) {
  const NoCancel no_cancel;
  const std::string path = without_slashes(wanted);
  // A directory that was there may be removed before it is opened, again and again.
  for (int attempt = 0; attempt < kMakeAttempts; ++attempt) {
    const int not_made = make_directory(path);
    // What is there can be opened all the same.
    Result<PrivateDirectory> opened = open_made(path);
    if (opened.ok() || !means_absent(opened.error())) return opened;
    if (not_made != 0) return cannot_make(not_made, path);
  }
  return cannot_open(ENOENT, path);
}

Result<PrivateDirectory> PrivateDirectory::open(const std::string& wanted) {
  const NoCancel no_cancel;
  return open_made(without_slashes(wanted));
}

Result<PrivateDirectory> PrivateDirectory::open_made(const std::string& path) {
  int number = planned_fault(SystemCall::kOpenFile);
  UniqueFd descriptor;
  if (number == 0) {
    descriptor = UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!descriptor.valid()) number = errno;
  }
  if (number == ENOTDIR || number == ELOOP) {
    return unfit(path, is_link(path) ? "is a link, which is not followed" : "is not a directory");
  }
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

Result<UnsharedFd> PrivateDirectory::open_file(const char* name) const {
  return open_file_by(name, O_RDWR | O_CREAT);
}

Result<UnsharedFd> PrivateDirectory::open_existing_file(const char* name) const {
  return open_file_by(name, O_RDWR);
}

Result<UnsharedFd> PrivateDirectory::open_file_by(const char* name, int flags) const {
  const NoCancel no_cancel;
  const std::string path = path_ + "/" + name;
  int number = planned_fault(SystemCall::kOpenFile);
  UnsharedFd file;
  if (number == 0) {
    // A pipe or a device must not keep us waiting.
    file = UnsharedFd(UniqueFd(openat(
        descriptor_.get(), name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR)));
    if (!file.valid()) number = errno;
  }
  if (number == ELOOP || number == EISDIR || number == ENXIO) {
    return unfit(path, "is not a plain file");
  }
  if (number == 0) number = planned_fault(SystemCall::kStatFile);
  struct stat status;
  if (number == 0 && fstat(file.get(), &status) != 0) number = errno;
  if (number != 0) return cannot_open(number, path);
  // Removed since it was opened: a caller that tries again makes a new one.
  if (status.st_nlink == 0) return cannot_open(ENOENT, path);
  if (!S_ISREG(status.st_mode)) return unfit(path, "is not a plain file");
  if (status.st_uid != geteuid()) return unfit(path, "belongs to another user");
  if (status.st_nlink != 1) return unfit(path, "has other names");
  return file;
}

int PrivateDirectory::usable_descriptor(UniqueFd& again) const {
  if (identity_of_file(descriptor_.get()) == identity_) return descriptor_.get();
  // The program has closed the descriptor, whose number may be another directory's by now. The path
  // leads there, unless it means another directory as well.
  again = UniqueFd(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return again.valid() && identity_of_file(again.get()) == identity_ ? again.get() : -1;
}

void PrivateDirectory::remove(const char* name) const {
  const NoCancel no_cancel;
  UniqueFd again;
  unlinkat(usable_descriptor(again), name, 0);
}

bool PrivateDirectory::is_socket(const char* name) const {
  const NoCancel no_cancel;
  UniqueFd again;
  struct stat status;
  return fstatat(usable_descriptor(again), name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISSOCK(status.st_mode);
}

void PrivateDirectory::remove_socket(const char* name) const {
  if (is_socket(name)) remove(name);
}

Result<std::vector<std::string>> PrivateDirectory::names() const {
  const NoCancel no_cancel;
  UniqueFd again;
  // An opening of its own, which has a position of its own. Not by /proc, which may be missing.
  UniqueFd opening(openat(usable_descriptor(again), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opening.valid()) return cannot_open(errno, path_);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(opening.get()), closedir);
  if (list == nullptr) return cannot_open(errno, path_);
  opening.release();  // the list's
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(list.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

}  // namespace understudy::platform
