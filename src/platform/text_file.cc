// SPDX-License-Identifier: Apache-2.0
#include "platform/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/no_cancel.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

namespace {
// No configuration is that long, and no file of the kernel that is read here.
constexpr size_t kMaxText = size_t{64} << 20;
}  // namespace

std::optional<std::string> read_text_file(const std::string& path) {
  const NoCancel no_cancel;
  // Without waiting: a pipe without a writer would never open.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!file.valid() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got == 0) return text;
    if (text.size() > kMaxText) return std::nullopt;
    if (got > 0) {
      text.append(buffer.data(), static_cast<size_t>(got));
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

Result<void> replace_text_file(const std::string& path, const std::string& text) {
  const NoCancel no_cancel;
  const auto refused = [&] {
    return Error::system(ErrorCode::kNoPermission, errno, "the file %.200s cannot be written",
                         path.c_str());
  };
  const std::string draft = path + "." + std::to_string(getpid()) + ".part";
  const UniqueFd file(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                           S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
  if (!file.valid()) return refused();
  for (size_t written = 0; written < text.size();) {
    const ssize_t wrote = write(file.get(), text.data() + written, text.size() - written);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const Error error = refused();
      unlink(draft.c_str());
      return error;
    }
    written += static_cast<size_t>(wrote);
  }
  if (rename(draft.c_str(), path.c_str()) == 0) return {};
  const Error error = refused();
  unlink(draft.c_str());
  return error;
}

std::optional<std::chrono::system_clock::time_point> modified_at(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  const auto since = std::chrono::seconds(status.st_mtim.tv_sec) +
                     std::chrono::nanoseconds(status.st_mtim.tv_nsec);
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(since));
}

std::optional<std::string> environment_variable(const char* name) {
  const char* value = getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::vector<std::string> environment_names(std::string_view beginning) {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const size_t end = variable.find('=');
    if (!variable.starts_with(beginning) || end >= variable.size() - 1) continue;
    names.emplace_back(variable.substr(0, end));
  }
  return names;
}

}  // namespace understudy::platform
