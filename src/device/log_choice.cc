// SPDX-License-Identifier: Apache-2.0
#include "device/log_choice.h"

#include <array>
#include <string>
#include <utility>

#include "platform/text_file.h"

namespace understudy {

std::optional<LogLevel> parse_log_level(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, LogLevel>, 4> kLevels = {
      {{"off", LogLevel::kOff},
       {"error", LogLevel::kError},
       {"warn", LogLevel::kWarn},
       {"call", LogLevel::kCall}}};
  for (const auto& [name, level] : kLevels) {
    if (name == text) return level;
  }
  return std::nullopt;
}

LogChoice ascend_log_choice() {
  constexpr std::array<LogLevel, 5> kLevels = {LogLevel::kCall, LogLevel::kCall, LogLevel::kWarn,
                                               LogLevel::kError, LogLevel::kOff};
  const std::string level =
      platform::environment_variable("ASCEND_GLOBAL_LOG_LEVEL").value_or(std::string());
  const bool is_printed = platform::environment_variable("ASCEND_SLOG_PRINT_TO_STDOUT") == "1";
  if (!is_printed || level.size() != 1 || level[0] < '0' || level[0] > '4') return {};
  return {kLevels.at(static_cast<size_t>(level[0] - '0')), LogStream::kStandardOutput, {}};
}

LogChoice environment_log_choice() {
  const std::optional<std::string> level = platform::environment_variable("UNDERSTUDY_LOG");
  if (!level || level->empty()) return ascend_log_choice();
  return {parse_log_level(*level).value_or(LogLevel::kError), LogStream::kStandardError, {}};
}

}  // namespace understudy
