// SPDX-License-Identifier: Apache-2.0
//
// The log of the process: what is told of calls and tasks, and of what the library does without, as
// it happens. One level and one output per process; both change when the configuration is known.
// A line never fails, takes no lock and no heap memory. Any thread may call anything.
//
//   understudy[1200/1207] error 107000 aclrtFree: devPtr is NULL     level, then what is told
//   understudy: two copies of the library are loaded                 what is told without a log too
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "platform/line_output.h"

namespace understudy::platform {

// Each tells what those before it tell. A level that is not known yet is the last, so that one
// comparison shows whether a call is to be told of or the level to be found out.
enum class LogLevel : uint8_t { kOff, kError, kWarn, kCall, kUnknown };

enum class LogStream : uint8_t { kStandardError, kStandardOutput };

struct LogChoice {
  LogLevel level = LogLevel::kOff;
  LogStream stream = LogStream::kStandardError;
  std::string file;  // appended to; empty: the stream

  friend bool operator==(const LogChoice&, const LogChoice&) = default;
};

extern constinit std::atomic<LogLevel> log_level;

// The choice of the configuration. May throw std::bad_alloc, and changes nothing then.
void begin_log(const LogChoice& choice);
// The same for a choice that may be a wrong guess: changes nothing that was chosen before. The
// level is known afterwards.
void begin_log_for_now(const LogChoice& choice);

inline bool is_logged(LogLevel level) {
  const LogLevel chosen = log_level.load(std::memory_order_relaxed);
  return chosen >= level && chosen != LogLevel::kUnknown;
}

// One line of the log: the level's name and the text, newlines replaced. Whether the level is
// logged is up to the caller.
[[gnu::format(printf, 3, 4)]] void log_line(LogLevel level, Patience patience, const char* format,
                                            ...) noexcept;
// What the library does without, such as a limit of the host: a line of the level `warn`. The
// caller may hold locks.
[[gnu::format(printf, 1, 2)]] void log_note(const char* format, ...) noexcept;
// What must be seen even without a log: a line on standard error.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) noexcept;

}  // namespace understudy::platform
