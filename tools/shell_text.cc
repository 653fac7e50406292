// SPDX-License-Identifier: Apache-2.0
#include "tools/shell_text.h"

namespace understudy::command {

namespace {

// Between single quotes every shell takes all characters as they are, but for a few of its own.
std::string_view escaped(Shell shell, char letter) {
  switch (shell) {
    case Shell::kPosix:
      if (letter == '\'') return "'\\''";
      break;
    case Shell::kFish:
      if (letter == '\'') return "\\'";
      if (letter == '\\') return "\\\\";
      break;
    case Shell::kCsh:  // its history and its line ends are not quoted by quotes
      if (letter == '\'') return "'\\''";
      if (letter == '!') return "\\!";
      if (letter == '\n') return "\\\n";
      break;
  }
  return {};
}

std::string quoted(Shell shell, std::string_view text) {
  std::string result = "'";
  for (const char letter : text) {
    const std::string_view replacement = escaped(shell, letter);
    if (replacement.empty()) {
      result += letter;
    } else {
      result += replacement;
    }
  }
  return result + "'";
}

}  // namespace

std::string assignment(Shell shell, std::string_view name,
                       const std::optional<std::string>& value) {
  const std::string variable(name);
  switch (shell) {
    case Shell::kPosix:
      return value ? "export " + variable + "=" + quoted(shell, *value) : "unset " + variable;
    case Shell::kFish:
      return value ? "set -gx " + variable + " " + quoted(shell, *value) : "set -e " + variable;
    case Shell::kCsh:
      return value ? "setenv " + variable + " " + quoted(shell, *value) + ";"
                   : "unsetenv " + variable + ";";
  }
  return {};
}

std::string path_extension(Shell shell, const std::vector<std::string>& entries,
                           std::string_view usual_folders) {
  const bool has_words =
      shell != Shell::kPosix;  // fish and csh have a list of words, not of colons
  std::string list;
  for (const std::string& entry : entries) list += quoted(shell, entry) + (has_words ? " " : ":");
  switch (shell) {
    case Shell::kPosix:
      return "export PATH=" + list + "\"${PATH:-" + std::string(usual_folders) + "}\"";
    case Shell::kFish:
      return "set -gx PATH " + list + "$PATH";
    case Shell::kCsh:  // sets PATH as well
      return "set path = ( " + list + "$path:q );";
  }
  return {};
}

}  // namespace understudy::command
