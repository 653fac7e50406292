// SPDX-License-Identifier: Apache-2.0
#include "platform/text_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "unit/temporary_file.h"

namespace understudy::platform {
namespace {

TEST(TextFile, WholeContentIsReadHoweverLong) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "line " + std::to_string(i) + "\n";
  const TemporaryFile file(text);
  EXPECT_EQ(read_text_file(file.path()), text);
}

TEST(TextFile, ZeroBytesArePartOfTheContent) {
  const std::string text("a\0b", 3);
  const TemporaryFile file(text);
  EXPECT_EQ(read_text_file(file.path()), text);
}

TEST(TextFile, EmptyFileIsEmptyAndNotNothing) {
  const TemporaryFile file("");
  EXPECT_EQ(read_text_file(file.path()), "");
}

TEST(TextFile, KernelFilesAreReadAlthoughTheirSizeIsZero) {
  const std::optional<std::string> text = read_text_file("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("VmRSS:"), std::string::npos);
}

TEST(TextFile, MissingFileAndFolderAreNothing) {
  EXPECT_EQ(read_text_file("/proc/self/there-is-no-such-file"), std::nullopt);
  EXPECT_EQ(read_text_file("/proc/self"), std::nullopt);
  EXPECT_EQ(read_text_file("/tmp"), std::nullopt);
  EXPECT_EQ(read_text_file(""), std::nullopt);
}

TEST(TextFile, WhatIsNoFileIsNothingAndNobodyWaitsForIt) {
  const TemporaryFile file("");
  const std::string pipe = file.path() + "-pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_text_file(pipe), std::nullopt);
  unlink(pipe.c_str());
  EXPECT_EQ(read_text_file("/dev/zero"), std::nullopt);
}

TEST(EnvironmentVariable, UnsetIsNothingAndEmptyIsEmpty) {
  const char* const name = "UNDERSTUDY_UNIT_TEST_VARIABLE";
  unsetenv(name);
  EXPECT_EQ(environment_variable(name), std::nullopt);
  setenv(name, "", 1);
  EXPECT_EQ(environment_variable(name), "");
  setenv(name, "value", 1);
  EXPECT_EQ(environment_variable(name), "value");
  unsetenv(name);
}

TEST(EnvironmentNames, AreThoseWithTheBeginningAndAValue) {
  setenv("UNDERSTUDY_UNIT_TEST_ONE", "1", 1);
  setenv("UNDERSTUDY_UNIT_TEST_EMPTY", "", 1);
  setenv("UNDERSTUDY_UNIT_TEST_TWO", "a=b", 1);
  std::vector<std::string> found = environment_names("UNDERSTUDY_UNIT_TEST_");
  std::ranges::sort(found);
  EXPECT_EQ(found,
            (std::vector<std::string>{"UNDERSTUDY_UNIT_TEST_ONE", "UNDERSTUDY_UNIT_TEST_TWO"}));
  EXPECT_TRUE(environment_names("UNDERSTUDY_UNIT_TEST_NO_SUCH").empty());
  for (const char* name : {"ONE", "EMPTY", "TWO"}) {
    unsetenv((std::string("UNDERSTUDY_UNIT_TEST_") + name).c_str());
  }
}

}  // namespace
}  // namespace understudy::platform
