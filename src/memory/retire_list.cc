// SPDX-License-Identifier: Apache-2.0
#include "memory/retire_list.h"

#include <utility>

#include "memory/hazard_pointers.h"
#include "memory/sub_allocations.h"

namespace understudy {

void RetireList::retire(Mapping& mapping) {
  Block& block = *mapping.block;
  if (!is_pinned(&mapping)) {
    give_back(mapping);
    physical_.drop_internal_ref(block);
    return;
  }
  // A copy is under way. The block may end now, and its capacity is credited; its bytes stay until
  // the copy is done.
  physical_.hold_extent(block);
  {
    MutexLock lock(mutex_);
    add_locked(mapping);
  }
  physical_.drop_internal_ref(block);
}

void RetireList::give_back(Mapping& mapping) {
  if (mapping.parts != nullptr) [[unlikely]]
    delete std::exchange(mapping.parts, nullptr);
  mappings_.give_back(mapping.index);
}

void RetireList::add_locked(Mapping& mapping) {
  mapping.pool_next = first_.load(std::memory_order_relaxed);
  first_.store(mapping.index + 1, std::memory_order_relaxed);
}

void RetireList::reclaim() {
  if (first_.load(std::memory_order_relaxed) == 0) return;
  uint32_t done = 0;  // a list like first_
  {
    MutexLock lock(mutex_);
    uint32_t next = first_.exchange(0, std::memory_order_relaxed);
    while (next != 0) {
      Mapping& mapping = mappings_.at(next - 1);
      next = mapping.pool_next;
      if (is_pinned(&mapping)) {
        add_locked(mapping);
      } else {
        mapping.pool_next = std::exchange(done, mapping.index + 1);
      }
    }
  }
  while (done != 0) {
    Mapping& ended = mappings_.at(done - 1);
    done = ended.pool_next;
    Block& block = *ended.block;
    give_back(ended);
    physical_.drop_extent(block);
  }
}

}  // namespace understudy
