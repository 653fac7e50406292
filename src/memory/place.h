// SPDX-License-Identifier: Apache-2.0
//
// What the software MMU knows of an address: the mapping or the allocation around it, where its
// bytes are and who may use them. A picture of the moment it was taken; the bytes stay where they
// are while the pin that came with it is held.
#pragma once

#include <cstdint>

#include "base/virtual_range.h"
#include "device/location.h"
#include "device/page_kind.h"
#include "memory/extent_allocator.h"
#include "memory/page_entry.h"

namespace understudy {

struct Reservation;

struct Place {
  VirtualRange range;  // of the mapping, or what may be used of the allocation
  Location location;
  PageKind page_kind = PageKind::kHuge;
  bool owner_access = true;
  bool read_only = false;
  uint32_t device_access = 0;  // bit per device
  // Bytes run on into other places of the same reservation (MAP-13). Null: an allocation, which
  // stands alone (COPY-13).
  const Reservation* joins = nullptr;
  BackingFile* backing = nullptr;
  uint64_t file_offset = 0;  // of the first byte of the range
  PageEntry entry;           // of the granule around the address that was asked for

  bool may_access(unsigned device) const {
    return owner_access || (device_access >> device & 1) != 0;
  }
};

}  // namespace understudy
