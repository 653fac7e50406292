// SPDX-License-Identifier: Apache-2.0
#include "device/config_names.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace understudy {
namespace {

using Sentences = std::vector<std::string>;

// A variable of the environment while this lives.
class SetVariable {
 public:
  explicit SetVariable(std::string name, const char* value = "1") : name_(std::move(name)) {
    setenv(name_.c_str(), value, 1);
  }
  ~SetVariable() { unsetenv(name_.c_str()); }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  const std::string name_;
};

TEST(NearestConfigKey, IsTheOneWithTheFewestSlips) {
  EXPECT_EQ(nearest_config_key("memroy").name, "memory");
  EXPECT_EQ(nearest_config_key("NORMAL_MEMRY").name, "normal_memory");
  EXPECT_EQ(nearest_config_key("produkt").name, "product");
  EXPECT_EQ(nearest_config_key("logfile").name, "log_file");
}

TEST(NearestConfigKey, IsSomethingForEveryName) {
  EXPECT_FALSE(nearest_config_key("").name.empty());
  EXPECT_FALSE(nearest_config_key(std::string(1 << 20, 'x')).name.empty());
}

TEST(LikelyConfigKey, IsNoneIfTheNameIsAnotherWord) {
  ASSERT_NE(likely_config_key("posion"), nullptr);
  EXPECT_EQ(likely_config_key("posion")->name, "poison");
  EXPECT_EQ(likely_config_key("greeting"), nullptr);
  EXPECT_EQ(likely_config_key(""), nullptr);
}

TEST(UnknownVariables, NameWhatWasLikelyMeant) {
  const SetVariable wrong("UNDERSTUDY_MEMROY");
  EXPECT_EQ(unknown_variables(),
            Sentences{"UNDERSTUDY_MEMROY is not a setting; did you mean UNDERSTUDY_MEMORY?"});
}

TEST(UnknownVariables, AreNamedWithoutAGuessWhereThereIsNone) {
  const SetVariable wrong("UNDERSTUDY_FAVORITE_COLOR");
  EXPECT_EQ(unknown_variables(), Sentences{"UNDERSTUDY_FAVORITE_COLOR is not a setting"});
}

TEST(UnknownVariables, AreNotThoseThatAreKnown) {
  const SetVariable key("UNDERSTUDY_LOG_FILE", "/tmp/log");
  const SetVariable file("UNDERSTUDY_CONFIG");
  const SetVariable test("UNDERSTUDY_TEST_ANYTHING");
  const SetVariable storm("UNDERSTUDY_STORM_SEED");
  const SetVariable other("UNDERSTUDYMEMORY");
  const SetVariable empty("UNDERSTUDY_MEMROY", "");
  EXPECT_EQ(unknown_variables(), Sentences());
}

TEST(UnknownVariables, ReachTheTerminalWithoutCommandsForIt) {
  const SetVariable wrong("UNDERSTUDY_\x1b[31mX\n" + std::string(1000, 'Y'));
  const Sentences found = unknown_variables();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].substr(0, 18), "UNDERSTUDY_?[31mX?");
  EXPECT_LT(found[0].size(), 200U);
}

}  // namespace
}  // namespace understudy
