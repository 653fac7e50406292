// SPDX-License-Identifier: Apache-2.0
//
// What this process has exported under the number of a share, in one word: a physical block, or the
// slot of a small allocation. The word is 0 if there is nothing.
#pragma once

#include <cstdint>

#include "base/sizes.h"
#include "base/virtual_range.h"
#include "server/ledger_layout.h"

namespace understudy {

class ExportedMemory {
 public:
  constexpr ExportedMemory() = default;
  static constexpr ExportedMemory of_block(uint32_t index) { return ExportedMemory(index); }
  static constexpr ExportedMemory of_slot(VirtualAddress address) {
    return ExportedMemory(kIsSlot | address / kNormalPage);
  }
  // The same, exported in this way.
  constexpr ExportedMemory exported_as(ShareKind kind, bool open_to_all) const {
    const uint64_t kind_bits = (static_cast<uint64_t>(kind) + 1) << kKindShift;
    return ExportedMemory((word_ & ~(kKindMask | kOpenToAll)) | kind_bits |
                          (open_to_all ? kOpenToAll : 0));
  }
  // The same, in a backing file.
  constexpr ExportedMemory in_backing_file(uint16_t number) const {
    return ExportedMemory((word_ & ~kBackingMask) | uint64_t{number} << kBackingShift);
  }

  constexpr bool exists() const { return word_ != 0; }
  constexpr bool is_slot() const { return (word_ & kIsSlot) != 0; }
  // REQUIRES: it is a block.
  constexpr uint32_t block() const { return static_cast<uint32_t>(word_ & kPlaceMask); }
  // REQUIRES: it is a slot.
  constexpr VirtualAddress slot() const { return (word_ & kPlaceMask) * kNormalPage; }
  constexpr ShareKind kind() const {
    return static_cast<ShareKind>(((word_ & kKindMask) >> kKindShift) - 1);
  }
  constexpr bool open_to_all() const { return (word_ & kOpenToAll) != 0; }
  constexpr uint16_t backing_file() const {
    return static_cast<uint16_t>((word_ & kBackingMask) >> kBackingShift);
  }

 private:
  static constexpr unsigned kBackingShift = 44;
  static constexpr unsigned kKindShift = 60;
  static constexpr uint64_t kPlaceMask = (uint64_t{1} << kBackingShift) - 1;
  static constexpr uint64_t kBackingMask = uint64_t{0xFFFF} << kBackingShift;
  static constexpr uint64_t kKindMask = uint64_t{3} << kKindShift;  // kind + 1: never 0
  static constexpr uint64_t kIsSlot = uint64_t{1} << 62;
  static constexpr uint64_t kOpenToAll = uint64_t{1} << 63;

  constexpr explicit ExportedMemory(uint64_t word) : word_(word) {}

  uint64_t word_ = 0;
};
static_assert(sizeof(ExportedMemory) == sizeof(uint64_t));

}  // namespace understudy
