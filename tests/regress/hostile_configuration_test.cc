// SPDX-License-Identifier: Apache-2.0
//
// Faults once found in how the configuration is read: a TOML file could overflow the stack, and the
// root directory was taken for a path without a name.
#include <cstdlib>
#include <string>

#include "rules/temporary_file.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using runtime::TemporaryFile;

// The first call of a process with that file.
void expect_file_refused(const std::string& text, const char* reason) {
  const TemporaryFile file(text);
  ASSERT_EQ(setenv("UNDERSTUDY_CONFIG", file.path().c_str(), 1), 0);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_INVALID_PARAM);
  const std::string sentence = recent_error();
  EXPECT_NE(sentence.find(file.path()), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(reason), std::string::npos) << sentence;
}

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(HostileConfiguration, KeysOfVeryManyPartsAreRefused) {
  US_FRESH_PROCESS();
  constexpr size_t kParts = 50'000;
  expect_file_refused(repeated("a.", kParts) + "a = 1\n", "nested 50000 deep");
  expect_file_refused("[" + repeated("a.", kParts) + "a]\n", "nested 50000 deep");
  expect_file_refused("x = { " + repeated("'a' . ", kParts) + "a = 1 }\n", "nested 50000 deep");
  expect_file_refused("x = " + repeated("[", kParts), "nested 50000 deep");
  expect_file_refused("x = " + repeated("{a=", kParts), "nested 50000 deep");
  // Calls are served as soon as it is fixed.
  unsetenv("UNDERSTUDY_CONFIG");
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
}

TEST(HostileConfiguration, VeryLongFilesAreRefused) {
  US_FRESH_PROCESS();
  expect_file_refused(repeated("# nothing\n", 200'000), "at most 1048576");
}

TEST(HostileConfiguration, DotsInValuesAndCommentsDoNotCount) {
  US_FRESH_PROCESS();
  const std::string dots(1000, '.');
  const TemporaryFile file("# " + dots + "\nproduct = \"a3\" # " + dots + "\nsoc = \"" + dots +
                           "\"");
  ASSERT_EQ(setenv("UNDERSTUDY_CONFIG", file.path().c_str(), 1), 0);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_NE(recent_error().find("configuration key soc has the value"), std::string::npos);
}

TEST(HostileConfiguration, RootDirectoryIsNamedInTheRefusal) {
  US_FRESH_PROCESS({"UNDERSTUDY_RUNTIME_DIR", "/"});
  EXPECT_NE(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_NE(recent_error().find(" cannot be used: / "), std::string::npos);
}

}  // namespace
}  // namespace understudy_test
