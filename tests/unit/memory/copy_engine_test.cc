// SPDX-License-Identifier: Apache-2.0
#include "memory/copy_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/sizes.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

constexpr uint8_t kGuard = 0xEE;
constexpr size_t kGuardSize = 128;

std::vector<uint8_t> numbered(size_t count, unsigned seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251 + seed);
  return bytes;
}

// Copies with both sides off by some bytes, and looks at every byte, also around the target.
void expect_exact_copy(CopyEngine& engine, size_t count, size_t to_offset, size_t from_offset,
                       unsigned seed) {
  SCOPED_TRACE(testing::Message() << count << " bytes to +" << to_offset << " from +"
                                  << from_offset);
  const std::vector<uint8_t> source = numbered(count + from_offset, seed);
  std::vector<uint8_t> target(count + to_offset + kGuardSize, kGuard);
  engine.copy_many(target.data() + to_offset, source.data() + from_offset, count);
  const auto begin = target.begin() + static_cast<ptrdiff_t>(to_offset);
  const auto end = begin + static_cast<ptrdiff_t>(count);
  const auto is_guard = [](uint8_t byte) { return byte == kGuard; };
  EXPECT_TRUE(std::equal(begin, end, source.begin() + static_cast<ptrdiff_t>(from_offset)));
  EXPECT_TRUE(std::all_of(target.begin(), begin, is_guard));
  EXPECT_TRUE(std::all_of(end, target.end(), is_guard));
}

// More often than the trials at the beginning: every method has its turn.
constexpr unsigned kTurns = 12;

TEST(CopyEngine, EveryMethodCopiesEveryByteAndNoOther) {
  CopyEngine engine;
  for (const size_t count :
       {CopyEngine::kManyBytes, CopyEngine::kManyBytes + 1, 3 * CopyEngine::kManyBytes - 63}) {
    for (unsigned turn = 0; turn < kTurns; ++turn) {
      expect_exact_copy(engine, count, turn * 5 % 67, turn * 3 % 65, turn);
    }
  }
}

TEST(CopyEngine, StepsOfALargeCopyMeet) {
  CopyEngine engine;
  for (const size_t count : {4 * kMiB + 1, 6 * kMiB - 1, 6 * kMiB, 17 * kMiB + 77}) {
    expect_exact_copy(engine, count, 1, 0, 3);
  }
}

TEST(CopyEngine, FewBytesAreCopiedAsWell) {
  CopyEngine engine;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{4096}}) {
    for (unsigned turn = 0; turn < kTurns; ++turn) expect_exact_copy(engine, count, turn, 0, turn);
  }
}

TEST(CopyEngine, ThreadsShareTheirSamples) {
  CopyEngine engine;
  run_on_threads(4, [&](int thread) {
    for (unsigned turn = 0; turn < kTurns; ++turn) {
      expect_exact_copy(engine, 2 * CopyEngine::kManyBytes, turn, 0,
                        static_cast<unsigned>(thread) * 31 + turn);
    }
  });
}

}  // namespace
}  // namespace understudy
