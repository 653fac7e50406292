// SPDX-License-Identifier: Apache-2.0
#include "memory/pool_backing.h"

#include <utility>

#include "base/scope_exit.h"

namespace understudy {

uint64_t PoolBacking::device_total(unsigned device) const {
  return capacity_.figures(device, PageKind::kNormal).total +
         capacity_.figures(device, PageKind::kHuge).total;
}

Result<std::unique_ptr<PoolSegment>> PoolBacking::open(unsigned device, uint64_t size,
                                                       uint32_t pool) {
  auto segment = std::make_unique<PoolSegment>();
  auto parts = std::make_unique<SubAllocations>(pool, size / kGranule);
  US_TRY_ASSIGN(Block* const block,
                physical_.create_uncharged({.attribute = BlockAttribute::kHuge,
                                            .home = static_cast<uint8_t>(device),
                                            .location = {LocationKind::kDevice, device}},
                                           size));
  ScopeExit undo_block([&] { physical_.drop_internal_ref(*block); });
  US_TRY_ASSIGN(const Arena place, addresses_.take(size, kGranule));
  ScopeExit undo_place([&] { addresses_.give_back(place.range); });
  US_TRY_ASSIGN(*segment, space_.segments().open(place, *block, std::move(parts)));
  undo_place.dismiss();
  undo_block.dismiss();
  return segment;
}

void PoolBacking::close(std::unique_ptr<PoolSegment> segment, VirtualRange backed) noexcept {
  const VirtualRange range = segment->range;
  if (backed.size > 0) {
    const Charge charge = charge_for(*segment, backed);
    // The host memory stays with the extent, for the next one that gets it. Where the CPU cannot be
    // kept out, for want of map entries, the segment stays.
    if (!space_.segments().leave(*segment, backed, SegmentPlacement::HostMemory::kKeep)) return;
    capacity_.credit(charge);
  }
  space_.segments().close(*segment);
  addresses_.give_back(range);
}

Charge PoolBacking::charge_for(const PoolSegment& segment, VirtualRange part) const {
  return {segment.mapping->block->traits.location.id, PageKind::kHuge, part.size,
          kApplicationModule};
}

Result<void> PoolBacking::back(const PoolSegment& segment, VirtualRange part) {
  const Charge charge = charge_for(segment, part);
  US_TRY(charge_or_explain(capacity_, charge));
  ScopeExit undo([&] { capacity_.credit(charge); });
  US_TRY(space_.segments().enter(segment, part));
  undo.dismiss();
  return {};
}

bool PoolBacking::unback(const PoolSegment& segment, VirtualRange part) noexcept {
  if (!space_.segments().leave(segment, part, SegmentPlacement::HostMemory::kGiveBack)) {
    return false;
  }
  capacity_.credit(charge_for(segment, part));
  return true;
}

}  // namespace understudy
