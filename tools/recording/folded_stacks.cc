// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/folded_stacks.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/size_text.h"
#include "tools/recording/memory_series.h"
#include "tools/recording/place_names.h"
#include "tools/recording/stack_lines.h"
#include "tools/recording/valid_text.h"

namespace understudy::command {

namespace {

std::string frame_of(const std::string& label) {
  std::string frame = valid_utf8(label);
  std::replace(frame.begin(), frame.end(), ';', ',');
  std::replace(frame.begin(), frame.end(), '\n', ' ');
  return frame;
}

// Where an object was made; what it is, if that is not known.
std::vector<std::string> frames_of_object(const Recording& recording,
                                          const RecordedObject& object) {
  std::vector<std::string> frames;
  for (const StackLine& line : stack_lines(recording, object.stack, object.begin_call)) {
    frames.push_back(frame_of(label_of(line)));
  }
  if (frames.empty()) frames.push_back(frame_of(recording.object_kinds[object.kind]));
  std::reverse(frames.begin(), frames.end());
  return frames;
}

uint64_t saturated_sum(uint64_t left, uint64_t right) {
  return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

// `by_place`: the outermost frame says where the memory is.
std::vector<FoldedStack> fold(const Recording& recording, const std::vector<uint32_t>& objects,
                              bool by_place) {
  // Where an object was made: its stack, the function and the kind; and on which device it is. Each
  // stack is taken apart once.
  using Maker = std::tuple<uint32_t, uint32_t, uint16_t, int32_t>;
  std::map<Maker, std::pair<uint32_t, uint64_t>> by_maker;  // an object, and the bytes of all
  for (const uint32_t index : objects) {
    const RecordedObject& object = recording.objects[index];
    const Maker maker{
        object.stack,
        object.begin_call == kNone ? kNone : recording.calls[object.begin_call].function,
        object.kind, by_place ? object.device : 0};
    auto& [any, bytes] = by_maker.try_emplace(maker, index, 0).first->second;
    bytes = saturated_sum(bytes, object.taken);
  }
  std::map<std::vector<std::string>, uint64_t> by_frames;
  for (const auto& [maker, made] : by_maker) {
    const RecordedObject& object = recording.objects[made.first];
    std::vector<std::string> frames = frames_of_object(recording, object);
    if (by_place) frames.insert(frames.begin(), device_name(object.device));
    uint64_t& bytes = by_frames[std::move(frames)];
    bytes = saturated_sum(bytes, made.second);
  }
  std::vector<FoldedStack> stacks;
  stacks.reserve(by_frames.size());
  for (const auto& [frames, bytes] : by_frames) stacks.push_back({frames, bytes});
  return stacks;
}

std::string seconds_text(uint64_t nanoseconds) {
  std::array<char, 48> text;
  snprintf(text.data(), text.size(), "%" PRIu64 ".%06" PRIu64 " s", nanoseconds / 1'000'000'000,
           nanoseconds % 1'000'000'000 / 1000);
  return text.data();
}

}  // namespace

FoldedMemory memory_at_peak(const Recording& recording) {
  const std::map<int32_t, MemoryPeak> peaks = memory_peaks(recording, memory_changes(recording));
  std::optional<std::pair<int32_t, MemoryPeak>> largest;
  for (const auto& [device, peak] : peaks) {
    if (device == kHost && peaks.size() > 1) continue;
    if (!largest || peak.bytes > largest->second.bytes) largest = {device, peak};
  }
  if (!largest) return {"no memory was allocated", {}};
  const auto& [device, peak] = *largest;
  std::vector<uint32_t> objects = objects_alive_at(recording, peak.time);
  objects.erase(std::remove_if(objects.begin(), objects.end(),
                               [&, on = device](uint32_t index) {
                                 return recording.objects[index].device != on;
                               }),
                objects.end());
  return {device_name(device) + " at its peak of " + RoughSizeText(peak.bytes).c_str() +
              ", after " + seconds_text(peak.time),
          fold(recording, objects, false)};
}

FoldedMemory memory_at_end(const Recording& recording) {
  const std::vector<uint32_t> objects = objects_alive_at(recording, UINT64_MAX);
  std::set<int32_t> places;
  uint64_t bytes = 0;
  for (const uint32_t index : objects) {
    places.insert(recording.objects[index].device);
    bytes = saturated_sum(bytes, recording.objects[index].taken);
  }
  if (objects.empty()) return {"nothing is alive at the end", {}};
  return {std::string("alive at the end: ") + RoughSizeText(bytes).c_str(),
          fold(recording, objects, places.size() > 1)};
}

std::string folded_text(const FoldedMemory& memory) {
  std::string out;
  for (const FoldedStack& stack : memory.stacks) {
    bool is_first = true;
    for (const std::string& frame : stack.frames) {
      if (!is_first) out += ';';
      is_first = false;
      out += frame;
    }
    out += ' ';
    append_number(out, stack.bytes);
    out += '\n';
  }
  return out;
}

}  // namespace understudy::command
