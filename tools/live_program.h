// SPDX-License-Identifier: Apache-2.0
//
// A program that `understudy live` runs beside itself and that is recorded: as `understudy run`
// runs it, on this terminal and in this process group.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace understudy::command {

class LiveProgram {
 public:
  // `words` are those of `understudy run`. The program gets the signal mask `mask`. Throws
  // std::system_error if there can be no more processes.
  LiveProgram(const std::vector<std::string>& words, const std::string& recording,
              const sigset_t& mask);
  LiveProgram(const LiveProgram&) = delete;
  LiveProgram& operator=(const LiveProgram&) = delete;

  // Its wait status, once it has ended.
  std::optional<int> poll_end();
  void send(int signal) const;

 private:
  pid_t pid_;
  std::optional<int> status_;
};

}  // namespace understudy::command
