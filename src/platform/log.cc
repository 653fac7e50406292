// SPDX-License-Identifier: Apache-2.0
#include "platform/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

namespace understudy::platform {

constinit std::atomic<LogLevel> log_level{LogLevel::kUnknown};

namespace {

// Null until a level was chosen.
constinit std::atomic<LineOutput*> log_output{nullptr};

LineOutput& output_of(const LogChoice& choice) {
  if (!choice.file.empty()) return LineOutput::appending_to(choice.file);
  return choice.stream == LogStream::kStandardOutput ? LineOutput::standard_output()
                                                     : LineOutput::standard_error();
}

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarn:
      return "warn";
    default:
      return "call";
  }
}

// A line in the making, with an end of its own however long the text is.
class Line {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_list(format, arguments);
    va_end(arguments);
  }
  [[gnu::format(printf, 2, 0)]] void add_list(const char* format, va_list arguments) {
    const size_t room = text_.size() - length_;
    const int wanted = vsnprintf(text_.data() + length_, room, format, arguments);
    length_ += std::min(static_cast<size_t>(std::max(wanted, 0)), room - 1);
  }
  void write_to(LineOutput& output, Patience patience) {
    // What programs named or threw may have lines, and this is one.
    std::replace_if(
        text_.data(), text_.data() + length_,
        [](char each) { return each == '\n' || each == '\r'; }, ' ');
    text_.at(length_++) = '\n';  // in place of the zero
    output.write({text_.data(), length_}, patience);
  }

 private:
  std::array<char, 1024> text_;
  size_t length_ = 0;
};

[[gnu::format(printf, 3, 0)]] void log_list(LogLevel level, Patience patience, const char* format,
                                            va_list arguments) {
  LineOutput* const chosen = log_output.load(std::memory_order_acquire);
  Line line;
  line.add("understudy[%d/%d] %s ", getpid(), gettid(), name_of(level));
  line.add_list(format, arguments);
  line.write_to(chosen != nullptr ? *chosen : LineOutput::standard_error(), patience);
}

}  // namespace

void begin_log(const LogChoice& choice) {
  log_output.store(&output_of(choice), std::memory_order_release);
  log_level.store(choice.level, std::memory_order_relaxed);
}

void begin_log_for_now(const LogChoice& choice) {
  // Of threads that come at once any may be the first at either: they have read the same choice. A
  // level stays unknown for none of them.
  LineOutput* none = nullptr;
  log_output.compare_exchange_strong(none, &output_of(choice));
  LogLevel unknown = LogLevel::kUnknown;
  log_level.compare_exchange_strong(unknown, choice.level);
}

void log_line(LogLevel level, Patience patience, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  log_list(level, patience, format, arguments);
  va_end(arguments);
}

void log_note(const char* format, ...) noexcept {
  if (!is_logged(LogLevel::kWarn)) return;
  va_list arguments;
  va_start(arguments, format);
  log_list(LogLevel::kWarn, Patience::kNone, format, arguments);
  va_end(arguments);
}

void say(const char* format, ...) noexcept {
  Line line;
  line.add("understudy: ");
  va_list arguments;
  va_start(arguments, format);
  line.add_list(format, arguments);
  va_end(arguments);
  line.write_to(LineOutput::standard_error(), Patience::kNone);
}

}  // namespace understudy::platform
