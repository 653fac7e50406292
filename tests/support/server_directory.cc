// SPDX-License-Identifier: Apache-2.0
#include "support/server_directory.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace understudy_test {

namespace {

// `understudy conformance` names a folder, to remove what a test that crashed has left.
std::string parent() {
  const char* named = getenv("UNDERSTUDY_TEST_DIRECTORY");
  return named == nullptr ? "/dev/shm" : named;
}

}  // namespace

ServerDirectory::ServerDirectory() : path_(parent() + "/understudy-test-XXXXXX") {
  if (mkdtemp(path_.data()) != nullptr) return;
  fprintf(stderr, "cannot make %s: %s\n", path_.c_str(), strerror(errno));
  abort();
}

ServerDirectory::~ServerDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace understudy_test
