// SPDX-License-Identifier: Apache-2.0
#include "memory/reduction.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <limits>
#include <type_traits>

namespace understudy {

namespace {

// ---- Formats: one sign bit, exponent, mantissa; bits as an unsigned number ----

template <typename Word, Word kInfinityBits>
struct Format {
  using Bits = Word;
  using Signed = std::make_signed_t<Word>;
  static constexpr Bits kSign =
      static_cast<Bits>(Bits{1} << (std::numeric_limits<Bits>::digits - 1));
  static constexpr Bits kInfinity = kInfinityBits;
  static constexpr Bits kLargest = kInfinity - 1;
  // The highest bit of the mantissa.
  static constexpr Bits kQuiet = static_cast<Bits>((kInfinity & (~kInfinity + 1)) >> 1);

  static constexpr Bits magnitude(Bits bits) { return static_cast<Bits>(bits & ~kSign); }
  static constexpr bool is_nan(Bits bits) { return magnitude(bits) > kInfinity; }
  // Orders numbers as signed integers, -0 below +0.
  static constexpr Signed key(Bits bits) {
    const auto number = static_cast<Signed>(bits);
    return static_cast<Signed>(number < 0 ? number ^ static_cast<Signed>(~kSign) : number);
  }
};

struct Single : Format<uint32_t, 0x7F800000> {
  static Bits add(Bits a, Bits b) {
    return std::bit_cast<Bits>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
  }
};

// The upper half of a single. Sums of two are exact enough as singles: rounding them twice gives
// what rounding once does.
struct Brain : Format<uint16_t, 0x7F80> {
  static uint32_t widen(Bits bits) { return uint32_t{bits} << 16; }
  static Bits narrow(uint32_t single) {
    const uint32_t rounded = single + 0x7FFF + (single >> 16 & 1);  // to nearest, ties to even
    const uint32_t quiet = single | uint32_t{kQuiet} << 16;
    return static_cast<Bits>((Single::is_nan(single) ? quiet : rounded) >> 16);
  }
  static Bits add(Bits a, Bits b) { return narrow(Single::add(widen(a), widen(b))); }
};

struct Half : Format<uint16_t, 0x7C00> {
  static constexpr uint32_t kMantissaShift = 23 - 10;
  static constexpr uint32_t kRebias = (127 - 15) << 23;

  static uint32_t widen(Bits bits) {
    const uint32_t sign = uint32_t{static_cast<Bits>(bits & kSign)} << 16;
    const uint32_t shifted = uint32_t{magnitude(bits)} << kMantissaShift;
    // A product with a power of two is exact, and makes subnormal numbers normal.
    constexpr uint32_t kScale = (127 + 127 - 15) << 23;
    const auto scaled =
        std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * std::bit_cast<float>(kScale));
    const bool is_finite = magnitude(bits) < kInfinity;
    return sign | (is_finite ? scaled : shifted | Single::kInfinity);
  }
  static Bits narrow(uint32_t single) {
    const uint32_t magnitude = Single::magnitude(single);
    // Normal numbers: the carry of rounding runs into the exponent, and at the end to infinity.
    const uint32_t odd = magnitude >> kMantissaShift & 1;
    const uint32_t normal = (magnitude - kRebias + 0x0FFF + odd) >> kMantissaShift;
    // Subnormal ones are rounded by an addition that leaves them at the end of the mantissa.
    constexpr uint32_t kHalf = 126U << 23;
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kHalf)) -
        kHalf;
    constexpr uint32_t kSmallestNormal = (127U - 14) << 23;
    constexpr uint32_t kTooLarge = (127U + 16) << 23;
    uint32_t result = magnitude < kSmallestNormal ? subnormal : normal;
    result = magnitude >= kTooLarge ? uint32_t{kInfinity} : result;
    result = Single::is_nan(single) ? uint32_t{kInfinity} | kQuiet : result;
    return static_cast<Bits>(result | (single >> 16 & kSign));
  }
  static Bits add(Bits a, Bits b) { return narrow(Single::add(widen(a), widen(b))); }
};

// ---- One element ----

template <typename Type, ReduceKind kKind, OverflowMode kMode>
struct FloatElement {
  using Bits = typename Type::Bits;

