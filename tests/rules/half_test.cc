// SPDX-License-Identifier: Apache-2.0
//
// Half-precision numbers, both ways.
// Covers: HALF-01, HALF-02, HALF-03.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr uint16_t kSign = 0x8000;
constexpr int kHalfs = 0x10000;
constexpr uint16_t kOnePastTheLargest = 0x7C00;

uint16_t magnitude(uint16_t half) { return half & ~kSign; }

// The value, by the definition of the format.
double value_of(uint16_t half) {
  const int exponent = magnitude(half) >> 10;
  const double digits = half & 0x3FF;
  const double value =
      exponent == 0 ? std::ldexp(digits, -24) : std::ldexp(1024 + digits, exponent - 25);
  return (half & kSign) != 0 ? -value : value;
}

TEST(HalfPrecision, HALF_01_HALF_02_EveryHalfConvertsExactly) {
  for (int number = 0; number < kHalfs; ++number) {
    const auto half = static_cast<uint16_t>(number);
    const float value = aclFloat16ToFloat(half);
    ASSERT_EQ(static_cast<double>(value), value_of(half)) << number;
    ASSERT_EQ(std::signbit(value), (half & kSign) != 0) << number;
  }
  EXPECT_EQ(aclFloat16ToFloat(0x7C00), 65536.0F);
  EXPECT_EQ(aclFloat16ToFloat(0xFC00), -65536.0F);
  EXPECT_EQ(aclFloat16ToFloat(0x7E00), 98304.0F);
}

TEST(HalfPrecision, HALF_01_EveryFiniteHalfComesBack) {
  for (int number = 0; number < kHalfs; ++number) {
    const auto half = static_cast<uint16_t>(number);
    if (magnitude(half) >= kOnePastTheLargest) continue;
    ASSERT_EQ(aclFloatToFloat16(aclFloat16ToFloat(half)), half);
  }
}

// Between two neighbors: the middle goes to the even one, and the floats beside it to the nearer.
TEST(HalfPrecision, HALF_01_TheNearestIsTakenAndTheEvenOneInTheMiddle) {
  for (uint16_t lower = 0; lower + 1 < kOnePastTheLargest; ++lower) {
    const auto upper = static_cast<uint16_t>(lower + 1);
    // Exact: the middle of two halfs has one digit more, and a float has many.
    const auto middle = static_cast<float>((value_of(lower) + value_of(upper)) / 2);
    const uint16_t even = lower % 2 == 0 ? lower : upper;
    for (const bool negative : {false, true}) {
      const auto signed_half = [&](uint16_t half) {
        return static_cast<uint16_t>(negative ? half | kSign : half);
      };
      const auto converted = [&](float value) {
        return aclFloatToFloat16(negative ? -value : value);
      };
      ASSERT_EQ(converted(middle), signed_half(even)) << lower;
      ASSERT_EQ(converted(std::nextafter(middle, 0.0F)), signed_half(lower)) << lower;
      ASSERT_EQ(converted(std::nextafter(middle, INFINITY)), signed_half(upper)) << lower;
    }
  }
}

TEST(HalfPrecision, HALF_01_TinyNumbersBecomeZeroOfTheirSign) {
  for (const float value : {0.0F, std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::min(), 0x1p-25F, 0x1.fffffep-26F}) {
    EXPECT_EQ(aclFloatToFloat16(value), 0x0000) << value;
    EXPECT_EQ(aclFloatToFloat16(-value), 0x8000) << value;
  }
  EXPECT_EQ(aclFloatToFloat16(0x1.000002p-25F), 0x0001);
}

TEST(HalfPrecision, HALF_03_WhatIsTooLargeSaturates) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {65504.0F, 65505.0F, 65519.0F, 65520.0F, 65536.0F, 1e9F,
                            std::numeric_limits<float>::max(), kInfinity}) {
    EXPECT_EQ(aclFloatToFloat16(value), 0x7BFF) << value;
    EXPECT_EQ(aclFloatToFloat16(-value), 0xFBFF) << value;
  }
  for (const uint32_t bits : {0x7FC00000u, 0x7F800001u, 0x7FFFFFFFu, 0xFFC00000u, 0xFF800001u}) {
    EXPECT_EQ(aclFloatToFloat16(std::bit_cast<float>(bits)), 0x7BFF) << bits;
  }
}

TEST(HalfPrecision, HALF_03_NeitherTheProductNorTheThreadMatters) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "no such product"});
  for (const int mode : {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO, FE_TONEAREST}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    EXPECT_EQ(aclFloatToFloat16(1.0F + 0x1p-11F), 0x3C00);
    EXPECT_EQ(aclFloatToFloat16(1.0F + 0x1p-11F + 0x1p-23F), 0x3C01);
    EXPECT_EQ(aclFloat16ToFloat(0x3C01), 1.0F + 0x1p-10F);
  }
}

}  // namespace
}  // namespace understudy_test
