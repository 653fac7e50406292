// SPDX-License-Identifier: Apache-2.0
//
// What the DMA engines of each product can reduce (RED-02): data beside the product profiles.
#pragma once

#include <cstdint>
#include <string_view>

namespace understudy {

// By the published numbers of types and kinds, bit per number.
struct ReduceProfile {
  uint64_t types = 0;  // none: the product has no reductions
  uint32_t kinds = 0;

  constexpr bool has_type(unsigned number) const {
    return number < 64 && (types >> number & 1) != 0;
  }
  constexpr bool has_kind(unsigned number) const {
    return number < 32 && (kinds >> number & 1) != 0;
  }
};

// By the key of a product profile.
ReduceProfile reduce_profile(std::string_view product);

}  // namespace understudy
