// SPDX-License-Identifier: Apache-2.0
//
// What a device shows as used when no program runs: its own system has it, and no process can. Part
// of the device's memory, and of its total in all figures.
//
// It is taken from huge pages first. On real cards it is several GiB, about as much as there is in
// normal pages here, and programs size their pools by what is free in large pages: taken from
// normal ones it would leave no room for small allocations, and pools would be sized as if it were
// free. The part that is no whole huge page is in normal pages, so that the sum is exact to 4 KiB.
#pragma once

#include <cstdint>

namespace understudy {

struct IdleUsage {
  uint64_t normal = 0;  // bytes in normal pages
  uint64_t huge = 0;    // bytes in huge pages

  uint64_t total() const { return normal + huge; }
  friend bool operator==(const IdleUsage&, const IdleUsage&) = default;

  // `bytes`, rounded up to normal pages, of a device with pools of these sizes. Where a pool is too
  // small the other one gives the rest, in whole pages of its own.
  // REQUIRES: bytes is less than both together; huge_memory is a multiple of a huge page.
  static IdleUsage of(uint64_t bytes, uint64_t normal_memory, uint64_t huge_memory);
};

}  // namespace understudy
