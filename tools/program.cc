// SPDX-License-Identifier: Apache-2.0
#include "tools/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/command.h"

namespace understudy::command {

namespace {

bool is_file(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string search_path() {
  const char* const path = getenv("PATH");
  return path != nullptr ? path : "/bin:/usr/bin";  // as execvp(3)
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), F_OK) == 0 ? std::optional(name) : std::nullopt;
  }
  std::optional<std::string> found;
  const std::string path = search_path();
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = end == begin ? "." : path.substr(begin, end - begin);
    begin = end + 1;
    const std::string candidate = folder + "/" + name;
    if (!is_file(candidate)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    if (!found) found = candidate;
  }
  return found;
}

int become(const std::vector<std::string>& program) {
  std::vector<char*> arguments;
  for (const std::string& word : program) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  const int number = errno;
  const std::optional<std::string> file = find_program(program.front());
  if (!file) {
    fprintf(stderr, "understudy run: %s: not found\n", program.front().c_str());
    return kNotFound;
  }
  if (number == ENOENT) {
    fprintf(stderr, "understudy run: %s: the interpreter that it names does not exist\n",
            file->c_str());
  } else {
    fprintf(stderr, "understudy run: %s: cannot be executed (%s)\n", file->c_str(),
            strerror(number));
  }
  return kNotExecutable;
}

}  // namespace understudy::command
