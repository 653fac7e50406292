// SPDX-License-Identifier: Apache-2.0
#include "base/zeroed_array.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace understudy {
namespace {

TEST(ZeroedArray, IsZeroEverywhereAndKeepsWhatIsWritten) {
  constexpr size_t kCount = size_t{1} << 20;
  ZeroedArray<uint64_t> array(kCount);
  EXPECT_EQ(array[0], 0u);
  EXPECT_EQ(array[kCount - 1], 0u);
  array[kCount / 2] = 7;
  EXPECT_EQ(array[kCount / 2], 7u);
  EXPECT_EQ(array[kCount / 2 + 1], 0u);
}

}  // namespace
}  // namespace understudy
