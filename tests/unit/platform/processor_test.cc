// SPDX-License-Identifier: Apache-2.0
#include "platform/processor.h"

#include <gtest/gtest.h>

namespace understudy::platform {
namespace {

TEST(Processor, IsSaidToHaveWhatItSaysItself) {
#if defined(__x86_64__)
  EXPECT_EQ(has_avx2(), __builtin_cpu_supports("avx2") != 0);
#else
  EXPECT_FALSE(has_avx2());
  EXPECT_TRUE(has_invariant_counter());
#endif
}

}  // namespace
}  // namespace understudy::platform
