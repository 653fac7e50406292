// SPDX-License-Identifier: Apache-2.0
//
// A file with a given text that disappears with its owner.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace understudy_test::runtime {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(testing::TempDir() + "understudy_test_XXXXXX") {
    const int descriptor = mkstemp(path_.data());
    EXPECT_GE(descriptor, 0) << path_;
    EXPECT_EQ(write(descriptor, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(descriptor);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A directory in the place of a file, which nobody can read as one (not even root).
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(testing::TempDir() + "understudy_test_XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TemporaryDirectory() { rmdir(path_.c_str()); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace understudy_test::runtime
