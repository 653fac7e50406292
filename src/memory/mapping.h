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

struct Mapping {
  uint32_t index = 0;
  uint32_t pool_next = 0;
  VirtualRange range;  // of an allocation: what may be used of it, which is any number of bytes
  Block* block = nullptr;
  Reservation* reservation = nullptr;
  // Bit per device that may read and write.
  std::atomic<uint32_t> device_access{0};
  std::atomic<bool> host_access{false};
  // The file is really mapped at the address, for the CPU. Under the reservation's lock.
  bool has_window = false;
  bool is_allocation = false;
  bool read_only = false;
  // In the list of mappings that ended while a reader held them.
  Mapping* next_in_limbo = nullptr;

  bool owner_access() const {
    const Location owner = block->traits.location;
    return owner.on_device() ? (device_access.load(std::memory_order_relaxed) >> owner.id & 1) != 0
                             : host_access.load(std::memory_order_relaxed);
  }
};
static_assert(sizeof(Mapping) <= 64);

}  // namespace understudy
