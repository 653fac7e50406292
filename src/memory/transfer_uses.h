// SPDX-License-Identifier: Apache-2.0
//
// What transfers read and write, as the check `init` wants to know it (observe/unwritten_memory.h):
// device addresses become places of the memory behind them, and what was never written is told by
// its device address. Where the check is not chosen, callers do not call. Any thread may call
// anything, without a lock.
#pragma once

#include <cstdint>

#include "base/virtual_range.h"
#include "memory/translation.h"
#include "observe/access_map.h"

namespace understudy {

// Rows of `width` bytes whose starts are a pitch apart; a range is one row.
struct UsedRows {
  VirtualAddress base = 0;
  uint64_t width = 0;
  uint64_t pitch = 0;
  uint64_t height = 1;
};

class TransferUses {
 public:
  explicit TransferUses(const Translation& translation) : translation_(translation) {}

  // A transfer is about to read rows, for a task or, without a position, for a call. Rows of host
  // memory are nothing to it.
  void note_read(const UsedRows& rows, StreamTask task, AccessUse use = AccessUse::kRead) noexcept;
  void note_written(const UsedRows& rows) noexcept;

 private:
  // Calls visit(address, range on the host) for the parts of rows that lie together there. May
  // throw std::bad_alloc.
  template <typename Visit>
  void for_each_part(const UsedRows& rows, Visit visit) const;

  const Translation& translation_;
};

}  // namespace understudy
