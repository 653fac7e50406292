// SPDX-License-Identifier: Apache-2.0
#include "memory/byte_kernels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

namespace understudy {
namespace {

std::vector<uint8_t> counting(size_t count) {
  std::vector<uint8_t> bytes(count);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

// Counts and alignments around the words that the loops may work in.
constexpr size_t kCounts[] = {0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127};

TEST(ByteKernels, CopyMovesExactlyTheBytesOfEveryAlignment) {
  for (const size_t count : kCounts) {
    for (size_t to = 0; to < 9; ++to) {
      for (size_t from = 0; from < 9; ++from) {
        const std::vector<uint8_t> source = counting(160);
        std::vector<uint8_t> expected(160, 0xEE);
        std::vector<uint8_t> target = expected;
        memcpy(expected.data() + to, source.data() + from, count);
        copy_bytes(target.data() + to, source.data() + from, count);
        ASSERT_EQ(target, expected) << count << " bytes from " << from << " to " << to;
      }
    }
  }
}

TEST(ByteKernels, OverlappingCopyIsAMoveInBothDirections) {
  for (const size_t count : kCounts) {
    for (size_t to = 0; to < 20; ++to) {
      for (size_t from = 0; from < 20; ++from) {
        std::vector<uint8_t> expected = counting(160);
        std::vector<uint8_t> bytes = expected;
        memmove(expected.data() + to, expected.data() + from, count);
        copy_bytes(bytes.data() + to, bytes.data() + from, count);
        ASSERT_EQ(bytes, expected) << count << " bytes from " << from << " to " << to;
      }
    }
  }
}

TEST(ByteKernels, FillSetsExactlyTheBytesOfEveryAlignment) {
  for (const uint8_t value : {uint8_t{0}, uint8_t{0x5A}, uint8_t{0xFF}}) {
    for (const size_t count : kCounts) {
      for (size_t to = 0; to < 9; ++to) {
        std::vector<uint8_t> expected = counting(160);
        std::vector<uint8_t> bytes = expected;
        memset(expected.data() + to, value, count);
        fill_bytes(bytes.data() + to, value, count);
        ASSERT_EQ(bytes, expected) << count << " bytes at " << to;
      }
    }
  }
}

}  // namespace
}  // namespace understudy
