// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "observe/check.h"

namespace understudy {
namespace {

TEST(CheckSet, ReadsLists) {
  EXPECT_TRUE(CheckSet::parse("off")->empty());
  EXPECT_EQ(CheckSet::parse("on")->bits(), CheckSet::mistakes().bits());
  const CheckSet leaks = CheckSet::parse("leaks").value();
  EXPECT_TRUE(leaks.has(Check::kLeaks));
  EXPECT_FALSE(leaks.has(Check::kHistory));
  EXPECT_EQ(CheckSet::parse("leaks,history")->bits(), CheckSet::parse("history,leaks")->bits());
}

TEST(CheckSet, RefusesWhatIsNoList) {
  for (const char* const text :
       {"", ",", "leaks,", ",leaks", "leak", "leaks history", "on,leaks"}) {
    EXPECT_FALSE(CheckSet::parse(text)) << text;
  }
}

TEST(CheckSet, AllowedNamesEveryCheck) {
  for (const std::string_view name : kCheckNames) {
    EXPECT_NE(CheckSet::allowed().find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace understudy
