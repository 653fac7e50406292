// SPDX-License-Identifier: Apache-2.0
//
// How the numbers that users hold are made: a tag that tells what it is and keeps it from looking
// like an address, the generation of a slot, and the slot. A stale, foreign or invented number is
// found out by comparing, never by following it.
#pragma once

#include <cstdint>

namespace understudy {

enum class HandleTag : uint8_t {
  kBlock = 0x5B,
  kContext = 0x5C,
  kStream = 0x5D,
  kEvent = 0x5E,
  kDataBuffer = 0x5F
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

// What a type-stable slot is at a moment: its generation, times two, plus one while an object lives
// in it. References remember the number, and handles the generation.
struct SlotState {
  static constexpr bool alive(uint32_t state) { return state % 2 == 1; }
  static constexpr uint32_t generation(uint32_t state) {
    return state / 2 & ((1U << HandleParts::kGenerationBits) - 1);
  }
  // A slot whose generations are used up is not used again: an ancient handle would fit it.
  static constexpr bool is_used_up(uint32_t state) { return generation(state) == 0; }
};

}  // namespace understudy
