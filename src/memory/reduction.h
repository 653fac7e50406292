// SPDX-License-Identifier: Apache-2.0
//
// Element by element, what a DMA engine does when it reduces: to[i] = to[i] op from[i]. The results
// are exact: integers wrap, floating-point sums are rounded once (RED-11 to RED-15).
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/product_profile.h"

namespace understudy {

enum class ElementType : uint8_t {
  kFloat32,
  kFloat16,
  kBfloat16,
  kInt8,
  kInt16,
  kInt32,
  kUint32,
};
enum class ReduceKind : uint8_t { kSum, kMax, kMin };

struct ReduceOperation {
  ReduceKind kind = ReduceKind::kSum;
  ElementType type = ElementType::kFloat32;
  OverflowMode mode = OverflowMode::kInfNan;  // saturation: the largest number; 0 for NaN
};

constexpr size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return 1;
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
    case ElementType::kInt16:
      return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
    case ElementType::kUint32:
      return 4;
  }
  return 1;
}

// Whatever the floating-point state of the calling thread is, which stays as it was.
// REQUIRES: both are aligned to the type; whole elements; the ranges are apart, or the same.
void reduce_elements(const ReduceOperation& operation, void* to, const void* from, size_t bytes);

}  // namespace understudy
