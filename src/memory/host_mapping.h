// SPDX-License-Identifier: Apache-2.0
//
// Host mappings: an extent of a backing file mapped for the CPU at its device address.
#pragma once

#include "base/result.h"
#include "base/virtual_range.h"
#include "memory/extent_allocator.h"
#include "memory/reservation.h"
#include "platform/address_window.h"

namespace understudy {

// Refuses addresses that the host does not hold for the reservation.
Result<void> check_host_can_map(const Reservation& reservation, VirtualAddress base)
    US_REQUIRES(reservation.mutex);
// REQUIRES: the extent is committed; a CPU touch of memory that the host lacks is a signal.
Result<void> place_host_mapping(const Reservation& reservation, VirtualAddress base,
                                const Extent& extent, platform::CpuAccess access)
    US_REQUIRES(reservation.mutex);
// Keeps the CPU out again. As long as this fails the bytes cannot be given to another owner.
Result<void> remove_host_mapping(VirtualRange range);

}  // namespace understudy
