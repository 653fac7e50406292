// SPDX-License-Identifier: Apache-2.0
#include "memory/host_mapping.h"

#include "observe/unwritten_memory.h"

namespace understudy {

Result<void> check_host_can_map(const Reservation& reservation, VirtualAddress base) {
  if (reservation.occupied) return {};
  return Error::format(ErrorCode::kNotSupported,
                       "the host cannot map %p, so the CPU cannot have access there",
                       to_pointer(base));
}

Result<void> place_host_mapping(const Reservation& reservation, VirtualAddress base,
                                const Extent& extent, platform::CpuAccess access) {
  US_TRY(check_host_can_map(reservation, base));
  if (is_init_checked()) [[unlikely]]
    UnwrittenMemory::forget({extent.backing->alias(extent.offset), extent.size});
  return platform::place_file({base, extent.size}, extent.backing->file(), extent.offset, access);
}

Result<void> remove_host_mapping(VirtualRange range) {
  const Result<void> covered = platform::cover(range);
  if (covered.ok()) return {};
  // Out of map entries: the mapping may stay if it lets no access through.
  if (platform::change_access(range, platform::CpuAccess::kNone).ok()) return {};
  return covered.error();
}

}  // namespace understudy
