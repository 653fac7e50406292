// SPDX-License-Identifier: Apache-2.0
//
// Objects of one kind that the program made at one place. May throw std::bad_alloc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/object_life.h"

namespace understudy {

struct ObjectGroup {
  std::vector<ObjectLife> lives;  // at least one

  uint64_t bytes() const;
};

// In the order in which the first of each was made.
std::vector<ObjectGroup> grouped_by_place(const std::vector<ObjectLife>& lives);

// "2 allocations of 6 MiB together on device 0", "1 stream on device 1"
std::string text_of(const ObjectGroup& group);
// The same with ", created at kv.c:41 by aclrtCreateStream"
std::string sentence_of(const ObjectGroup& group);
// What began behind so many lives and has not ended, by the lines of the program. Shares are not
// in it: they end with their memory.
std::vector<ObjectGroup> live_since(uint64_t begun);

}  // namespace understudy
