// SPDX-License-Identifier: Apache-2.0
#include "tools/private_server.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "tools/janitor.h"

namespace understudy::command {

namespace {

// Processes listen on sockets in the directory, whose addresses hold 107 bytes (unix(7)).
constexpr size_t kLongestPath = 107 - sizeof("/process-511");

// Where a memory file system is expected, else where temporary files are.
std::optional<std::string> make_directory() {
  const char* const temporary = getenv("TMPDIR");
  for (const char* const parent : {"/dev/shm", temporary, "/tmp"}) {
    if (parent == nullptr || parent[0] != '/') continue;
    std::string path =
        std::string(parent) + "/understudy-" + std::to_string(geteuid()) + ".run-XXXXXX";
    if (path.size() > kLongestPath) continue;
    if (mkdtemp(path.data()) != nullptr) return path;  // mode 0700
  }
  return std::nullopt;
}

// While this lives, signals wait: one that ends the process must not come between a directory and
// its janitor.
class DeferredSignals {
 public:
  DeferredSignals() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~DeferredSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  DeferredSignals(const DeferredSignals&) = delete;
  DeferredSignals& operator=(const DeferredSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Result<std::string> make_private_server() {
  const DeferredSignals deferred;
  const std::optional<std::string> directory = make_directory();
  if (!directory) {
    return Error::system(ErrorCode::kOutOfResources, errno,
                         "no directory for a server can be made in /dev/shm, TMPDIR or /tmp (%s); "
                         "--join=DIR names one",
                         strerror(errno));
  }
  start_janitor(*directory);
  return *directory;
}

}  // namespace understudy::command
