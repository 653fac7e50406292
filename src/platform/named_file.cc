// SPDX-License-Identifier: Apache-2.0
#include "platform/named_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/deadline.h"
#include "base/no_cancel.h"
#include "platform/kept_errno.h"

namespace understudy::platform {

namespace {

constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

Error cannot(const char* what, const std::string& path, int number) {
  return Error::system(ErrorCode::kInvalidArgument, number, "%s %.160s (errno %d)", what,
                       path.c_str(), number);
}

}  // namespace

void FileTurn::give_up() noexcept {
  if (file_.valid()) (void)flock(file_.get(), LOCK_UN);
}

FileTurn& FileTurn::operator=(FileTurn&& other) noexcept {
  if (this != &other) {
    give_up();
    file_ = std::move(other.file_);
  }
  return *this;
}

Result<NamedFile> NamedFile::open(const std::string& path, FileTurn& turn) {
  const NoCancel no_cancel;
  const Deadline limit = deadline_after(std::chrono::seconds(5));
  while (true) {
    UniqueFd file(::open(path.c_str(), kFlags | O_CREAT, 0600));
    if (!file.valid()) return cannot("cannot open or make the file", path, errno);
    struct stat status;
    if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      return cannot("this is no plain file:", path, EINVAL);
    }
    while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return cannot("cannot lock the file", path, errno);
      }
      if (Clock::now() > limit) return cannot("another process holds the file", path, EWOULDBLOCK);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FileTurn taken(std::move(file));
    // The process that had its turn before may have removed it.
    struct stat named;
    const bool is_named = stat(path.c_str(), &named) == 0 && named.st_dev == status.st_dev &&
                          named.st_ino == status.st_ino;
    if (!is_named && Clock::now() <= limit) continue;
    turn = std::move(taken);
    return NamedFile(path, status.st_dev, status.st_ino);
  }
}

Result<UniqueFd> NamedFile::open_again() const {
  const NoCancel no_cancel;
  UniqueFd file(::open(path_.c_str(), kFlags));
  if (!file.valid()) return cannot("cannot open the file", path_, errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0 || status.st_dev != device_ || status.st_ino != inode_) {
    return cannot("this is another file by now:", path_, ESTALE);
  }
  return file;
}

Result<void> NamedFile::remove() const {
  US_TRY(open_again());
  if (unlink(path_.c_str()) != 0) return cannot("cannot remove the file", path_, errno);
  return {};
}

Result<void> NamedFile::back(uint64_t offset, uint64_t size) const {
  const KeptErrno kept_errno;
  const NoCancel no_cancel;
  US_TRY_ASSIGN(const UniqueFd file, open_again());
  return back_file(file.get(), offset, size);
}

void populate_for_writing(void* address, uint64_t size) noexcept {
#if defined(MADV_POPULATE_WRITE)
  constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
  constexpr int kPopulate = 23;  // of Linux 5.14; older headers have no name for it
#endif
  const KeptErrno kept_errno;
  (void)madvise(address, size, kPopulate);
}

}  // namespace understudy::platform
