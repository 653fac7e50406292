// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/allocation_csv.h"

#include <vector>

#include "tools/recording/argument_text.h"
#include "tools/recording/device_memory_events.h"
#include "tools/recording/memory_places.h"
#include "tools/recording/valid_text.h"

namespace understudy::command {

namespace {

void append_padded(std::string& out, uint64_t number, size_t digits) {
  const std::string text = std::to_string(number);
  if (text.size() < digits) out.append(digits - text.size(), '0');
  out += text;
}

// Of the day, in UTC: "20:15:39.000123".
void append_time(std::string& out, uint64_t nanoseconds) {
  const uint64_t seconds = nanoseconds / 1'000'000'000;
  append_padded(out, seconds / 3600 % 24, 2);
  out += ':';
  append_padded(out, seconds / 60 % 60, 2);
  out += ':';
  append_padded(out, seconds % 60, 2);
  out += '.';
  append_padded(out, nanoseconds % 1'000'000'000 / 1000, 6);
}

// The handle that the call was given; 0 if it was given none.
uint64_t stream_of_call(const Recording& recording, uint32_t call) {
  if (call == kNone) return 0;
  const auto stream = argument_named(recording, recording.calls[call], "stream");
  return stream.empty() ? 0 : stream[0];
}

const char* csv_action(MemoryAction action) {
  switch (action) {
    case MemoryAction::kTaken:
      return "allocate";
    case MemoryAction::kGivenBack:
      return "free";
    case MemoryAction::kRefused:
      return "allocate failure";
    case MemoryAction::kUsed:
    case MemoryAction::kUnused:
      break;
  }
  return nullptr;
}

}  // namespace

std::string allocation_csv(const Recording& recording) {
  const std::vector<DeviceMemoryEvent> events = device_memory_events(recording);
  const std::vector<uint64_t> places = memory_places(recording, events);
  std::string out = "Thread,Time,Action,Pointer,Size,Stream\n";
  for (const DeviceMemoryEvent& event : events) {
    const char* const action = csv_action(event.action);
    const uint64_t place = event.object == kNone ? 0 : places[event.object];
    if (action == nullptr || place == kNowhere) continue;
    const uint32_t thread =
        event.call == kNone ? 0 : recording.threads[recording.calls[event.call].thread].number;
    append_number(out, thread);
    out += ',';
    append_time(out, recording.wall_clock + event.time);
    out += ',';
    out += action;
    out += ',';
    append_hex(out, place);
    out += ',';
    append_number(out, event.bytes);
    out += ',';
    append_hex(out, stream_of_call(recording, event.call));
    out += '\n';
  }
  return out;
}

}  // namespace understudy::command
