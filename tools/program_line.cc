// SPDX-License-Identifier: Apache-2.0
#include "tools/program_line.h"

#include <algorithm>

#include "tools/command_line.h"

namespace understudy::command {

namespace {

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

// Whether the word behind an option is its value.
bool takes_next_word(const OptionSet& options, const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  return options.takes_value(word);
}

}  // namespace

std::vector<std::string> split_off_program(const OptionSet& options,
                                           std::vector<std::string>& arguments) {
  size_t own = 1;  // the subcommand
  while (own < arguments.size() && is_option(arguments[own]) && arguments[own] != "--") {
    own += takes_next_word(options, arguments[own]) ? 2 : 1;
  }
  own = std::min(own, arguments.size());
  const bool is_marked = own < arguments.size() && arguments[own] == "--";
  const auto end = arguments.begin() + static_cast<std::ptrdiff_t>(own);
  std::vector<std::string> program(end + (is_marked ? 1 : 0), arguments.end());
  arguments.erase(end, arguments.end());
  return program;
}

std::vector<std::string> split_off_marked_program(std::vector<std::string>& arguments) {
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return {};
  std::vector<std::string> program(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return program;
}

}  // namespace understudy::command
