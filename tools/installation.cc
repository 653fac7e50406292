// SPDX-License-Identifier: Apache-2.0
#include "tools/installation.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace understudy::command {

namespace {

std::filesystem::path running_file() {
  std::error_code unknown;
  const std::filesystem::path link = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) return link;
  // Without /proc: the path that the kernel was given.
  const auto* const given = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return given == nullptr ? "" : std::filesystem::canonical(given, unknown);
}

}  // namespace

Installation Installation::of_this_command() {
  return Installation(running_file().parent_path().parent_path().string());
}

bool Installation::has_library() const { return access(library().c_str(), R_OK) == 0; }

}  // namespace understudy::command
