// SPDX-License-Identifier: Apache-2.0
#include "platform/line_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/no_cancel.h"
#include "platform/fork_sentinel.h"
#include "platform/kept_errno.h"
#include "platform/memory_file.h"
#include "platform/shared_write.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

namespace {

constexpr int kGone = -1;

std::chrono::milliseconds time_of(Patience patience) {
  using namespace std::chrono_literals;
  return patience == Patience::kBrief ? 1000ms : 0ms;
}

UniqueFd open_to_append(const char* path) {
  const NoCancel no_cancel;
  // Without waiting for the reader of a pipe, and never as the terminal of this process.
  return UniqueFd(open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                       S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
}

void say_that_it_is_refused(const char* path, int number) {
  std::array<char, 512> line;
  const int length = snprintf(line.data(), line.size(),
                              "understudy: the log file %.380s cannot be opened (errno %d); its "
                              "lines go to standard error\n",
                              path, number);
  LineOutput::standard_error().write({line.data(), static_cast<size_t>(length)}, Patience::kNone);
}

}  // namespace

// An output with its path, and the one that was made before it.
struct LineOutput::Appended {
  explicit Appended(std::string_view wanted) : path(wanted), output(path.c_str()) {}

  const std::string path;
  LineOutput output;
  Appended* before = nullptr;
};

LineOutput& LineOutput::standard_error() {
  static constinit LineOutput output(STDERR_FILENO);
  return output;
}

LineOutput& LineOutput::standard_output() {
  static constinit LineOutput output(STDOUT_FILENO);
  return output;
}

LineOutput& LineOutput::appending_to(std::string_view path) {
  static constinit std::atomic<Appended*> newest{nullptr};
  Appended* fresh = nullptr;
  Appended* known = newest.load(std::memory_order_acquire);
  while (true) {
    for (Appended* each = known; each != nullptr; each = each->before) {
      if (each->path != path) continue;
      delete fresh;
      return each->output;
    }
    if (fresh == nullptr) fresh = new Appended(path);
    fresh->before = known;
    if (newest.compare_exchange_weak(known, fresh, std::memory_order_acq_rel)) return fresh->output;
  }
}

// A program that was started with a closed stream gives its number to the first file that it opens.
const bool LineOutput::looked_at_load_ = look_at_standard_streams();

bool LineOutput::look_at_standard_streams() {
  const KeptErrno kept;
  for (LineOutput* const output : {&standard_error(), &standard_output()}) {
    if (fcntl(output->descriptor_.load(), F_GETFD) < 0) output->descriptor_.store(kGone);
  }
  return true;
}

int LineOutput::descriptor() noexcept {
  const int known = descriptor_.load(std::memory_order_acquire);
  if (path_ == nullptr || names_the_file(known)) return known;
  const int again = reopen(known);
  return again >= 0 ? again : standard_error().descriptor();
}

bool LineOutput::names_the_file(int descriptor) const noexcept {
  return descriptor >= 0 &&
         identity_of_file(descriptor) == FileIdentity{file_system_.load(), inode_.load()};
}

int LineOutput::reopen(int lost) noexcept {
  UniqueFd fresh = open_to_append(path_);
  if (!fresh.valid()) {
    if (!was_refused_.exchange(true)) say_that_it_is_refused(path_, errno);
    return -1;
  }
  // A thread that sees one of these words changed and not the other opens the file once more.
  const FileIdentity identity = identity_of_file(fresh.get());
  file_system_.store(identity.file_system);
  inode_.store(identity.inode);
  close_in_fork_child(fresh.get());
  if (descriptor_.compare_exchange_strong(lost, fresh.get())) return fresh.release();
  forget_for_fork_child(fresh.get());
  return lost;  // another thread was faster
}

void LineOutput::write(std::string_view line, Patience patience) noexcept {
  const KeptErrno kept;
  const bool loses = lost_.load(std::memory_order_relaxed) != 0;
  // One thread tells of them.
  uint32_t lost = loses ? lost_.exchange(0, std::memory_order_relaxed) : 0;
  if (lost != 0) {
    lost = write_after_notice(lost, line);
  } else if (!write_now(line, loses ? Patience::kNone : patience)) {
    lost = 1;
  }
  if (lost != 0) lost_.fetch_add(lost, std::memory_order_relaxed);
}

uint32_t LineOutput::write_after_notice(uint32_t lost, std::string_view line) noexcept {
  std::array<char, PIPE_BUF> text;
  const int length = snprintf(text.data(), text.size(), "understudy: %u line%s lost: no room\n",
                              lost, lost == 1 ? " was" : "s were");
  const auto notice = static_cast<size_t>(length);
  const size_t copied = line.copy(text.data() + notice, text.size() - notice);
  if (!write_now({text.data(), notice + copied}, Patience::kNone)) return lost + 1;
  const std::string_view rest = line.substr(copied);
  return rest.empty() || write_now(rest, Patience::kNone) ? 0 : 1;
}

bool LineOutput::write_now(std::string_view line, Patience patience) noexcept {
  const int descriptor = this->descriptor();
  if (descriptor < 0) return false;
  const WriteEnd end = write_shared(descriptor, line, time_of(patience));
  if (end == WriteEnd::kClosed && path_ == nullptr) descriptor_.store(kGone);
  return end == WriteEnd::kWritten;
}

bool standard_error_has_colors() noexcept {
  const KeptErrno kept;
  const char* const refusal = getenv("NO_COLOR");
  return (refusal == nullptr || *refusal == '\0') && isatty(STDERR_FILENO) == 1;
}

}  // namespace understudy::platform
