// SPDX-License-Identifier: Apache-2.0
//
// A recording as a memory snapshot of PyTorch, a pickled dict that pytorch.org/memory_viz and
// MindStudio Insight open. What both need is written down in scripts/check_torch_snapshot.py.
//
// A segment is a piece of memory that was taken from a device: an allocation or a physical block.
// It has one block, which is active while the memory is in use: see device_memory_events.h. So the
// segments of a device sum up to its memory at the end, those of its trace to its peak, and
// physical blocks that are mapped nowhere are inactive. Gaps in reservations take no memory and are
// in no segment. The memory of the host is not in the snapshot.
#pragma once

#include <string>

#include "tools/recording/recording.h"

namespace understudy::command {

// Python's pickle, protocol 4. May throw std::bad_alloc.
std::string torch_snapshot(const Recording& recording);

}  // namespace understudy::command
