// SPDX-License-Identifier: Apache-2.0
#include "device/config_nesting.h"

#include <gtest/gtest.h>

#include <string>

namespace understudy {
namespace {

TEST(TomlNesting, OrdinaryTextHasNone) {
  EXPECT_EQ(toml_nesting(""), 0u);
  EXPECT_EQ(toml_nesting("product = \"a3\"\ndevices = 2\n"), 0u);
  EXPECT_EQ(toml_nesting("a = 1.5\n"), 1u);
}

TEST(TomlNesting, PartsOfKeysCount) {
  EXPECT_EQ(toml_nesting("a.b.c = 1\n"), 2u);
  EXPECT_EQ(toml_nesting("[a.b.c.d]\n"), 3u);
  EXPECT_EQ(toml_nesting("a . \"b.c\" . 'd.e' = 1"), 2u);
  EXPECT_EQ(toml_nesting("x = { a.b.c.d = 1, e.f = 2 }"), 3u);
}

TEST(TomlNesting, BracketsCount) {
  EXPECT_EQ(toml_nesting("a = [[[1], [2]], [3]]"), 3u);
  EXPECT_EQ(toml_nesting("a = {b = {c = {}}}"), 3u);
  EXPECT_EQ(toml_nesting("]]]]}}"), 0u);
}

TEST(TomlNesting, StringsAndCommentsDoNotCount) {
  EXPECT_EQ(toml_nesting("a = \"/x.y.z.[[[[\" # ....[[[\n"), 0u);
  EXPECT_EQ(toml_nesting("a = \"\\\"...[\"\n"), 0u);
  EXPECT_EQ(toml_nesting("a = '\\'\n"), 0u);
  EXPECT_EQ(toml_nesting("a = \"\"\"\n....\"[[[\n\"\"\"\n"), 0u);
  EXPECT_EQ(toml_nesting("a = '''\n....'[[[\n'''\n"), 0u);
}

// What comes behind a string that does not end is looked at.
TEST(TomlNesting, StringThatDoesNotEndHidesNothing) {
  EXPECT_EQ(toml_nesting("a = \"x\nb.c.d = 1\n"), 2u);
  EXPECT_EQ(toml_nesting("\""), 0u);
  EXPECT_EQ(toml_nesting("\"\\"), 0u);
  EXPECT_EQ(toml_nesting("'''"), 0u);
}

}  // namespace
}  // namespace understudy
