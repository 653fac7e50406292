// SPDX-License-Identifier: Apache-2.0
//
// A directory of its own for the software NPUs of a test, so that tests that run at the same time
// do not see each other's memory. Removed with everything in it.
#pragma once

#include <string>

namespace understudy_test {

class ServerDirectory {
 public:
  ServerDirectory();
  ~ServerDirectory();
  ServerDirectory(const ServerDirectory&) = delete;
  ServerDirectory& operator=(const ServerDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline constexpr const char* kServerVariable = "UNDERSTUDY_RUNTIME_DIR";

}  // namespace understudy_test
