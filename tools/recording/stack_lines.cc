// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/stack_lines.h"

#include <algorithm>
#include <charconv>

#include "tools/recording/valid_text.h"

namespace understudy::command {

namespace {

constexpr std::string_view kDecimal = "0123456789";

// "kv.cc:41"
bool parse_place(std::string_view text, StackLine& line) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), line.line);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    line.line = 0;
    return false;
  }
  line.file = text.substr(0, colon);
  return true;
}

// "kv.py:41 fill": the place ends at the first space behind a number.
bool parse_python_line(std::string_view text, StackLine& line) {
  for (size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    const size_t end = text.find_first_not_of(kDecimal, colon + 1);
    if (end == std::string_view::npos || end == colon + 1 || text[end] != ' ') continue;
    if (!parse_place(text.substr(0, end), line)) return false;
    line.function = text.substr(end + 1);
    return !line.function.empty();
  }
  return false;
}

}  // namespace

StackLine parse_stack_line(std::string_view text) {
  StackLine line;
  const size_t at = text.rfind(" at ");
  if (at != std::string_view::npos && parse_place(text.substr(at + 4), line)) {
    line.function = text.substr(0, at);
    return line;
  }
  if (parse_python_line(text, line)) return line;
  line = {};
  if (parse_place(text, line)) return line;
  return {text, {}, 0};
}

std::string label_of(const StackLine& line) {
  std::string label(line.function);
  if (line.file.empty()) return label;
  if (!label.empty()) label += " (";
  label += line.file;
  label += ':';
  append_number(label, line.line);
  if (!line.function.empty()) label += ')';
  return label;
}

std::vector<StackLine> stack_lines(const Recording& recording, uint32_t stack, uint32_t call) {
  constexpr size_t kMostLines = 256;
  std::vector<StackLine> lines;
  if (stack != kNone) {
    std::string_view rest = recording.stacks[stack];
    while (!rest.empty() && lines.size() < kMostLines) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (end != 0) lines.push_back(parse_stack_line(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (lines.empty() && call != kNone) {
    lines.push_back({recording.functions[recording.calls[call].function].name, {}, 0});
  }
  return lines;
}

}  // namespace understudy::command
