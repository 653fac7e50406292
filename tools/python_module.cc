// SPDX-License-Identifier: Apache-2.0
#include "tools/python_module.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "platform/unique_fd.h"

namespace understudy::command {

namespace {

constexpr std::string_view kPython = "python";
constexpr const char* kQuestion =
    "import importlib.util, os, sys\n"
    "spec = importlib.util.find_spec('acl')\n"
    "places = [*(getattr(spec, 'submodule_search_locations', None) or ()), '']\n"
    "found = (spec.origin or places[0]) if spec else ''\n"
    "for text in (os.path.realpath('/proc/self/exe'), found):\n"
    "    sys.stdout.buffer.write(os.fsencode(text) + bytes(1))\n";

// The options of the interpreter that decide where it looks for modules: -I, -E, -s, -S.
std::vector<std::string> isolation_options(const std::vector<std::string>& words) {
  std::vector<std::string> options;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_group =
        word.size() > 1 && word[0] == '-' && word[1] != '-' && word[1] != 'c' && word[1] != 'm';
    if (!is_group) break;
    if (word.find_first_not_of("IEsS", 1) == std::string::npos) options.push_back(word);
  }
  return options;
}

std::string output_of(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const platform::UniqueFd output(ends[0]);
  platform::UniqueFd input(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDERR_FILENO);
    dup2(input.get(), STDOUT_FILENO);
    execvp(arguments.front(), arguments.data());
    _exit(EXIT_FAILURE);
  }
  input = platform::UniqueFd();
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while ((got = read(output.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace

bool is_python(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.starts_with(kPython) &&
         name.find_first_not_of("0123456789.dmt", kPython.size()) == std::string::npos;
}

std::optional<PythonAnswer> find_acl_module(const std::vector<std::string>& words) {
  std::vector<std::string> command = {words.front()};
  for (const std::string& option : isolation_options(words)) command.push_back(option);
  command.insert(command.end(), {"-c", kQuestion});
  const std::string text = output_of(command);
  const size_t end = text.find('\0');
  if (end == std::string::npos) return std::nullopt;
  return PythonAnswer{text.substr(0, end), std::string(text.c_str() + end + 1)};
}

}  // namespace understudy::command
