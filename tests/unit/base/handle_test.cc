// SPDX-License-Identifier: Apache-2.0
#include "base/handle.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace understudy {
namespace {

constexpr uint32_t kMaxGeneration = (uint32_t{1} << HandleParts::kGenerationBits) - 1;

TEST(Handle, PartsComeBackAsTheyWere) {
  for (const HandleTag tag : {HandleTag::kBlock, HandleTag::kContext, HandleTag::kStream}) {
    for (const uint32_t generation : {uint32_t{0}, uint32_t{1}, kMaxGeneration}) {
      for (const uint32_t index : {uint32_t{0}, uint32_t{1}, UINT32_MAX}) {
        const HandleParts parts = HandleParts::split(HandleParts{tag, generation, index}.pack());
        EXPECT_EQ(parts.tag, tag);
        EXPECT_EQ(parts.generation, generation);
        EXPECT_EQ(parts.index, index);
      }
    }
  }
}

TEST(Handle, PartsDoNotOverlap) {
  const uint64_t tag = HandleParts{HandleTag::kBlock, 0, 0}.pack();
  const uint64_t generation = HandleParts{HandleTag{}, kMaxGeneration, 0}.pack();
  const uint64_t index = HandleParts{HandleTag{}, 0, UINT32_MAX}.pack();
  EXPECT_EQ(tag & generation, 0u);
  EXPECT_EQ(tag & index, 0u);
  EXPECT_EQ(generation & index, 0u);
}

TEST(Handle, IsNeverZeroAndNeverAnAddressOfAProgram) {
  for (const HandleTag tag : {HandleTag::kBlock, HandleTag::kContext, HandleTag::kStream}) {
    // User space ends far below, whatever the size of its addresses.
    EXPECT_GE((HandleParts{tag, 0, 0}.pack()), uint64_t{1} << 56);
  }
}

}  // namespace
}  // namespace understudy
