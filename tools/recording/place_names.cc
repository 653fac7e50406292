// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/place_names.h"

#include "tools/recording/memory_series.h"

namespace understudy::command {

std::string place_name(const Recording& recording, uint32_t stack, uint32_t function) {
  if (stack == kNone) {
    return function == kNone ? "(not known)" : recording.functions[function].name;
  }
  std::string name;
  for (const char letter : recording.stacks[stack]) {
    if (letter == '\n') {
      name += " < ";
    } else {
      name += letter;
    }
  }
  return name;
}

std::string device_name(int32_t device) {
  return device == kHost ? "host" : "device " + std::to_string(device);
}

std::string stream_name(const RecordedStream& stream) {
  std::string name = "stream " + std::to_string(stream.index);
  if (stream.generation > 1) name += "#" + std::to_string(stream.generation);
  return name;
}

}  // namespace understudy::command
