// SPDX-License-Identifier: Apache-2.0
//
// A context: a device, and streams for work on it. Slots are type-stable, so a thread
// may keep a pointer to the context it made current and find out that it ended.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/handle.h"
#include "base/virtual_range.h"
#include "stream/stream.h"

namespace understudy {

// Options that a program sets for a context or for the process. Remembered, without effect.
inline constexpr unsigned kSystemOptions = 4;
using SystemOptions = std::array<std::optional<int64_t>, kSystemOptions>;

// What a device tells of overflows.
inline constexpr uint64_t kOverflowStatusBytes = 64;

enum class ContextKind : uint8_t { kDefault, kExplicit };

struct Context {
  std::atomic<uint32_t> state{0};  // a SlotState
  uint32_t index = 0;
  uint32_t pool_next = 0;
  SlotLife life() const { return SlotState::life(state.load(std::memory_order_acquire)); }
  // Constant while it lives; atomic for threads that ask just when it ends.
  std::atomic<uint32_t> device{0};
  // Under the lock of Devices.
  ContextKind kind = ContextKind::kExplicit;
  SystemOptions options;
  StreamReference default_stream;
  VirtualAddress overflow_status = 0;  // device memory of its own, once it was asked for
};

// A context as a thread remembers it.
struct ContextReference {
  Context* context = nullptr;
  uint32_t state = 0;
  StreamReference default_stream;

  bool valid() const {
    return context != nullptr && context->state.load(std::memory_order_acquire) == state;
  }
  // REQUIRES: was valid once.
  unsigned device() const { return context->device.load(std::memory_order_relaxed); }
  uint64_t handle() const {
    return HandleParts{HandleTag::kContext, SlotState::generation(state), context->index}.pack();
  }
};

}  // namespace understudy
