// SPDX-License-Identifier: Apache-2.0
#include "tools/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "platform/unique_fd.h"

namespace understudy::command {

namespace {

using platform::UniqueFd;

Error cannot_write(const std::string& path, int number) {
  return Error::system(ErrorCode::kOutOfResources, number, "cannot write %.120s: %s", path.c_str(),
                       strerror(number));
}

// What a path means in the end: the file behind links, which stay.
std::string behind_links(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path found = std::filesystem::canonical(path, failed);
  return failed ? path : found.string();
}

// A file beside another one, with the permissions that one has or would get. Removed unless it
// takes the other's place.
class FileBeside {
 public:
  FileBeside(const std::string& path, mode_t mode) : name_(path + ".XXXXXX") {
    file_ = UniqueFd(mkostemp(name_.data(), O_CLOEXEC));
    if (!file_.valid()) {
      failure_ = errno;
    } else {
      (void)fchmod(file_.get(), mode);  // some file systems have no permissions
    }
  }
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  ~FileBeside() {
    if (file_.valid() && !name_.empty()) unlink(name_.c_str());
  }

  int descriptor() const { return file_.get(); }
  // 0, or errno of what made it impossible.
  int failure() const { return failure_; }
  // 0, or errno.
  int replace(const std::string& path) {
    if (rename(name_.c_str(), path.c_str()) != 0) return errno;
    name_.clear();
    return 0;
  }

 private:
  std::string name_;
  UniqueFd file_;
  int failure_ = 0;
};

// 0, or errno.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

mode_t mode_of_new_file() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

enum class Way : unsigned char { kReplace, kInPlace };
struct Plan {
  std::string path;
  Way way = Way::kReplace;
  mode_t mode = 0;
};

// How the file is written, or why it cannot be.
Result<Plan> plan_for(const std::string& asked) {
  Plan plan{behind_links(asked)};
  struct stat status;
  const bool exists = stat(plan.path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return cannot_write(asked, EISDIR);
  if (exists && access(plan.path.c_str(), W_OK) != 0) return cannot_write(asked, errno);
  if (exists && (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink != 1)) {
    plan.way = Way::kInPlace;  // a new file would be another user's, or have one name of several
    return plan;
  }
  plan.mode = exists ? status.st_mode & 07777 : mode_of_new_file();
  if (const int failure = FileBeside(plan.path, plan.mode).failure(); failure != 0) {
    if (!exists) return cannot_write(asked, failure);
    plan.way = Way::kInPlace;
  }
  return plan;
}

// Both give 0, or errno.
int write_in_place(const Plan& plan, std::string_view text) {
  const UniqueFd file(open(plan.path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  return file.valid() ? write_all(file.get(), text) : errno;
}

int write_beside(const Plan& plan, std::string_view text) {
  FileBeside file(plan.path, plan.mode);
  if (file.failure() != 0) return file.failure();
  if (const int failure = write_all(file.descriptor(), text); failure != 0) return failure;
  return file.replace(plan.path);
}

}  // namespace

Result<void> check_writable(const std::string& path) {
  US_TRY(plan_for(path));
  return {};
}

Result<void> write_whole_file(const std::string& path, std::string_view text) {
  US_TRY_ASSIGN(const Plan plan, plan_for(path));
  const int failure =
      plan.way == Way::kInPlace ? write_in_place(plan, text) : write_beside(plan, text);
  if (failure != 0) return cannot_write(path, failure);
  return {};
}

}  // namespace understudy::command
