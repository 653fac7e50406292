// SPDX-License-Identifier: Apache-2.0
#include "runtime/application_log.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string_view>

#include "platform/line_output.h"
#include "platform/text_file.h"
#include "runtime/process.h"

namespace understudy {
namespace {

constexpr std::array<const char*, 4> kLevelNames = {"DEBUG", "INFO", "WARNING", "ERROR"};
constexpr int kErrorLevel = 3;

struct LogSettings {
  int lowest = kErrorLevel;
  platform::LineOutput* output = &platform::LineOutput::standard_error();
};

LogSettings read_log_settings() {
  LogSettings settings;
  const std::optional<std::string> level =
      platform::environment_variable("ASCEND_GLOBAL_LOG_LEVEL");
  if (level && level->size() == 1 && level->front() >= '0' && level->front() <= '4') {
    settings.lowest = level->front() - '0';
  }
  if (platform::environment_variable("ASCEND_SLOG_PRINT_TO_STDOUT") == "1") {
    settings.output = &platform::LineOutput::standard_output();
  }
  return settings;
}

// Read once; never freed.
const LogSettings& settings() {
  static constinit std::atomic<const LogSettings*> read{nullptr};
  const LogSettings* known = read.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto fresh = std::make_unique<const LogSettings>(read_log_settings());
  // Of threads that come at once any may be the first: they have read the same.
  if (!read.compare_exchange_strong(known, fresh.get())) return *known;
  return *fresh.release();
}

std::string time_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now - seconds);
  const std::time_t whole = seconds.count();
  std::tm local{};
  localtime_r(&whole, &local);
  std::array<char, 64> text{};
  const size_t length = strftime(text.data(), text.size(), "%Y-%m-%d-%H:%M:%S", &local);
  snprintf(text.data() + length, text.size() - length, ".%06d", static_cast<int>(micros.count()));
  return text.data();
}

// Of a path, what people recognise.
std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

bool is_logged(int level) {
  return level >= settings().lowest && level < static_cast<int>(kLevelNames.size());
}

void write_log_line(int level, const LogPlace& place, const std::string& text) {
  std::string line = "[";
  line.append(kLevelNames.at(static_cast<size_t>(level)))
      .append("] APP(")
      .append(std::to_string(current_process_id()))
      .append("):")
      .append(time_text())
      .append(" [")
      .append(base_name(place.file == nullptr ? "" : place.file))
      .append(":")
      .append(std::to_string(place.line))
      .append("] ")
      .append(place.function == nullptr ? "" : place.function)
      .append(": ")
      .append(text)
      .append("\n");
  settings().output->write(line, platform::Patience::kBrief);
}

}  // namespace understudy
