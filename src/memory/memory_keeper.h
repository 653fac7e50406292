// SPDX-License-Identifier: Apache-2.0
//
// Who knows what processes share. Memory asks before it uses an extent again that others may have.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/virtual_range.h"
#include "memory/block.h"

namespace understudy {

// What becomes of the slot of a small allocation that is freed.
enum class SlotEnd : uint8_t {
  kNeverShared,  // its export came to nothing, and its charge is still this process's
  kOwnAgain,     // nobody else has it
  kKept,         // others have it; it is given back when they have not
};

class MemoryKeeper {
 public:
  // Memory of this process that others gave back since it was last reaped.
  explicit MemoryKeeper(const std::atomic<uint32_t>& returns) : returns_(returns) {}

  void reap_if_any() {
    if (returns_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      reap();
  }
  virtual void reap() = 0;

  // Nobody new may have an exported block: the program has no handle of it any more.
  virtual void close(Block& block) = 0;
  // Takes over the extent of a block that was exported or imported, when nothing of this process
  // refers to it any more, no reader either.
  virtual void keep(const Block& block) = 0;
  // A small allocation that was marked as shared is freed.
  virtual SlotEnd leave_slot(VirtualAddress address) = 0;

 protected:
  ~MemoryKeeper() = default;

 private:
  const std::atomic<uint32_t>& returns_;
};

}  // namespace understudy
