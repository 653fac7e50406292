// SPDX-License-Identifier: Apache-2.0
#include "platform/shared_write.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/deadline.h"
#include "base/no_cancel.h"
#include "platform/fork_sentinel.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

namespace {

// While this lives, a write that fails is an error and no signal: SIGPIPE without a reader, SIGXFSZ
// past the limit of a file's size. The signal goes to the thread that writes: it is blocked here,
// and taken off the thread if there was one.
class HeldSignal {
 public:
  explicit HeldSignal(int number) {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, number) == 1;
    sigemptyset(&signal_);
    sigaddset(&signal_, number);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~HeldSignal() {
    if (was_raised_ && !was_pending_) take();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HeldSignal(const HeldSignal&) = delete;
  HeldSignal& operator=(const HeldSignal&) = delete;

  void note_raised() { was_raised_ = true; }

 private:
  // There is none if the program ignores the signal.
  void take() {
    constexpr timespec kAtOnce{0, 0};
    while (sigtimedwait(&signal_, nullptr, &kAtOnce) < 0 && errno == EINTR) {
    }
  }

  sigset_t signal_;
  sigset_t before_;
  bool was_pending_ = false;
  bool was_raised_ = false;
};

// Whether within this time a write would not wait, or would fail at once.
bool has_room(int descriptor, std::chrono::milliseconds time) {
  pollfd look{descriptor, POLLOUT, 0};
  return poll(&look, 1, static_cast<int>(time.count())) > 0;
}

// Whether opening a descriptor's file once more leads to the same pipe or terminal. Many devices
// begin something new with every opening: the master side of a terminal makes a new terminal.
bool leads_to_the_same(int descriptor, const struct stat& status) {
  if (S_ISFIFO(status.st_mode)) return true;
  unsigned number = 0;
  return isatty(descriptor) == 1 && ioctl(descriptor, TIOCGPTN, &number) != 0;
}

// None if it cannot be opened, or if the number names another file by now.
UniqueFd open_again_without_waiting(int descriptor, const struct stat& status) {
  if (!leads_to_the_same(descriptor, status)) return {};
  std::array<char, 32> path;
  snprintf(path.data(), path.size(), "/proc/self/fd/%d", descriptor);
  int number = -1;
  do {
    number = open(path.data(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  } while (number < 0 && errno == EINTR);
  UniqueFd opened(number);
  struct stat found;
  const bool is_same = opened.valid() && fstat(opened.get(), &found) == 0 &&
                       found.st_dev == status.st_dev && found.st_ino == status.st_ino &&
                       found.st_rdev == status.st_rdev;
  return is_same ? std::move(opened) : UniqueFd();
}

// Writes to something else than a file. Owns the opening that it may need, which lasts for one
// text: programs close and replace descriptors as they like.
class UnwaitingWriter {
 public:
  UnwaitingWriter(int descriptor, const struct stat& status)
      : descriptor_(descriptor), status_(status) {}
  ~UnwaitingWriter() {
    if (own_.valid()) forget_for_fork_child(own_.get());
  }
  UnwaitingWriter(const UnwaitingWriter&) = delete;
  UnwaitingWriter& operator=(const UnwaitingWriter&) = delete;

  // EAGAIN where it would wait.
  ssize_t write(std::string_view text) {
    if (!own_.valid()) {
      const ssize_t written = write_by_flag(text);
      if (written >= 0 || !is_flag_unknown(errno)) return written;
      own_ = open_again_without_waiting(descriptor_, status_);
      if (!own_.valid()) return write_if_room(text);
      close_in_fork_child(own_.get());
    }
    return ::write(own_.get(), text.data(), text.size());
  }

 private:
  static bool is_flag_unknown(int number) {
    return number == EOPNOTSUPP || number == EINVAL || number == ENOSYS || number == ESPIPE ||
           number == EPERM;
  }
  ssize_t write_by_flag(std::string_view text) const {
    const iovec part{const_cast<char*>(text.data()), text.size()};
    constexpr off_t kWhereItIs = -1;
    return pwritev2(descriptor_, &part, 1, kWhereItIs, RWF_NOWAIT);
  }
  ssize_t write_if_room(std::string_view text) const {
    using namespace std::chrono_literals;
    if (has_room(descriptor_, 0ms)) return ::write(descriptor_, text.data(), text.size());
    errno = EAGAIN;
    return -1;
  }

  const int descriptor_;
  const struct stat& status_;
  UniqueFd own_;
};

WriteEnd write_to_file(int descriptor, std::string_view text) {
  HeldSignal signal(SIGXFSZ);
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      if (errno == EFBIG) signal.note_raised();
      return WriteEnd::kLost;
    }
  }
  return WriteEnd::kWritten;
}

}  // namespace

WriteEnd write_shared(int descriptor, std::string_view text, std::chrono::milliseconds patience) {
  const NoCancel no_cancel;
  struct stat status;
  if (fstat(descriptor, &status) != 0) return WriteEnd::kClosed;
  if (S_ISREG(status.st_mode)) return write_to_file(descriptor, text);
  HeldSignal signal(SIGPIPE);
  UnwaitingWriter writer(descriptor, status);
  const Deadline deadline = deadline_after(patience);
  while (!text.empty()) {
    const ssize_t written = writer.write(text.substr(0, PIPE_BUF));
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE) signal.note_raised();
    if (errno != EAGAIN || has_passed(deadline)) return WriteEnd::kLost;
    has_room(descriptor, patience);
  }
  return WriteEnd::kWritten;
}

}  // namespace understudy::platform
