// SPDX-License-Identifier: Apache-2.0
//
// What memory tells sharing, before it uses an extent or a slot again that other processes may
// have. None of these waits for another process, and none can fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/virtual_range.h"
#include "memory/block.h"

namespace understudy {

// What becomes of the slot of a small allocation that is freed.
enum class SlotEnd : uint8_t {
  kNeverShared,  // its export came to nothing, and its charge is still this process's
  kShared,       // the charge is the share's; the slot is given back when no process holds it
  kInExport,     // a thread is exporting it, which sees to both
};

class ShareHooks {
 public:
  // How much memory of this process others gave back since it was last reclaimed.
  explicit ShareHooks(const std::atomic<uint32_t>& returns) : returns_(returns) {}

  void reclaim_returned_if_any() noexcept {
    if (returns_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      reclaim_returned();
  }
  virtual void reclaim_returned() noexcept = 0;

  // The program has no handle of an exported block any more: no other process may import it.
  virtual void on_last_handle_freed(Block& block) noexcept = 0;
  // Nothing of this process refers to an exported block any more, no reader either. Takes the block
  // over, until PhysicalMemory::take_back().
  virtual void on_export_unreferenced(const Block& block) noexcept = 0;
  // The same for an imported block, whose extent is not this process's.
  virtual void on_import_unreferenced(const Block& block) noexcept = 0;
  // A small allocation that was marked as shared is freed.
  virtual SlotEnd on_slot_freed(VirtualAddress address) noexcept = 0;

 protected:
  ~ShareHooks() = default;

 private:
  const std::atomic<uint32_t>& returns_;
};

}  // namespace understudy
