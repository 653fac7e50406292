// SPDX-License-Identifier: Apache-2.0
#include "tools/work_directory.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace understudy::command {

WorkDirectory::WorkDirectory(const std::string& purpose) {
  for (const char* parent : {static_cast<const char*>(getenv("TMPDIR")), "/dev/shm", "/tmp"}) {
    if (parent == nullptr) continue;
    std::string name = std::string(parent) + "/understudy-" + purpose + "-XXXXXX";
    if (mkdtemp(name.data()) != nullptr) {
      path_ = name;
      // Tests that give up root's rights still reach what is theirs in it.
      std::error_code ignored;
      std::filesystem::permissions(path_, std::filesystem::perms(0711), ignored);
      return;
    }
  }
  throw std::system_error(errno, std::generic_category(),
                          "no directory can be made in TMPDIR, /dev/shm or /tmp");
}

WorkDirectory::~WorkDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace understudy::command
