// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <bit>
#include <cmath>

namespace understudy {

namespace {

constexpr uint16_t kHalfSign = 0x8000;
constexpr uint16_t kLargestHalf = 0x7BFF;
constexpr int kHalfDigits = 10;  // behind the point
constexpr int kHalfBias = 15;
constexpr int kSmallestHalfExponent = 1 - kHalfBias;

constexpr uint32_t kFloatMagnitude = 0x7FFFFFFF;
constexpr uint32_t kFloatInfinity = 0x7F800000;
constexpr uint32_t kFloatLeadingDigit = 0x00800000;
constexpr int kFloatDigits = 23;
constexpr int kFloatBias = 127;
// From here on the nearest half would have an exponent that there is not: 65520.
constexpr uint32_t kTooLarge = 0x477FF000;

// value / 2^shift. REQUIRES: 0 < shift < 32.
uint32_t shifted_to_nearest_even(uint32_t value, int shift) {
  const uint32_t kept = value >> shift;
  const uint32_t lost = value & ((uint32_t{1} << shift) - 1);
  const uint32_t middle = uint32_t{1} << (shift - 1);
  const bool up = lost > middle || (lost == middle && (kept & 1) != 0);
  return kept + (up ? 1 : 0);
}

}  // namespace

float half_to_float(uint16_t half) {
  const int exponent = half >> kHalfDigits & 0x1F;
  const int digits = half & 0x3FF;
  // Both are exact: a float has more digits and smaller exponents.
  const float magnitude =
      exponent == 0 ? std::ldexp(static_cast<float>(digits), kSmallestHalfExponent - kHalfDigits)
                    : std::ldexp(static_cast<float>(digits + (1 << kHalfDigits)),
                                 exponent - kHalfBias - kHalfDigits);
  return (half & kHalfSign) != 0 ? -magnitude : magnitude;
}

uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & kFloatMagnitude;
  if (magnitude > kFloatInfinity) return kLargestHalf;  // not a number
  const auto sign = static_cast<uint16_t>(bits >> 16 & kHalfSign);
  if (magnitude >= kTooLarge) return sign | kLargestHalf;
  const int exponent = static_cast<int>(magnitude >> kFloatDigits) - kFloatBias;
  const uint32_t digits = (magnitude & (kFloatLeadingDigit - 1)) | kFloatLeadingDigit;
  // How many digits there are too many; numbers below the smallest exponent have fewer places.
  const int extra = kFloatDigits - kHalfDigits;
  const int below = exponent < kSmallestHalfExponent ? kSmallestHalfExponent - exponent : 0;
  if (extra + below > kFloatDigits + 1) return sign;  // less than half of the smallest one
  const uint32_t rounded = shifted_to_nearest_even(digits, extra + below);
  // The leading digit counts as one more exponent, also where rounding has made it.
  const uint32_t exponents =
      below > 0 ? 0 : static_cast<uint32_t>(exponent - kSmallestHalfExponent) << kHalfDigits;
  return static_cast<uint16_t>(sign | (exponents + rounded));
}

}  // namespace understudy
