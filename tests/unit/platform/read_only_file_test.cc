// SPDX-License-Identifier: Apache-2.0
#include "platform/read_only_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "platform/system_number.h"
#include "unit/expect_result.h"
#include "unit/temporary_directory.h"

namespace understudy::platform {
namespace {

class ReadOnlyFileTest : public testing::Test {
 protected:
  std::string make_file(const std::string& content) const {
    const std::string path = directory_.at("file");
    std::ofstream(path) << content;
    return path;
  }

  TemporaryDirectory directory_;
  std::array<std::byte, 4> bytes_{};
};

TEST_F(ReadOnlyFileTest, GivesTheBytesAtAnOffset) {
  const ReadOnlyFile file = value_of(ReadOnlyFile::open(make_file("0123456789")));
  ASSERT_TRUE(file.read_at(3, bytes_));
  EXPECT_EQ(memcmp(bytes_.data(), "3456", 4), 0);
  EXPECT_TRUE(file.read_at(6, bytes_));
  EXPECT_TRUE(file.read_at(100, {}));
}

TEST_F(ReadOnlyFileTest, BytesThatAreNotThereAreAnAnswer) {
  const std::string path = make_file("0123456789");
  const ReadOnlyFile file = value_of(ReadOnlyFile::open(path));
  EXPECT_FALSE(file.read_at(7, bytes_));
  EXPECT_FALSE(file.read_at(1000, bytes_));
  std::filesystem::resize_file(path, 2);
  EXPECT_FALSE(file.read_at(0, bytes_));
}

TEST_F(ReadOnlyFileTest, OtherThingsThanFilesAreRefused) {
  const Result<ReadOnlyFile> nothing = ReadOnlyFile::open(directory_.at("nothing"));
  ASSERT_FALSE(nothing.ok());
  EXPECT_TRUE(means_absent(nothing.error()));
  const Result<ReadOnlyFile> below = ReadOnlyFile::open(make_file("") + "/below");
  ASSERT_FALSE(below.ok());
  EXPECT_TRUE(means_absent(below.error()));
  EXPECT_FALSE(ReadOnlyFile::open(directory_.path()).ok());
  ASSERT_EQ(mkfifo(directory_.at("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(ReadOnlyFile::open(directory_.at("pipe")).ok());
  std::filesystem::create_symlink(directory_.at("file"), directory_.at("link"));
  EXPECT_FALSE(ReadOnlyFile::open(directory_.at("link")).ok());
}

}  // namespace
}  // namespace understudy::platform
