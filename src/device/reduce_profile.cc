// SPDX-License-Identifier: Apache-2.0
#include "device/reduce_profile.h"

#include <initializer_list>

namespace understudy {

namespace {

// Published numbers.
enum Type : unsigned {
  kFloat = 0,
  kFloat16 = 1,
  kInt8 = 2,
  kInt32 = 3,
  kInt16 = 6,
  kUint32 = 8,
  kBf16 = 27
};
enum Kind : unsigned { kSum = 10, kMax = 11, kMin = 12 };

constexpr ReduceProfile make(std::initializer_list<Type> types, std::initializer_list<Kind> kinds) {
  ReduceProfile profile;
  for (const Type type : types) profile.types |= uint64_t{1} << type;
  for (const Kind kind : kinds) profile.kinds |= uint32_t{1} << kind;
  return profile;
}

struct Row {
  std::string_view product;
  ReduceProfile profile;
};
constexpr Row kRows[] = {
    {"a2", make({kFloat, kFloat16, kInt8, kInt32, kInt16, kBf16}, {kSum, kMax, kMin})},
    {"a3", make({kFloat, kFloat16, kInt8, kInt32, kInt16, kBf16}, {kSum, kMax, kMin})},
    {"950", make({kFloat, kFloat16, kInt8, kInt32, kInt16, kUint32, kBf16}, {kSum, kMax, kMin})},
    {"200i", make({kFloat, kFloat16, kInt8, kInt32, kInt16}, {kSum, kMax, kMin})},
    {"200i-rc", make({kFloat, kFloat16, kInt8, kInt32, kInt16}, {kSum, kMax, kMin})},
    {"inf", make({kFloat, kFloat16, kInt16}, {kSum})},
    {"trn", make({kFloat}, {kSum})},
};

}  // namespace

ReduceProfile reduce_profile(std::string_view product) {
  for (const Row& row : kRows) {
    if (row.product == product) return row.profile;
  }
  return {};
}

}  // namespace understudy
