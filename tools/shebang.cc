// SPDX-License-Identifier: Apache-2.0
#include "tools/shebang.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "tools/program.h"

namespace understudy::command {

namespace {

constexpr size_t kLongestLine = 255;

bool is_regular(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// The words behind #!; none if the file does not begin so.
std::vector<std::string> first_line(const std::string& path) {
  if (!is_regular(path)) return {};  // a pipe would keep us waiting
  std::string line(kLongestLine, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(line.data(), kLongestLine);
  line.resize(static_cast<size_t>(file.gcount()));
  if (!line.starts_with("#!")) return {};
  std::istringstream text(line.substr(2, line.find('\n') - 2));
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

bool is_env(const std::string& path) { return path == "env" || path.ends_with("/env"); }

}  // namespace

bool follow_shebang(std::vector<std::string>& words) {
  std::vector<std::string> line = first_line(words.front());
  if (line.empty()) return false;
  if (is_env(line.front()) && line.size() > 1) {
    line.erase(line.begin());
    if (line.front() == "-S" && line.size() > 1) line.erase(line.begin());
    line.front() = find_program(line.front()).value_or(line.front());
  }
  words.insert(words.begin(), line.begin(), line.end());
  return true;
}

bool is_shell(const std::string& path) {
  constexpr std::string_view kShells[] = {"sh",   "bash", "dash", "ash", "ksh",
                                          "mksh", "zsh",  "fish", "csh", "tcsh"};
  const std::string name = path.substr(path.rfind('/') + 1);
  return std::find(std::begin(kShells), std::end(kShells), name) != std::end(kShells);
}

}  // namespace understudy::command
