// SPDX-License-Identifier: Apache-2.0
//
// Memory of the host for programs: pages that are there before anyone touches them, and that stay
// in main memory. Ranges are multiples of 2 MiB unless said otherwise. A failure carries errno,
// changes nothing unless said, raises no signal. Fork children inherit the memory, copied when
// either side writes, but neither the locks nor pages of the hugetlb pool.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/virtual_range.h"

namespace understudy::platform {

enum class HostPages : uint8_t { kHugetlb, kTransparent, kSmall };

// Maps zeroed memory at a multiple of 2 MiB. Pages of the hugetlb pool are set aside at once.
Result<VirtualRange> map_host_memory(uint64_t size, HostPages pages);
// Gets all pages of a range. Where transparent huge pages cannot be had, small ones do.
Result<void> populate(VirtualRange range, HostPages pages);
void unmap_host_memory(VirtualRange range);

// Keeps the pages of a range, any multiple of 4 KiB, in main memory. Fails where the limit of the
// user is reached, and where a page cannot be had; some may be locked then. Locks do not nest.
Result<void> lock_pages(VirtualRange range);
void unlock_pages(VirtualRange range);

// Whether something is mapped at every page of a range.
bool is_wholly_mapped(VirtualRange range);

}  // namespace understudy::platform
