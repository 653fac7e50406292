// SPDX-License-Identifier: Apache-2.0
#include "observe/finding_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace understudy {
namespace {

Finding finding_with(const std::string& sentence) {
  Finding finding;
  finding.check = Check::kLeaks;
  finding.sentence = sentence;
  finding.notes.push_back({"created", {}});
  return finding;
}

TEST(FindingText, PlainTextHasNoColors) {
  EXPECT_EQ(text_of(finding_with("a stream is left"), Colors::kNone),
            "understudy: leaks: a stream is left\n  created\n");
  EXPECT_NE(text_of(finding_with("a stream is left"), Colors::kTerminal).find("\x1b["),
            std::string::npos);
}

TEST(FindingText, JsonKeepsWhatProgramsName) {
  const std::vector<Finding> findings = {finding_with("a \"b\" \\ c\nd\x01")};
  const std::string json = json_of({findings, CheckSet::all(), 2, 42});
  EXPECT_NE(json.find(R"("sentence": "a \"b\" \\ c\u000ad\u0001")"), std::string::npos) << json;
  EXPECT_NE(json.find("\"suppressed\": 2"), std::string::npos);
}

TEST(FindingText, JunitHasACaseForEachChosenCheck) {
  const std::vector<Finding> findings = {finding_with("a < b & \"c\"")};
  const std::string both = junit_of({findings, CheckSet::all(), 0, 1});
  const std::string counts = "tests=\"" + std::to_string(kCheckNames.size()) + "\" failures=\"1\"";
  EXPECT_NE(both.find(counts), std::string::npos) << both;
  EXPECT_NE(both.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos) << both;
  CheckSet history;
  history.add(Check::kHistory);
  const std::string one = junit_of({{}, history, 0, 1});
  EXPECT_NE(one.find("tests=\"1\" failures=\"0\""), std::string::npos) << one;
}

}  // namespace
}  // namespace understudy