  static Bits combine(Bits a, Bits b) {
    Bits result = 0;
    if constexpr (kKind == ReduceKind::kSum) {
      result = Type::add(a, b);
    } else {
      const bool takes_first =
          kKind == ReduceKind::kMax ? Type::key(a) > Type::key(b) : Type::key(a) < Type::key(b);
      result = takes_first ? a : b;
      result = Type::is_nan(b) ? static_cast<Bits>(b | Type::kQuiet) : result;
      result = Type::is_nan(a) ? static_cast<Bits>(a | Type::kQuiet) : result;
    }
    if constexpr (kMode == OverflowMode::kSaturation) {
      const Bits magnitude = Type::magnitude(result);
      const auto largest = static_cast<Bits>((result & Type::kSign) | Type::kLargest);
      const Bits beyond = magnitude > Type::kInfinity ? Bits{0} : largest;
      result = magnitude >= Type::kInfinity ? beyond : result;
    }
    return result;
  }
};

template <typename Number, ReduceKind kKind>
struct IntegerElement {
  using Bits = Number;

  static Number combine(Number a, Number b) {
    if constexpr (kKind == ReduceKind::kSum) {
      using Unsigned = std::make_unsigned_t<Number>;  // wraps
      return static_cast<Number>(
          static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
    } else {
      return kKind == ReduceKind::kMax ? std::max(a, b) : std::min(a, b);
    }
  }
};

// ---- Loops ----

template <typename Element>
void reduce_all(void* to, const void* from, size_t bytes) {
  using Bits = typename Element::Bits;
  auto* const target = static_cast<Bits*>(to);
  const auto* const source = static_cast<const Bits*>(from);
  const size_t count = bytes / sizeof(Bits);
  for (size_t i = 0; i < count; ++i) target[i] = Element::combine(target[i], source[i]);
}

using Loop = void (*)(void* to, const void* from, size_t bytes);

template <typename Type, OverflowMode kMode>
Loop float_loop(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return reduce_all<FloatElement<Type, ReduceKind::kSum, kMode>>;
    case ReduceKind::kMax:
      return reduce_all<FloatElement<Type, ReduceKind::kMax, kMode>>;
    case ReduceKind::kMin:
      break;
  }
  return reduce_all<FloatElement<Type, ReduceKind::kMin, kMode>>;
}

template <typename Type>
Loop float_loop(const ReduceOperation& operation) {
  return operation.mode == OverflowMode::kSaturation
             ? float_loop<Type, OverflowMode::kSaturation>(operation.kind)
             : float_loop<Type, OverflowMode::kInfNan>(operation.kind);
}

template <typename Number>
Loop integer_loop(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return reduce_all<IntegerElement<Number, ReduceKind::kSum>>;
    case ReduceKind::kMax:
      return reduce_all<IntegerElement<Number, ReduceKind::kMax>>;
    case ReduceKind::kMin:
      break;
  }
  return reduce_all<IntegerElement<Number, ReduceKind::kMin>>;
}

Loop loop_for(const ReduceOperation& operation) {
  switch (operation.type) {
    case ElementType::kFloat32:
      return float_loop<Single>(operation);
    case ElementType::kFloat16:
      return float_loop<Half>(operation);
    case ElementType::kBfloat16:
      return float_loop<Brain>(operation);
    case ElementType::kInt8:
      return integer_loop<int8_t>(operation.kind);
    case ElementType::kInt16:
      return integer_loop<int16_t>(operation.kind);
    case ElementType::kInt32:
      return integer_loop<int32_t>(operation.kind);
    case ElementType::kUint32:
      break;
  }
  return integer_loop<uint32_t>(operation.kind);
}

// Programs flush subnormal numbers or round in other directions; their threads, and those that they
// start, run tasks. The state is also what collects exceptions, which are none of the program's.
class DefaultFloatState {
 public:
  DefaultFloatState() {
    fegetenv(&before_);
    fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatState() { fesetenv(&before_); }
  DefaultFloatState(const DefaultFloatState&) = delete;
  DefaultFloatState& operator=(const DefaultFloatState&) = delete;

 private:
  fenv_t before_;
};

}  // namespace

void reduce_elements(const ReduceOperation& operation, void* to, const void* from, size_t bytes) {
  const DefaultFloatState state;
  loop_for(operation)(to, from, bytes);
}

}  // namespace understudy
