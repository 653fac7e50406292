// SPDX-License-Identifier: Apache-2.0
//
// The log lines of programs. ASCEND_GLOBAL_LOG_LEVEL says from which level on they are written
// (0 debug to 3 error, which is the default, 4 none); they go to standard error, or to standard
// output where ASCEND_SLOG_PRINT_TO_STDOUT is 1, past the buffers of the C library. Any thread may
// call anything.
#pragma once

#include <cstdint>
#include <string>

namespace understudy {

struct LogPlace {
  const char* function;
  const char* file;
  uint32_t line;
};

bool is_logged(int level);
// One line, written at once so that those of several threads do not mix.
void write_log_line(int level, const LogPlace& place, const std::string& text);

}  // namespace understudy
