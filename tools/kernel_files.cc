// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_files.h"

#include <cstdlib>

#include "platform/text_file.h"

namespace understudy::command {

namespace {

std::optional<uint64_t> number_at(const char* text, int base) {
  char* end = nullptr;
  const uint64_t number = strtoull(text, &end, base);
  return end == text ? std::nullopt : std::optional(number);
}

}  // namespace

std::optional<uint64_t> number_in(const std::string& path) {
  const std::optional<std::string> text = platform::read_text_file(path);
  return text ? number_at(text->c_str(), 10) : std::nullopt;
}

std::optional<uint64_t> own_status(const std::string& name, int base) {
  const std::optional<std::string> text = platform::read_text_file("/proc/self/status");
  const std::string line = "\n" + name + ":";
  const size_t at = text ? text->find(line) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  return number_at(text->c_str() + at + line.size(), base);
}

}  // namespace understudy::command
