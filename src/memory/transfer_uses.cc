// SPDX-License-Identifier: Apache-2.0
#include "memory/transfer_uses.h"

#include <algorithm>
#include <new>
#include <optional>

#include "observe/unwritten_memory.h"
#include "observe/unwritten_report.h"
#include "platform/log.h"

namespace understudy {

template <typename Visit>
void TransferUses::for_each_part(const UsedRows& rows, Visit visit) const {
  HazardPin pin;
  for (uint64_t row = 0; row < rows.height; ++row) {
    const VirtualRange range{rows.base + row * rows.pitch, rows.width};
    for (VirtualAddress at = range.base; at < range.end();) {
      const std::optional<Place> place = translation_.locate(at, pin, PoolView::kSegments);
      if (!place) return;  // host memory, or it has just lost its memory
      const uint64_t size = std::min(range.end(), place->range.end()) - at;
      visit(at, VirtualRange{place->entry.host() + at % kGranule, size});
      at += size;
    }
  }
}

void TransferUses::note_read(const UsedRows& rows, StreamTask task, AccessUse use) noexcept {
  UnwrittenRead read{.use = use, .base = rows.base, .bytes = rows.width * rows.height};
  try {
    for_each_part(rows, [&](VirtualAddress at, VirtualRange host) {
      const auto part = UnwrittenMemory::find(host);
      if (!part) return;
      const VirtualRange first{at + (part->first.base - host.base), part->first.size};
      if (read.unwritten_bytes == 0) {
        read.first_unwritten = first;
      } else if (read.first_unwritten.end() == first.base) {
        read.first_unwritten.size += first.size;
      }
      read.unwritten_bytes += part->bytes;
    });
    if (read.unwritten_bytes != 0) tell_unwritten_read(read, task);
  } catch (const std::bad_alloc&) {
    platform::say("no memory to look for reads of memory that was never written");
  }
}

void TransferUses::note_written(const UsedRows& rows) noexcept {
  try {
    for_each_part(rows, [](VirtualAddress, VirtualRange host) { UnwrittenMemory::write(host); });
  } catch (const std::bad_alloc&) {
    platform::say("no memory to note what is written");
  }
}

}  // namespace understudy
