// SPDX-License-Identifier: Apache-2.0
#include "memory/slab.h"

#include "memory/hazard_pointers.h"

namespace understudy {

void Slab::divide(VirtualAddress at, unsigned slot_size) {
  const uint32_t pages = kSlotPages[slot_size];
  base.store(at, std::memory_order_relaxed);
  slot_pages.store(pages, std::memory_order_relaxed);
  slot_reciprocal.store((1U << kReciprocalBits) / pages + 1, std::memory_order_relaxed);
  slots = kPagesPerSlab / pages;
  live = 0;
  first_free = 0;
  for (uint32_t slot = 0; slot < records.size(); ++slot) {
    const uint32_t following = slot + 1 < slots ? slot + 1 : SlotRecord::kNoSlot;
    records[slot].store(SlotRecord::make_fresh(following).word(), std::memory_order_relaxed);
  }
}

bool Slab::is_pinned() const {
  return is_any_pinned(records.data(), records.data() + records.size());
}

}  // namespace understudy
