// SPDX-License-Identifier: Apache-2.0
#include "platform/named_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "base/sizes.h"
#include "unit/temporary_directory.h"

namespace understudy::platform {
namespace {

TEST(NamedFile, TheNextGetsItsTurnWhileMappingsOfTheLastStay) {
  const TemporaryDirectory directory;
  const std::string path = directory.at("file");
  Result<SharedMapping> kept = SharedMapping::without_file(kNormalPage);
  {
    FileTurn first;
    ASSERT_TRUE(NamedFile::open(path, first).ok());
    kept = SharedMapping::of_file(first.file(), kNormalPage);
    ASSERT_TRUE(kept.ok());
  }
  FileTurn second;
  EXPECT_TRUE(NamedFile::open(path, second).ok());
}

// That this process has open.
size_t descriptors_of(const std::string& path) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    if (std::filesystem::read_symlink(entry, closed) == path) ++count;
  }
  return count;
}

TEST(NamedFile, IsTheOneOfThatNameWhenItsTurnComes) {
  const TemporaryDirectory directory;
  const std::string path = directory.at("file");
  std::optional<FileTurn> first(std::in_place);
  const Result<NamedFile> removed = NamedFile::open(path, *first);
  ASSERT_TRUE(removed.ok());
  std::thread waiting([&] {
    FileTurn second;
    const Result<NamedFile> file = NamedFile::open(path, second);
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(file.value().open_again().ok());
  });
  while (descriptors_of(path) < 2) std::this_thread::yield();
  ASSERT_TRUE(removed.value().remove().ok());
  first.reset();
  waiting.join();
}

}  // namespace
}  // namespace understudy::platform
