// SPDX-License-Identifier: Apache-2.0
#include "observe/suppressions.h"

#include <gtest/gtest.h>

#include "unit/expect_result.h"

namespace understudy {
namespace {

TEST(Suppressions, NameAFindingByAnyOfItsTexts) {
  const Result<Suppressions> known = Suppressions::parse("leaks:kv.cc:*\n  history:Cache::*  \r\n");
  ASSERT_TRUE(known.ok());
  EXPECT_TRUE(known.value().name(Check::kLeaks, {"a sentence", "kv.cc:41"}));
  EXPECT_FALSE(known.value().name(Check::kHistory, {"a sentence", "kv.cc:41"}));
  EXPECT_TRUE(known.value().name(Check::kHistory, {"Cache::fill"}));
  EXPECT_FALSE(known.value().name(Check::kLeaks, {"my_kv.cc:41"}));
  EXPECT_FALSE(known.value().name(Check::kLeaks, {}));
}

TEST(Suppressions, StarNamesEveryCheck) {
  const Result<Suppressions> known = Suppressions::parse("*:main");
  ASSERT_TRUE(known.ok());
  EXPECT_TRUE(known.value().name(Check::kLeaks, {"main"}));
  EXPECT_TRUE(known.value().name(Check::kHistory, {"main"}));
}

TEST(Suppressions, CommentsAndEmptyLinesNameNothing) {
  const Result<Suppressions> known = Suppressions::parse("\n# leaks:*\n   \n");
  ASSERT_TRUE(known.ok());
  EXPECT_FALSE(known.value().name(Check::kLeaks, {"anything"}));
}

TEST(Suppressions, WrongLineIsNamed) {
  for (const char* const line : {"nonsense", "leaks:", "leak:main", ":main"}) {
    const Result<Suppressions> refused = Suppressions::parse(std::string("leaks:main\n") + line);
    ASSERT_FALSE(refused.ok()) << line;
    EXPECT_NE(std::string(refused.error().text()).find("line 2 "), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace understudy
