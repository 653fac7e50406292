// SPDX-License-Identifier: Apache-2.0
//
// A block of physical memory and what it is made from. A block lives as long as a handle or a
// mapping refers to it; its extent also while a reader still copies through a mapping that ended.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/handle.h"
#include "device/location.h"
#include "device/page_kind.h"
#include "memory/extent_allocator.h"
#include "server/capacity.h"

namespace understudy {

// What a block has to do with other processes.
enum class BlockSharing : uint8_t {
  kNone,
  kExporting,  // a thread is at it
  kOpen,       // exported, and importers may come in
  kClosed,     // exported, and no new importer may come in
  kLeft,       // exported, and nothing of this process refers to it any more
  kImported,
};

// The same, and the number of the share if there is one, in one word.
struct BlockShare {
  BlockSharing sharing = BlockSharing::kNone;
  uint32_t number = 0;

  constexpr uint32_t pack() const { return static_cast<uint32_t>(sharing) << kNumberBits | number; }
  static constexpr BlockShare unpack(uint32_t word) {
    return {static_cast<BlockSharing>(word >> kNumberBits), word & ((1U << kNumberBits) - 1)};
  }

 private:
  static constexpr unsigned kNumberBits = 24;
};

// The kinds of memory a block can be asked for. Generic ones leave the technology to the device.
enum class BlockAttribute : uint8_t {
  kNormal,
  kHuge,
  kGiant,
  kPeerNormal,
  kPeerHuge,
  kPeerGiant,
  kHbmNormal,  // served as kHbmHuge
  kHbmHuge,
  kHbmGiant,
  kDdrNormal,
  kDdrHuge,
  kDdrPeerNormal,
  kDdrPeerHuge,
};

constexpr PageKind page_kind_of(BlockAttribute attribute) {
  switch (attribute) {
    case BlockAttribute::kNormal:
    case BlockAttribute::kPeerNormal:
    case BlockAttribute::kDdrNormal:
    case BlockAttribute::kDdrPeerNormal:
      return PageKind::kNormal;
    case BlockAttribute::kGiant:
    case BlockAttribute::kPeerGiant:
    case BlockAttribute::kHbmGiant:
      return PageKind::kGiant;
    case BlockAttribute::kHuge:
    case BlockAttribute::kPeerHuge:
    case BlockAttribute::kHbmNormal:
    case BlockAttribute::kHbmHuge:
    case BlockAttribute::kDdrHuge:
    case BlockAttribute::kDdrPeerHuge:
      return PageKind::kHuge;
  }
  return PageKind::kHuge;
}

// For copies between devices.
constexpr bool is_peer(BlockAttribute attribute) {
  return attribute == BlockAttribute::kPeerNormal || attribute == BlockAttribute::kPeerHuge ||
         attribute == BlockAttribute::kPeerGiant || attribute == BlockAttribute::kDdrPeerNormal ||
         attribute == BlockAttribute::kDdrPeerHuge;
}

// What a block was asked for with; constant while it lives.
struct BlockTraits {
  BlockAttribute attribute = BlockAttribute::kHuge;
  uint8_t module = kApplicationModule;
  uint8_t home = 0;  // of a block on a device: the one that imported it, else its own
  Location location;

  PageKind page_kind() const { return page_kind_of(attribute); }
  // Blocks are made of whole granules whatever their pages are.
  uint64_t granularity() const { return page_kind() == PageKind::kGiant ? kGiantPage : kGranule; }
};

// The reference counts and the generation of a block's slot in one word, changed by compare and
// exchange alone, so that of two racing calls one succeeds and one fails. Handles are references
// held by the user; internal ones are those of mappings, and of calls while they use the block.
class BlockState {
 public:
  static constexpr unsigned kGenerationBits = HandleParts::kGenerationBits;
  static constexpr unsigned kHandleBits = 18;
  static constexpr unsigned kInternalRefBits = 22;
  static constexpr uint32_t kMaxHandles = (1U << kHandleBits) - 1;
  static constexpr uint32_t kMaxInternalRefs = (1U << kInternalRefBits) - 1;

  constexpr BlockState() = default;
  constexpr explicit BlockState(uint64_t word) : word_(word) {}
  constexpr BlockState(uint32_t generation, uint32_t handles, uint32_t internal_refs)
      : word_(generation * kGeneration | handles * kHandle | internal_refs) {}

  constexpr uint64_t word() const { return word_; }
  constexpr uint32_t generation() const { return static_cast<uint32_t>(word_ / kGeneration); }
  constexpr uint32_t handles() const {
    return static_cast<uint32_t>(word_ / kHandle) & kMaxHandles;
  }
  constexpr uint32_t internal_refs() const {
    return static_cast<uint32_t>(word_) & kMaxInternalRefs;
  }
  constexpr bool alive() const { return word_ % kGeneration != 0; }

  // REQUIRES: there is one less than the most, or one more than none.
  constexpr void add_handle() { word_ += kHandle; }
  constexpr void drop_handle() { word_ -= kHandle; }
  constexpr void add_internal_ref() { ++word_; }
  constexpr void drop_internal_ref() { --word_; }
  // Behind the last generation comes 0. REQUIRES: it is not alive.
  constexpr void begin_generation() { word_ += kGeneration; }

 private:
  static constexpr uint64_t kHandle = uint64_t{1} << kInternalRefBits;
  static constexpr uint64_t kGeneration = kHandle << kHandleBits;
  static_assert(kGenerationBits + kHandleBits + kInternalRefBits == 64);

  uint64_t word_ = 0;
};

// In a cache line of its own: who frees it looks at most of it.
struct alignas(64) Block {
  std::atomic<uint64_t> state{0};
  // One while the block lives, and one per mapping on the retire list; the extent goes back at
  // zero.
  std::atomic<uint32_t> extent_holds{0};
  uint32_t pool_next = 0;
  uint32_t index = 0;
  std::atomic<uint32_t> share{0};  // a BlockShare
  Extent extent;                   // of managed memory: no file, and the address for an offset
  // What it costs its device; an allocation of normal pages costs less than its granules.
  uint32_t charged_pages = 0;
  BlockTraits traits;

  SlotLife life() const {
    const BlockState now(state.load(std::memory_order_acquire));
    return {now.generation(), now.alive()};
  }
  BlockShare shared() const { return BlockShare::unpack(share.load(std::memory_order_acquire)); }
  bool is_imported() const { return shared().sharing == BlockSharing::kImported; }
  Charge charge() const {
    return {traits.location.id, traits.page_kind(), charged_pages * kNormalPage, traits.module};
  }
};
static_assert(sizeof(Block) == 64);

}  // namespace understudy
