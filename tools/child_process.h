// SPDX-License-Identifier: Apache-2.0
//
// A program that runs beside this one, with all that it starts in a process group of its own. It
// dies with this process. Output goes to files. Owned by one thread; the destructor ends the
// program.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace understudy::command {

class ChildProcess {
 public:
  // Throws std::system_error if there can be no more processes. A program that cannot be started
  // ends with status 126. What it writes to standard error may go to a file of its own.
  ChildProcess(std::vector<std::string> arguments, std::vector<std::string> environment,
               const std::string& output, const std::string& errors);
  ChildProcess(std::vector<std::string> arguments, std::vector<std::string> environment,
               const std::string& output)
      : ChildProcess(std::move(arguments), std::move(environment), output, output) {}
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The wait status, once the program has ended; what it started is then ended too.
  std::optional<int> poll_end();
  // The same, for at most this time.
  std::optional<int> wait_for(std::chrono::milliseconds limit);
  // Ends it and all that it started, at once.
  void kill();

 private:
  pid_t pid_;
  std::optional<int> status_;
};

}  // namespace understudy::command
