// SPDX-License-Identifier: Apache-2.0
//
// Recordings made by hand: one process, one thread; what is added gets the next position.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "tools/recording/recording.h"

namespace understudy::command {

class RecordingMaker {
 public:
  RecordingMaker() {
    process(7);
    made.threads.push_back({.process = 0, .number = 7, .name = "main"});
    made.functions.push_back({"aclrtMalloc", {{"devPtr", 'p', 1, true}, {"size", 'u', 1, false}}});
    made.functions.push_back({"aclrtSetDevice", {{"deviceId", 'i', 1, false}}});
  }

  RecordedProcess& process(uint32_t pid) {
    RecordedProcess& added = made.processes.emplace_back();
    added.pid = pid;
    return added;
  }
  uint16_t kind(const std::string& name) {
    auto& kinds = made.object_kinds;
    const auto found = std::find(kinds.begin(), kinds.end(), name);
    if (found != kinds.end()) return static_cast<uint16_t>(found - kinds.begin());
    kinds.push_back(name);
    return static_cast<uint16_t>(kinds.size() - 1);
  }
  uint32_t call(uint32_t function, uint64_t begin, uint64_t duration, int32_t code,
                std::initializer_list<uint64_t> words) {
    made.calls.push_back({.begin = begin,
                          .duration = duration,
                          .function = function,
                          .code = code,
                          .first_argument = made.words.size(),
                          .arguments = static_cast<uint32_t>(words.size())});
    made.words.insert(made.words.end(), words);
    return static_cast<uint32_t>(made.calls.size() - 1);
  }
  // `taken` of device 0 or of the host.
  uint32_t object(const std::string& name, uint64_t number, uint64_t taken, uint64_t begin,
                  uint64_t end = kStillAlive) {
    RecordedObject object;
    object.kind = kind(name);
    object.device = name == "host block" ? -1 : 0;
    object.number = number;
    object.size = taken;
    object.taken = taken;
    object.begin = begin;
    object.end = end;
    made.objects.push_back(object);
    return static_cast<uint32_t>(made.objects.size() - 1);
  }
  uint32_t mapping(uint64_t address, uint64_t block, uint64_t begin, uint64_t end = kStillAlive) {
    const uint32_t added = object("mapping", address, 0, begin, end);
    made.objects[added].part_of = block;
    return added;
  }
  uint32_t stack(const std::string& lines) {
    made.stacks.push_back(lines);
    return static_cast<uint32_t>(made.stacks.size() - 1);
  }

  Recording made;
};

}  // namespace understudy::command
