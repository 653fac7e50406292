// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace understudy::command {

namespace {

constexpr std::chrono::seconds kPatience(2);
constexpr std::chrono::milliseconds kLiveInterval(200);
constexpr std::chrono::seconds kLineInterval(30);

// 130 s -> "2:10"
std::string clock_text(std::chrono::duration<double> time) {
  const long seconds = static_cast<long>(time.count());
  char text[32];
  snprintf(text, sizeof text, "%ld:%02ld", seconds / 60, seconds % 60);
  return text;
}

bool is_live_terminal() {
  const char* const kind = getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && kind != nullptr && std::string(kind) != "dumb";
}

}  // namespace

Progress::Progress(std::string noun, size_t total)
    : noun_(std::move(noun)),
      total_(total),
      is_terminal_(is_live_terminal()),
      start_(Clock::now()),
      next_(start_ + kPatience) {}

Progress::~Progress() {
  if (has_live_line_) fputs("\r\033[K", stderr);
}

void Progress::show(size_t done) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + (is_terminal_ ? Clock::duration(kLiveInterval) : Clock::duration(kLineInterval));
  const std::chrono::duration<double> taken = now - start_;
  std::string text = std::to_string(done) + " of " + std::to_string(total_) + " " + noun_ + ", " +
                     clock_text(taken);
  if (done > 0) {
    const double left = static_cast<double>(total_ - done) / static_cast<double>(done);
    text += ", about " + clock_text(taken * left) + " left";
  }
  fprintf(stderr, is_terminal_ ? "\r%s\033[K" : "%s\n", text.c_str());
  fflush(stderr);
  has_live_line_ = is_terminal_;
}

}  // namespace understudy::command
