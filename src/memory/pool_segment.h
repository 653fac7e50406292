// SPDX-License-Identifier: Apache-2.0
//
// A segment of a pool: a range of device addresses, and an extent of the same size that costs
// nothing until parts of it get memory. Opened and closed by PoolBacking.
#pragma once

#include "base/virtual_range.h"
#include "memory/mapping.h"
#include "memory/sub_allocations.h"

namespace understudy {

struct PoolSegment {
  VirtualRange range;
  Mapping* mapping = nullptr;       // of the whole range; only parts of it are entered
  SubAllocations* parts = nullptr;  // the mapping's

  uint64_t granule_of(VirtualAddress address) const { return (address - range.base) / kGranule; }
  Extent extent_of(VirtualRange part) const {
    const Extent& whole = mapping->block->extent;
    return {whole.backing, whole.offset + (part.base - range.base), part.size};
  }
};

}  // namespace understudy
