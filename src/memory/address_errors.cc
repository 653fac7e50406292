// SPDX-License-Identifier: Apache-2.0
#include "memory/address_errors.h"

#include <cstdio>
#include <optional>

#include "base/size_text.h"
#include "memory/address_layout.h"

namespace understudy {

namespace {

// Of an address that no reservation is around.
const char* history_outside(const Translation& translation, Reservations& reservations,
                            VirtualAddress address) {
  if (translation.look_up(address).has_ended()) {
    return "is device memory that was unmapped, and its reservation is released";
  }
  if (reservations.was_device(address)) return "is a device address that is not reserved";
  if (is_in_device_window(address)) {
    return "is a device address that this process never had (those of other processes mean nothing "
           "here)";
  }
  return "is neither device nor host memory";
}

const char* history_of(const Translation& translation, Reservations& reservations,
                       VirtualAddress address) {
  switch (reservations.use_of(address)) {
    case ReservationUse::kAllocations:
      return translation.was_freed(address) ? "is device memory that was freed"
                                            : "is a device address where nothing is allocated";
    case ReservationUse::kProgram:
      return translation.look_up(address).has_ended() ? "is device memory that was unmapped"
                                                      : "is reserved but not mapped";
    case ReservationUse::kNone:
      break;
  }
  return history_outside(translation, reservations, address);
}

const char* name_of(bool is_allocation) { return is_allocation ? "allocation" : "mapping"; }
const char* with_article(bool is_allocation) {
  return is_allocation ? "an allocation" : "a mapping";
}

// Nothing of the wanted kind starts at an address.
Error unfit(const Translation& translation, Reservations& reservations, VirtualAddress address,
            ReservationUse wanted) {
  const bool wants_allocation = wanted == ReservationUse::kAllocations;
  const std::optional<MappingView> inside = translation.find(address);
  if (!inside) {
    if (!reservations.has_host_memory(address)) {
      return no_memory_at(translation, reservations, address);
    }
    return Error::format(ErrorCode::kInvalidParam, "%p is host memory, where no %s is",
                         to_pointer(address), name_of(wants_allocation));
  }
  const bool is_right = inside->is_allocation == wants_allocation;
  const SizeText size(inside->range.size);
  if (inside->range.base != address) {
    return Error::format(ErrorCode::kInvalidParam, "%p is inside the %s of %s at %p, not %s",
                         to_pointer(address), name_of(inside->is_allocation), size.c_str(),
                         to_pointer(inside->range.base),
                         is_right ? "its start" : with_article(wants_allocation));
  }
  if (is_right) {
    return Error::format(ErrorCode::kInvalidParam, "another thread placed the %s at %p meanwhile",
                         name_of(wants_allocation), to_pointer(address));
  }
  return Error::format(ErrorCode::kInvalidParam, "%p is the start of %s of %s, not of %s",
                       to_pointer(address), with_article(inside->is_allocation), size.c_str(),
                       with_article(wants_allocation));
}

}  // namespace

AddressHistory::AddressHistory(const Translation& translation, Reservations& reservations,
                               VirtualAddress address) {
  if (const std::optional<VirtualRange> before = translation.allocation_beside(address)) {
    snprintf(text_, sizeof text_, "is outside the allocation of %s at %p",
             SizeText(before->size).c_str(), to_pointer(before->base));
    return;
  }
  snprintf(text_, sizeof text_, "%s", history_of(translation, reservations, address));
}

Error no_memory_at(const Translation& translation, Reservations& reservations,
                   VirtualAddress address, ErrorCode code) {
  return Error::format(code, "%p %s", to_pointer(address),
                       AddressHistory(translation, reservations, address).c_str())
      .about(address);
}

Error not_a_mapping(const Translation& translation, Reservations& reservations,
                    VirtualAddress address) {
  return unfit(translation, reservations, address, ReservationUse::kProgram).about(address);
}

Error not_an_allocation(const Translation& translation, Reservations& reservations,
                        VirtualAddress address) {
  return unfit(translation, reservations, address, ReservationUse::kAllocations).about(address);
}

}  // namespace understudy
