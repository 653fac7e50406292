// SPDX-License-Identifier: Apache-2.0
//
// Where segments of pools are in the translation. A segment is one mapping of one block, and its
// granules are entered and taken out again as the pool grows and shrinks. Entries are marked as
// restricted, so that readers ask which allocation an address belongs to. Any thread may call
// anything; changes to one part of a segment come from one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/backing_pools.h"
#include "memory/pool_segment.h"
#include "memory/reservation_index.h"
#include "memory/retire_list.h"
#include "memory/translation.h"

namespace understudy {

class SegmentPlacement {
 public:
  SegmentPlacement(const Settings& settings, BackingPools& pools, TranslationTables& tables,
                   RetireList& retired)
      : settings_(settings), pools_(pools), tables_(tables), retired_(retired) {}

  // Places the block of a segment, without any of its bytes. Takes the caller's reference to the
  // block over if it succeeds.
  Result<PoolSegment> open(const Arena& place, Block& block, std::unique_ptr<SubAllocations> parts);
  // REQUIRES: no part of it is entered.
  void close(const PoolSegment& segment) noexcept;

  // Enters a part, in whole granules, and takes it out again with what host memory it has.
  Result<void> enter(const PoolSegment& segment, VirtualRange part);
  // False, and nothing done, if the CPU cannot be kept from the bytes.
  enum class HostMemory : uint8_t { kGiveBack, kKeep };
  bool leave(const PoolSegment& segment, VirtualRange part, HostMemory host_memory) noexcept;

 private:
  const Settings& settings_;
  BackingPools& pools_;
  TranslationTables& tables_;
  RetireList& retired_;
};

}  // namespace understudy
