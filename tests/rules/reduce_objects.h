// SPDX-License-Identifier: Apache-2.0
//
// What the tests of reductions share: arrays of elements in device memory, and sums of half and
// brain floats computed with whole numbers alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {

inline constexpr aclrtReduceKind kSum = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM;
inline constexpr aclrtReduceKind kMax = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX;
inline constexpr aclrtReduceKind kMin = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN;
inline constexpr aclrtReduceKind kEqual = ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL;

inline aclError reduce(void* to, const void* from, uint64_t count, aclrtReduceKind kind,
                       aclDataType type, aclrtStream stream = nullptr) {
  return aclrtReduceAsync(to, from, count, kind, type, stream, nullptr);
}

// The call is refused with this code, and says why.
inline void expect_reduce_refused(aclError code, aclError actual) {
  EXPECT_TRUE(fails_with(code, actual, "aclrtReduceAsync"));
}

template <typename T>
void put(void* device, const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  memcpy(bytes.data(), values.data(), bytes.size());
  copy_in(device, bytes);
}

template <typename T>
std::vector<T> get(const void* device, size_t count) {
  const std::vector<uint8_t> bytes = copy_out(device, count * sizeof(T));
  std::vector<T> values(count);
  memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// What `to` becomes, on a stream, default or not.
template <typename T>
std::vector<T> reduced(const std::vector<T>& to, const std::vector<T>& from, aclrtReduceKind kind,
                       aclDataType type, aclrtStream stream = nullptr) {
  const size_t bytes = to.size() * sizeof(T);
  const DeviceBlock target(bytes);
  const DeviceBlock source(bytes);
  put(target.data(), to);
  put(source.data(), from);
  EXPECT_SUCCESS(reduce(target.data(), source.data(), bytes, kind, type, stream));
  EXPECT_SUCCESS(finish(stream));
  EXPECT_EQ(get<T>(source.data(), from.size()), from);
  return get<T>(target.data(), to.size());
}

// A format of 16 bits, and the sum of two numbers of it: exact, then rounded once.
struct SmallFloat {
  aclDataType type;
  int mantissa_bits;

  int exponent_bits() const { return 15 - mantissa_bits; }
  uint16_t infinity() const {
    return static_cast<uint16_t>(((1 << exponent_bits()) - 1) << mantissa_bits);
  }
  uint16_t quiet() const { return static_cast<uint16_t>(1 << (mantissa_bits - 1)); }
  bool is_nan(uint16_t bits) const { return (bits & 0x7FFF) > infinity(); }
  bool is_infinite(uint16_t bits) const { return (bits & 0x7FFF) == infinity(); }
  // Exponent of the last bit, above that of the smallest number; and the digits in front of it.
  int exponent(uint16_t bits) const {
    const int field = (bits & 0x7FFF) >> mantissa_bits;
    return field == 0 ? 0 : field - 1;
  }
  int64_t digits(uint16_t bits) const {
    const int64_t fraction = bits & ((1 << mantissa_bits) - 1);
    const bool is_normal = (bits & 0x7FFF) >> mantissa_bits != 0;
    const int64_t all = is_normal ? fraction | int64_t{1} << mantissa_bits : fraction;
    return (bits & 0x8000) != 0 ? -all : all;
  }

  // Any quiet NaN is as good as another.
  uint16_t sum(uint16_t a, uint16_t b) const {
    if (is_nan(a) || is_nan(b)) return static_cast<uint16_t>(infinity() | quiet());
    if (is_infinite(a) && is_infinite(b) && a != b) {
      return static_cast<uint16_t>(infinity() | quiet());
    }
    if (is_infinite(a)) return a;
    if (is_infinite(b)) return b;
    const uint16_t high = exponent(a) >= exponent(b) ? a : b;
    const uint16_t low = high == a ? b : a;
    // The lower number keeps 40 digits more than the higher one; of what is cut off, whether it was
    // nothing.
    constexpr int kMore = 40;
    const int distance = exponent(high) - exponent(low);
    const int shift = std::min(distance, kMore);
    int64_t low_digits = digits(low);
    bool is_inexact = false;
    for (int i = shift; i < distance; ++i) {
      is_inexact |= low_digits % 2 != 0;
      low_digits /= 2;
    }
    const int64_t exact = digits(high) * (int64_t{1} << shift) + low_digits;
    // A remainder of the other sign makes the number smaller, and one of its own sign larger.
    const bool shrinks = is_inexact && (exact < 0) != ((low & 0x8000) != 0);
    return rounded(exact, exponent(high) - shift, is_inexact, shrinks, a, b);
  }

 private:
  uint16_t rounded(int64_t exact, int scale, bool is_inexact, bool shrinks, uint16_t a,
                   uint16_t b) const {
    if (exact == 0 && !is_inexact) {
      return (a & b & 0x8000) != 0 ? uint16_t{0x8000} : uint16_t{0};  // -0 only from two of them
    }
    const uint16_t sign = exact < 0 ? uint16_t{0x8000} : uint16_t{0};
    // Two digits more: one for a half, one for all that is less.
    uint64_t magnitude = static_cast<uint64_t>(exact < 0 ? -exact : exact) * 4;
    if (is_inexact) magnitude = shrinks ? magnitude - 1 : magnitude + 1;
    int exponent = scale - 2;
    const uint64_t limit = uint64_t{1} << (mantissa_bits + 1);
    for (; exponent > 0 && magnitude < limit / 2; --exponent) magnitude *= 2;
    // To whole digits at the place of the result.
    int cut = 0;
    while (magnitude >> cut >= limit || exponent + cut < 0) ++cut;
    const uint64_t whole = cut > 63 ? 0 : magnitude >> cut;
    const uint64_t rest = cut > 63 ? magnitude : magnitude - (whole << cut);
    const uint64_t half = cut == 0 || cut > 63 ? 0 : uint64_t{1} << (cut - 1);
    uint64_t result = whole;
    if (cut > 0 && cut <= 63 && (rest > half || (rest == half && whole % 2 == 1))) ++result;
    exponent += cut;
    if (result == limit) {
      result /= 2;
      ++exponent;
    }
    const bool is_normal = result >> mantissa_bits != 0;
    const int field = is_normal ? exponent + 1 : 0;
    if (field >= (1 << exponent_bits()) - 1) return static_cast<uint16_t>(sign | infinity());
    const uint64_t fraction = result & ((uint64_t{1} << mantissa_bits) - 1);
    return static_cast<uint16_t>(sign | field << mantissa_bits | static_cast<int>(fraction));
  }
};

inline constexpr SmallFloat kHalf = {ACL_FLOAT16, 10};
inline constexpr SmallFloat kBrain = {ACL_BF16, 7};

}  // namespace understudy_test
