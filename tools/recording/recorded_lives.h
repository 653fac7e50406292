// SPDX-License-Identifier: Apache-2.0
//
// Lives of objects from the records of their beginnings and ends, which the threads of a process
// wrote each on its own.
#pragma once

#include <cstdint>
#include <vector>

#include "observe/recording_format.h"
#include "tools/recording/recording.h"

namespace understudy::command {

// A record of kObjectBegin, kObjectHandle, kObjectEnd or kObjectsEnd.
struct ObjectRecord {
  uint64_t tick = 0;
  RecordKind record = RecordKind::kObjectBegin;
  uint16_t kind = 0;  // as the process counts them
  int32_t value = 0;
  uint32_t process = 0;
  uint32_t call = kNone;  // of Recording::calls
  uint64_t number = 0;    // of what it is part of, for kObjectsEnd
  uint64_t size = 0;
  uint64_t taken = 0;
  uint64_t part_of = 0;
  uint64_t stack = 0;  // as the process counts them
};

// Fills in `objects` in the order of their beginnings, with ticks for times, and kinds and stacks
// as their process counts them. Returns how many ends had no beginning. Sorts the records.
uint64_t match_lives(std::vector<ObjectRecord>& records, std::vector<RecordedObject>& objects);

}  // namespace understudy::command
