// SPDX-License-Identifier: Apache-2.0
//
// The page kinds a device accounts in. A giant page is 512 huge pages of the huge pool.
#pragma once

#include <cstdint>

#include "base/sizes.h"

namespace understudy {

// Sizes of allocations are rounded up to this many bytes before anything else.
inline constexpr uint64_t kAllocationUnit = 32;

enum class PageKind : uint8_t { kNormal, kHuge, kGiant };

constexpr uint64_t page_size(PageKind kind) {
  switch (kind) {
    case PageKind::kNormal:
      return kNormalPage;
    case PageKind::kHuge:
      return kHugePage;
    case PageKind::kGiant:
      return kGiantPage;
  }
  return kNormalPage;
}

constexpr const char* name_of(PageKind kind) {
  switch (kind) {
    case PageKind::kNormal:
      return "normal";
    case PageKind::kHuge:
      return "huge";
    case PageKind::kGiant:
      return "giant";
  }
  return "normal";
}

}  // namespace understudy
