// SPDX-License-Identifier: Apache-2.0
//
// How the numbers that users hold are made: a tag that tells what it is and keeps it from looking
// like an address, the generation of a slot, and the slot. HandleTable finds what they name.
#pragma once

#include <cstdint>

namespace understudy {

enum class HandleTag : uint8_t {
  kBlock = 0x5B,
  kContext = 0x5C,
  kStream = 0x5D,
  kEvent = 0x5E,
  kDataBuffer = 0x5F,
  kNotify = 0x60,
  kMemoryPool = 0x61,
  kAllocator = 0x62
};

struct HandleParts {
  static constexpr unsigned kGenerationBits = 24;

  HandleTag tag;
  uint32_t generation;
  uint32_t index;

  constexpr uint64_t pack() const {
    return uint64_t{static_cast<uint8_t>(tag)} << 56 | uint64_t{generation} << 32 | index;
  }
  static constexpr HandleParts split(uint64_t handle) {
    return {static_cast<HandleTag>(handle >> 56),
            static_cast<uint32_t>(handle >> 32) & ((1U << kGenerationBits) - 1),
            static_cast<uint32_t>(handle)};
  }
};

// The object in a type-stable slot at a moment. The end of an object raises the generation.
struct SlotLife {
  uint32_t generation = 0;
  bool alive = false;
};

// The same in one word: the generation, times two, plus one while an object lives in the slot.
// References remember the number, and handles the generation.
struct SlotState {
  static constexpr bool alive(uint32_t state) { return state % 2 == 1; }
  static constexpr uint32_t generation(uint32_t state) {
    return state / 2 & ((1U << HandleParts::kGenerationBits) - 1);
  }
  static constexpr SlotLife life(uint32_t state) { return {generation(state), alive(state)}; }
  // While the object that a handle names lives. No slot is used for more generations than fit.
  static constexpr uint32_t of_live(uint64_t handle) {
    return HandleParts::split(handle).generation * 2 + 1;
  }
};

}  // namespace understudy
