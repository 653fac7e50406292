// SPDX-License-Identifier: Apache-2.0
#include "memory/sub_allocations.h"

#include <gtest/gtest.h>

namespace understudy {
namespace {

TEST(SubAllocations, FindsTheAllocationAroundAGranule) {
  SubAllocations parts(5, 300);
  EXPECT_EQ(parts.pool(), 5u);
  EXPECT_FALSE(parts.around(0));
  EXPECT_FALSE(parts.around(299));
  parts.add(0, 1);
  parts.add(3, 200);  // over several words
  parts.add(299, 1);
  EXPECT_EQ(parts.around(0)->count, 1u);
  EXPECT_FALSE(parts.around(1));
  for (const uint64_t granule : {uint64_t{3}, uint64_t{63}, uint64_t{64}, uint64_t{202}}) {
    ASSERT_TRUE(parts.around(granule)) << granule;
    EXPECT_EQ(parts.around(granule)->first, 3u);
    EXPECT_EQ(parts.around(granule)->count, 200u);
  }
  EXPECT_FALSE(parts.around(203));
  EXPECT_EQ(parts.around(299)->first, 299u);
}

TEST(SubAllocations, ForgetsWhatIsRemoved) {
  SubAllocations parts(0, 128);
  parts.add(60, 10);
  parts.remove(60);
  EXPECT_FALSE(parts.around(60));
  EXPECT_FALSE(parts.around(69));
  parts.add(60, 2);
  EXPECT_TRUE(parts.around(61));
  EXPECT_FALSE(parts.around(62));
}

}  // namespace
}  // namespace understudy
