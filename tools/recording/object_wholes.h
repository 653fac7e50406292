// SPDX-License-Identifier: Apache-2.0
//
// What objects are part of: the block of a mapping, the pool of an allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

// For each object, the one that RecordedObject::part_of names, as a position in
// Recording::objects: of its process, the last with that number that began before it. kNone: none.
std::vector<uint32_t> wholes_of(const Recording& recording);

}  // namespace understudy::command
