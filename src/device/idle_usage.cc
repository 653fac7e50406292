// SPDX-License-Identifier: Apache-2.0
#include "device/idle_usage.h"

#include <algorithm>

#include "base/sizes.h"

namespace understudy {

namespace {

constexpr uint64_t whole_pages(uint64_t bytes) {
  return (bytes / kNormalPage + (bytes % kNormalPage != 0)) * kNormalPage;
}

}  // namespace

IdleUsage IdleUsage::of(uint64_t bytes, uint64_t normal_memory, uint64_t huge_memory) {
  const uint64_t normal_pages = align_down(normal_memory, kNormalPage);
  uint64_t huge = std::min(align_down(bytes, kHugePage), huge_memory);
  uint64_t rest = whole_pages(bytes - huge);
  // Less than a huge page, or all huge pages are taken.
  if (rest > normal_pages && huge < huge_memory) {
    huge += kHugePage;
    rest = 0;
  }
  return {.normal = std::min(rest, normal_pages), .huge = huge};
}

}  // namespace understudy
