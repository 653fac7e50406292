// SPDX-License-Identifier: Apache-2.0
#include "device/log_choice.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace understudy {
namespace {

using Variables = std::map<std::string, std::string>;

// Exactly these variables about logs while this lives.
class LogVariables {
 public:
  explicit LogVariables(const Variables& wanted) {
    clear();
    for (const auto& [name, value] : wanted) setenv(name.c_str(), value.c_str(), 1);
  }
  ~LogVariables() { clear(); }
  LogVariables(const LogVariables&) = delete;
  LogVariables& operator=(const LogVariables&) = delete;

 private:
  static void clear() {
    for (const char* name :
         {"UNDERSTUDY_LOG", "ASCEND_GLOBAL_LOG_LEVEL", "ASCEND_SLOG_PRINT_TO_STDOUT"}) {
      unsetenv(name);
    }
  }
};

TEST(LogLevel, HasFourNames) {
  EXPECT_EQ(parse_log_level("off"), LogLevel::kOff);
  EXPECT_EQ(parse_log_level("error"), LogLevel::kError);
  EXPECT_EQ(parse_log_level("warn"), LogLevel::kWarn);
  EXPECT_EQ(parse_log_level("call"), LogLevel::kCall);
  for (const char* text : {"", "ERROR", "unknown", "3", "error "}) {
    EXPECT_EQ(parse_log_level(text), std::nullopt) << text;
  }
}

TEST(AscendLogChoice, TakesItsLevelFromTheNumber) {
  const std::map<std::string, LogLevel> levels = {{"0", LogLevel::kCall},
                                                  {"1", LogLevel::kCall},
                                                  {"2", LogLevel::kWarn},
                                                  {"3", LogLevel::kError},
                                                  {"4", LogLevel::kOff}};
  for (const auto& [number, level] : levels) {
    const LogVariables set(
        {{"ASCEND_GLOBAL_LOG_LEVEL", number}, {"ASCEND_SLOG_PRINT_TO_STDOUT", "1"}});
    EXPECT_EQ(ascend_log_choice(), (LogChoice{level, LogStream::kStandardOutput, {}})) << number;
  }
}

TEST(AscendLogChoice, IsNothingUnlessLinesAreToBePrinted) {
  for (const Variables& variables :
       {Variables{},
        {{"ASCEND_GLOBAL_LOG_LEVEL", "0"}},
        {{"ASCEND_SLOG_PRINT_TO_STDOUT", "1"}},
        {{"ASCEND_GLOBAL_LOG_LEVEL", "0"}, {"ASCEND_SLOG_PRINT_TO_STDOUT", "0"}},
        {{"ASCEND_GLOBAL_LOG_LEVEL", "5"}, {"ASCEND_SLOG_PRINT_TO_STDOUT", "1"}},
        {{"ASCEND_GLOBAL_LOG_LEVEL", "03"}, {"ASCEND_SLOG_PRINT_TO_STDOUT", "1"}}}) {
    const LogVariables set(variables);
    EXPECT_EQ(ascend_log_choice(), LogChoice());
  }
}

TEST(EnvironmentLogChoice, PrefersTheProjectsOwnVariable) {
  const LogVariables set({{"UNDERSTUDY_LOG", "warn"},
                          {"ASCEND_GLOBAL_LOG_LEVEL", "0"},
                          {"ASCEND_SLOG_PRINT_TO_STDOUT", "1"}});
  EXPECT_EQ(environment_log_choice(), (LogChoice{LogLevel::kWarn, LogStream::kStandardError, {}}));
}

TEST(EnvironmentLogChoice, OfAWrongLevelTellsErrors) {
  const LogVariables set(Variables{{"UNDERSTUDY_LOG", "loud"}});
  EXPECT_EQ(environment_log_choice().level, LogLevel::kError);
}

TEST(EnvironmentLogChoice, IsThatOfTheHardwareWhereTheVariableIsEmpty) {
  const LogVariables set({{"UNDERSTUDY_LOG", ""},
                          {"ASCEND_GLOBAL_LOG_LEVEL", "3"},
                          {"ASCEND_SLOG_PRINT_TO_STDOUT", "1"}});
  EXPECT_EQ(environment_log_choice(),
            (LogChoice{LogLevel::kError, LogStream::kStandardOutput, {}}));
}

}  // namespace
}  // namespace understudy
