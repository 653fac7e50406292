// SPDX-License-Identifier: Apache-2.0
//
// What tests of the log share: its lines, and processes that are forked to lose descriptors.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/rule_test.h"
#include "support/server_directory.h"

namespace understudy_test::logged {

using Lines = std::vector<std::string>;

inline Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

// A file beside the directory of the server, removed with the object.
class OwnFile {
 public:
  explicit OwnFile(const std::string& name)
      : path_(std::string(getenv(kServerVariable)) + "-" + name) {}
  ~OwnFile() { unlink(path_.c_str()); }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;

  const std::string& path() const { return path_; }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  Lines lines() const { return lines_of(content()); }

 private:
  const std::string path_;
};

// Chooses the log of this process, before its first call.
inline void choose_log(const char* level, const OwnFile& file) {
  setenv("UNDERSTUDY_LOG", level, 1);
  setenv("UNDERSTUDY_LOG_FILE", file.path().c_str(), 1);
}

inline std::string prefix() {
  return "understudy[" + std::to_string(getpid()) + "/" + std::to_string(gettid()) + "] ";
}

inline std::string stderr_of(const std::function<void()>& body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

// A call that fails without a device, and what the log tells of it.
inline void fail_once() { EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM); }
inline const std::regex& failed_free() {
  static const std::regex pattern(
      R"(understudy\[\d+/\d+\] error 100000 aclrtFree: devPtr is NULL)");
  return pattern;
}

// Runs the body in a child of fork. What it EXPECTs counts here; a hang is a failure.
inline void in_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "wait status of the child";
}

}  // namespace understudy_test::logged
