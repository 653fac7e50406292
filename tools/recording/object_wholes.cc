// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/object_wholes.h"

#include <unordered_map>

namespace understudy::command {

std::vector<uint32_t> wholes_of(const Recording& recording) {
  // By process: numbers of several processes may be equal.
  std::vector<std::unordered_map<uint64_t, uint32_t>> known(recording.processes.size());
  std::vector<uint32_t> wholes;
  wholes.reserve(recording.objects.size());
  for (const RecordedObject& object : recording.objects) {
    auto& numbers = known[object.process];
    const auto found = object.part_of == 0 ? numbers.end() : numbers.find(object.part_of);
    const auto position = static_cast<uint32_t>(wholes.size());
    wholes.push_back(found == numbers.end() ? kNone : found->second);
    // What has parts is part of nothing itself.
    if (object.part_of == 0) numbers[object.number] = position;
  }
  return wholes;
}

}  // namespace understudy::command
