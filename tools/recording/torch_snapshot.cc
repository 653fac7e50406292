// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/torch_snapshot.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/sizes.h"
#include "tools/recording/argument_text.h"
#include "tools/recording/device_memory_events.h"
#include "tools/recording/memory_places.h"
#include "tools/recording/pickle_writer.h"
#include "tools/recording/stack_lines.h"

namespace understudy::command {

namespace {

// A viewer has a list of traces by device: a number from a damaged file must not make it endless.
constexpr int32_t kMostDevices = 1024;

class TorchSnapshot {
 public:
  explicit TorchSnapshot(const Recording& recording)
      : recording_(recording),
        events_(device_memory_events(recording)),
        places_(memory_places(recording, events_)),
        streams_(recording.objects.size()),
        pools_(recording.objects.size()),
        uses_(recording.objects.size()) {}

  std::string write();

 private:
  void number_streams_and_pools();
  bool is_shown(const DeviceMemoryEvent& event) const {
    return event.device >= 0 && event.device < kMostDevices &&
           (event.object == kNone || places_[event.object] != kNowhere);
  }
  uint64_t requested(const RecordedObject& object) const {
    return object.size == 0 ? object.taken : std::min(object.size, object.taken);
  }

  void write_traces();
  void write_trace(const std::vector<uint32_t>& events);
  void write_entry(const DeviceMemoryEvent& event, const char* action, uint64_t bytes);
  void write_refusal(const DeviceMemoryEvent& event, uint64_t in_use);
  void write_time_and_frames(const DeviceMemoryEvent& event);
  void write_segments();
  void write_segment(uint32_t index);
  void write_frames(uint32_t stack, uint32_t call);
  void write_number(const char* name, uint64_t value) {
    pickle_.text(name);
    pickle_.number(value);
  }

