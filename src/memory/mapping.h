// SPDX-License-Identifier: Apache-2.0
//
// A block placed at an address, by the program or as an allocation. Constant from the moment the
// translation table shows it until no reader can hold it any more, but for the access rights, which
// change under the lock of its reservation.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/virtual_range.h"
#include "memory/block.h"

namespace understudy {

struct Reservation;
class SubAllocations;

struct Mapping {
  uint32_t index = 0;
  // While it is free, the pool's. While it waits for a reader (memory/retire_list.h), the next one
  // that does: its number + 1.
  uint32_t pool_next = 0;
  VirtualRange range;  // of an allocation: what may be used of it, which is any number of bytes
  Block* block = nullptr;
  Reservation* reservation = nullptr;
  // Bit per device that may read and write.
  std::atomic<uint32_t> device_access{0};
  std::atomic<bool> host_access{false};
  // The file is really mapped at the address, for the CPU. Under the reservation's lock.
  bool has_host_mapping = false;
  bool read_only = false;
  bool is_allocation : 1 = false;
  bool is_internal : 1 = false;  // an allocation of the library's own
  // Of a segment of a pool: the allocations in it. Deleted with the mapping.
  SubAllocations* parts = nullptr;

  bool owner_access() const {
    const Location owner = block->traits.location;
    return owner.on_device() ? (device_access.load(std::memory_order_relaxed) >> owner.id & 1) != 0
                             : host_access.load(std::memory_order_relaxed);
  }
};
static_assert(sizeof(Mapping) <= 56);

}  // namespace understudy
