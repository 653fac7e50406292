// SPDX-License-Identifier: Apache-2.0
#include "support/private_server.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "support/fail.h"

namespace bench {

namespace {

class Directory {
 public:
  Directory() {
    require(mkdtemp(path_.data()) != nullptr, "mkdtemp");
    setenv("UNDERSTUDY_RUNTIME_DIR", path_.c_str(), 1);
  }
  ~Directory() {
    if (getpid() != maker_) return;  // a child, which may end before its parent
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/dev/shm/understudy-bench-XXXXXX";
  const pid_t maker_ = getpid();
};

}  // namespace

const std::string& use_private_server() {
  static const Directory directory;
  return directory.path();
}

}  // namespace bench
