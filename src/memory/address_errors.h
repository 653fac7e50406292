// SPDX-License-Identifier: Apache-2.0
//
// Sentences about addresses where something else is than the caller thought, or nothing any more.
// For functions that are about to fail: they look everything up again, and may take locks.
#pragma once

#include "base/error.h"
#include "memory/reservation.h"
#include "memory/reservations.h"
#include "memory/translation.h"

namespace understudy {

// What became of an address that has no memory: "is device memory that was freed". A value without
// heap memory, for sentences.
class AddressHistory {
 public:
  AddressHistory(const Translation& translation, Reservations& reservations,
                 VirtualAddress address);
  const char* c_str() const { return text_; }

 private:
  char text_[120];
};

// There is no memory at an address that is to be read or written.
[[gnu::cold]] Error no_memory_at(const Translation& translation, Reservations& reservations,
                                 VirtualAddress address, ErrorCode code = ErrorCode::kInvalidParam);

// No mapping, or no allocation, starts at an address.
[[gnu::cold]] Error not_a_mapping(const Translation& translation, Reservations& reservations,
                                  VirtualAddress address);
[[gnu::cold]] Error not_an_allocation(const Translation& translation, Reservations& reservations,
                                      VirtualAddress address);

}  // namespace understudy