  const Recording& recording_;
  const std::vector<DeviceMemoryEvent> events_;
  const std::vector<uint64_t> places_;
  std::vector<uint32_t> streams_;  // of each object; 0: of none
  std::vector<uint32_t> pools_;
  // Of an object so far, and where it began.
  struct Use {
    bool is_used = false;
    uint32_t stack = kNone;
    uint32_t call = kNone;
  };
  std::vector<Use> uses_;
  std::unordered_map<uint64_t, uint32_t> frames_;  // that were written
  PickleWriter pickle_;
};

// Handles are too long for JavaScript's numbers.
void TorchSnapshot::number_streams_and_pools() {
  using Handle = std::pair<uint32_t, uint64_t>;  // with its process
  std::map<Handle, uint32_t> streams;
  std::map<Handle, uint32_t> pools;
  const auto number_of = [](std::map<Handle, uint32_t>& numbers, Handle handle) {
    const auto next = static_cast<uint32_t>(numbers.size() + 1);
    return handle.second == 0 ? 0 : numbers.try_emplace(handle, next).first->second;
  };
  for (uint32_t index = 0; index < recording_.objects.size(); ++index) {
    const RecordedObject& object = recording_.objects[index];
    if (object.taken == 0 || object.device < 0) continue;
    pools_[index] = number_of(pools, {object.process, object.part_of});
    if (object.begin_call == kNone) continue;
    const auto stream = argument_named(recording_, recording_.calls[object.begin_call], "stream");
    if (!stream.empty()) streams_[index] = number_of(streams, {object.process, stream[0]});
  }
}

// Once for each stack; the same list from then on.
void TorchSnapshot::write_frames(uint32_t stack, uint32_t call) {
  constexpr uint64_t kByFunction = uint64_t{1} << 32;
  uint64_t key = stack;
  if (stack == kNone && call != kNone) key = kByFunction | recording_.calls[call].function;
  if (const auto written = frames_.find(key); written != frames_.end()) {
    return pickle_.again(written->second);
  }
  pickle_.begin_list();
  for (const StackLine& line : stack_lines(recording_, stack, call)) {
    pickle_.begin_dict();
    pickle_.text("filename");
    pickle_.text(line.file);
    write_number("line", std::min<uint64_t>(line.line, INT32_MAX));
    pickle_.text("name");
    pickle_.text(line.function);
    pickle_.end();
  }
  pickle_.end();
  frames_[key] = pickle_.remember();
}

void TorchSnapshot::write_time_and_frames(const DeviceMemoryEvent& event) {
  write_number("time_us", recording_.wall_clock / 1000 + event.time / 1000);
  pickle_.text("frames");
  write_frames(event.stack, event.call);
}

void TorchSnapshot::write_entry(const DeviceMemoryEvent& event, const char* action,
                                uint64_t bytes) {
  pickle_.begin_dict();
  pickle_.text("action");
  pickle_.text(action);
  write_number("addr", places_[event.object]);
  write_number("size", bytes);
  write_number("stream", streams_[event.object]);
  write_time_and_frames(event);
  pickle_.end();
}

// One viewer wants an address of every entry.
void TorchSnapshot::write_refusal(const DeviceMemoryEvent& event, uint64_t in_use) {
  const RecordedThread& thread = recording_.threads[recording_.calls[event.call].thread];
  const uint64_t capacity = recording_.processes[thread.process].device_memory;
  pickle_.begin_dict();
  pickle_.text("action");
  pickle_.text("oom");
  write_number("addr", 0);
  write_number("size", event.bytes);
  write_number("device_free", capacity - std::min(in_use, capacity));
  write_number("stream", 0);
  write_time_and_frames(event);
  pickle_.end();
}

void TorchSnapshot::write_trace(const std::vector<uint32_t>& events) {
  uint64_t in_use = 0;
  pickle_.begin_list();
  for (const uint32_t index : events) {
    const DeviceMemoryEvent& event = events_[index];
    if (event.action == MemoryAction::kRefused) {
      write_refusal(event, in_use);
      continue;
    }
    const uint64_t requested_bytes = requested(recording_.objects[event.object]);
    Use& use = uses_[event.object];
    switch (event.action) {
      case MemoryAction::kTaken:
        in_use += event.bytes;
        write_entry(event, "segment_alloc", event.bytes);
        break;
      case MemoryAction::kUsed:
        use = {true, event.stack, event.call};
        write_entry(event, "alloc", requested_bytes);
        break;
      case MemoryAction::kUnused:
        use.is_used = false;
        write_entry(event, "free_requested", requested_bytes);
        write_entry(event, "free_completed", requested_bytes);
        break;
      default:
        in_use -= event.bytes;
        write_entry(event, "segment_free", event.bytes);
        break;
    }
  }
  pickle_.end();
}

void TorchSnapshot::write_traces() {
  std::vector<std::vector<uint32_t>> by_device(1);
  for (uint32_t index = 0; index < events_.size(); ++index) {
    if (!is_shown(events_[index])) continue;
    const auto device = static_cast<size_t>(events_[index].device);
    if (device >= by_device.size()) by_device.resize(device + 1);
    by_device[device].push_back(index);
  }
  pickle_.begin_list();
  for (const std::vector<uint32_t>& events : by_device) write_trace(events);
  pickle_.end();
}

void TorchSnapshot::write_segment(uint32_t index) {
  const RecordedObject& object = recording_.objects[index];
  const Use& use = uses_[index];
  const uint64_t active = use.is_used ? object.taken : 0;
  const bool is_block = recording_.object_kinds[object.kind] == "physical block";
  pickle_.begin_dict();
  write_number("device", static_cast<uint64_t>(object.device));
  write_number("address", places_[index]);
  write_number("total_size", object.taken);
  write_number("allocated_size", active);
  write_number("active_size", active);
  write_number("requested_size", use.is_used ? requested(object) : 0);
  write_number("stream", streams_[index]);
  pickle_.text("segment_type");
  pickle_.text(object.taken > kMiB ? "large" : "small");
  pickle_.text("segment_pool_id");
  pickle_.pair(0, pools_[index]);
  pickle_.text("is_expandable");
  pickle_.boolean(is_block);
  pickle_.text("frames");
  write_frames(object.stack, object.begin_call);
  pickle_.text("blocks");
  pickle_.begin_list();
  pickle_.begin_dict();
  write_number("address", places_[index]);
  write_number("size", object.taken);
  write_number("requested_size", requested(object));
  pickle_.text("state");
  pickle_.text(use.is_used ? "active_allocated" : "inactive");
  pickle_.text("frames");
  if (use.is_used) {
    write_frames(use.stack, use.call);
  } else {
    write_frames(kNone, kNone);
  }
  pickle_.end();
  pickle_.end();
  pickle_.end();
}

void TorchSnapshot::write_segments() {
  pickle_.begin_list();
  for (uint32_t index = 0; index < recording_.objects.size(); ++index) {
    const RecordedObject& object = recording_.objects[index];
    if (object.end != kStillAlive || object.device >= kMostDevices) continue;
    if (places_[index] != kNowhere) write_segment(index);
  }
  pickle_.end();
}

// The traces first: they tell what is in use at the end.
std::string TorchSnapshot::write() {
  number_streams_and_pools();
  pickle_.begin_dict();
  pickle_.text("device_traces");
  write_traces();
  pickle_.text("segments");
  write_segments();
  pickle_.end();
  return pickle_.finish();
}

}  // namespace

std::string torch_snapshot(const Recording& recording) { return TorchSnapshot(recording).write(); }

}  // namespace understudy::command
