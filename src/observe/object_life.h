// SPDX-License-Identifier: Apache-2.0
//
// The life of an object that a program has: what it is, where the program made it and where it
// ended it. A plain value.
#pragma once

#include <cstdint>
#include <string>

#include "platform/call_stack.h"

namespace understudy {

enum class ObjectKind : uint8_t {
  kAllocation,  // at an address: of a device, managed, of a pool, imported by key
  kBlock,
  kReservation,
  kMapping,
  kHostBlock,
  kRegistration,
  kPool,
  kStream,
  kEvent,
  kNotify,
  kShare,
};
inline constexpr unsigned kObjectKinds = static_cast<unsigned>(ObjectKind::kShare) + 1;

// What messages call it, and how it begins and ends: "physical block", "created", "freed".
struct ObjectWords {
  const char* noun;
  const char* plural;
  const char* begun;
  const char* ended;
  const char* ends;  // what a call does that ends it: "frees"
};
const ObjectWords& words_of(ObjectKind kind);
// Whether its number is an address, and its size a range of addresses.
bool has_addresses(ObjectKind kind);

// Where in the program something happened.
struct ProgramPlace {
  const platform::CallStack* stack = nullptr;  // null: not known
  const char* function = nullptr;              // that the program called; null: none
  uint32_t thread = 0;                         // as the kernel counts them
};

inline constexpr int32_t kNoDevice = -1;

struct PlacePages;  // see page_waste.h

// The memory that an object takes, of its device.
struct PageUse {
  uint64_t page = 0;   // of so many bytes each; 0: that is not known
  uint64_t taken = 0;  // bytes in whole pages
};

struct ObjectLife {
  ObjectKind kind = ObjectKind::kAllocation;
  bool has_ended = false;
  bool was_told = false;  // as a leak
  int32_t device = kNoDevice;
  uint32_t handles = 1;  // that the program has of it
  uint64_t number = 0;   // the handle, or the address
  uint64_t size = 0;     // in bytes; 0: it has none
  uint64_t part_of = 0;  // the number of what it belongs to: the block of a mapping, the pool of an
                         // allocation, the context of a stream; 0: nothing
  uint64_t order = 0;    // counts lives from 1
  PageUse pages;
  PlacePages* place_pages = nullptr;  // where they are counted; null: nowhere
  ProgramPlace begun;
  ProgramPlace ended;
  const char* cause = nullptr;  // of an end that the program did not ask for by itself

  bool contains(uint64_t address) const {
    return has_addresses(kind) && address >= number && address - number < size;
  }
};

// "physical block of 2 MiB on device 0". May throw std::bad_alloc.
std::string described(const ObjectLife& life);

}  // namespace understudy
