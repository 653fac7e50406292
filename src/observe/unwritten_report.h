// SPDX-License-Identifier: Apache-2.0
//
// Reads of memory that was never written, in sentences.
#pragma once

#include <cstdint>

#include "base/virtual_range.h"
#include "observe/access_map.h"

namespace understudy {

// What one call or task reads, and what was never written of that.
struct UnwrittenRead {
  AccessUse use = AccessUse::kRead;
  VirtualAddress base = 0;
  uint64_t bytes = 0;
  VirtualRange first_unwritten = {};
  uint64_t unwritten_bytes = 0;
};

// Adds a finding. `task` has no position if a call reads. May throw std::bad_alloc.
void tell_unwritten_read(const UnwrittenRead& read, StreamTask task);

}  // namespace understudy
