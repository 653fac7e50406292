// SPDX-License-Identifier: Apache-2.0
//
// One entry of the translation table, in one word: where the bytes of a granule are on the host,
// which mapping put them there, whose they are and who may touch them. A copy within a granule
// needs nothing but this word.
//
//   bits  0..26  host granule: host address / 2 MiB
//   bits 27..52  number of the mapping
//   bits 53..58  device, kHostOwner or kManagedOwner
//   bit  59      the owner may read and write
//   bit  60      known committed: the bytes exist, no need to ask the backing file
//   bit  61      restricted: not every byte may be read and written, ask the mapping
//   bit  62      divided: holds small allocations, and the number is that of their slab
//   bit  63      present
//
// An entry that is not present is 0, or the mark that something was there and has ended.
#pragma once

#include <cstdint>

#include "base/object_pool.h"
#include "base/virtual_range.h"

namespace understudy {

class PageEntry {
 public:
  static constexpr unsigned kHostOwner = 63;
  static constexpr unsigned kManagedOwner = 62;  // the CPU and every device

  constexpr PageEntry() = default;
  constexpr explicit PageEntry(uint64_t word) : word_(word) {}
  static constexpr PageEntry make(VirtualAddress host, uint32_t mapping, unsigned owner,
                                  bool owner_access) {
    return PageEntry(kPresent | (host >> kGranuleShift) | uint64_t{mapping} << kMappingShift |
                     uint64_t{owner} << kOwnerShift | (owner_access ? kOwnerAccess : 0));
  }

  // What a mapping or allocation leaves behind.
  static constexpr PageEntry ended() { return PageEntry(kEnded); }

  constexpr uint64_t word() const { return word_; }
  constexpr bool has_ended() const { return word_ == kEnded; }
  constexpr bool present() const { return (word_ & kPresent) != 0; }
  constexpr bool commit() const { return (word_ & kCommitted) != 0; }
  constexpr bool owner_access() const { return (word_ & kOwnerAccess) != 0; }
  constexpr bool restricted() const { return (word_ & kRestricted) != 0; }
  constexpr bool divided() const { return (word_ & kDivided) != 0; }
  // Number of the mapping, or of the slab where the granule is divided.
  constexpr uint32_t mapping() const {
    return static_cast<uint32_t>(word_ >> kMappingShift & ((1U << kPoolIndexBits) - 1));
  }
  constexpr unsigned owner() const { return static_cast<unsigned>(word_ >> kOwnerShift & 63); }
  constexpr bool on_host() const { return owner() == kHostOwner; }
  constexpr bool on_device() const { return owner() < kManagedOwner; }
  constexpr bool is_managed() const { return present() && owner() == kManagedOwner; }
  // Start of the granule on the host.
  constexpr VirtualAddress host() const { return (word_ & kHostMask) << kGranuleShift; }

  constexpr PageEntry with_committed() const { return PageEntry(word_ | kCommitted); }
  constexpr PageEntry with_owner_access() const { return PageEntry(word_ | kOwnerAccess); }
  constexpr PageEntry with_restriction() const { return PageEntry(word_ | kRestricted); }
  constexpr PageEntry with_division() const { return PageEntry(word_ | kDivided); }
  // The entry of the `n`-th granule behind this one in the same mapping.
  constexpr PageEntry advanced(uint64_t n) const { return PageEntry(word_ + n); }

  friend constexpr bool operator==(PageEntry, PageEntry) = default;

 private:
  static constexpr uint64_t kEnded = 1;
  static constexpr uint64_t kHostMask = (uint64_t{1} << 27) - 1;
  static constexpr unsigned kMappingShift = 27;
  static constexpr unsigned kOwnerShift = 53;
  static constexpr uint64_t kOwnerAccess = uint64_t{1} << 59;
  static constexpr uint64_t kCommitted = uint64_t{1} << 60;
  static constexpr uint64_t kRestricted = uint64_t{1} << 61;
  static constexpr uint64_t kDivided = uint64_t{1} << 62;
  static constexpr uint64_t kPresent = uint64_t{1} << 63;

  uint64_t word_ = 0;
};

}  // namespace understudy
