// SPDX-License-Identifier: Apache-2.0
//
// Addresses as the user sees them, and half-open ranges of them. A VirtualAddress is a number and
// never dereferenced: most device addresses lead nowhere on the host. All range arithmetic of the
// project lives here, with its overflow checks.
#pragma once

#include <cstdint>
#include <optional>

#include "base/sizes.h"

namespace understudy {

using VirtualAddress = uint64_t;

inline VirtualAddress to_address(const void* pointer) {
  return reinterpret_cast<VirtualAddress>(pointer);
}
// For handing an address to a caller or to the kernel.
inline void* to_pointer(VirtualAddress address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

struct VirtualRange {
  VirtualAddress base = 0;
  uint64_t size = 0;

  // Nothing if the range would wrap around the end of the address space.
  static constexpr std::optional<VirtualRange> make(VirtualAddress base, uint64_t size) {
    uint64_t end = 0;
    if (__builtin_add_overflow(base, size, &end)) return std::nullopt;
    return VirtualRange{base, size};
  }

  constexpr VirtualAddress end() const { return base + size; }
  constexpr bool contains(VirtualAddress address) const {
    return address >= base && address - base < size;
  }
  constexpr bool contains(const VirtualRange& other) const {
    return other.base >= base && other.size <= size && other.base - base <= size - other.size;
  }
  constexpr bool overlaps(const VirtualRange& other) const {
    return size != 0 && other.size != 0 && base < other.end() && other.base < end();
  }
  friend constexpr bool operator==(const VirtualRange&, const VirtualRange&) = default;
};

}  // namespace understudy
