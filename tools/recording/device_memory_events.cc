// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/device_memory_events.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tools/recording/object_wholes.h"
#include "tools/recording/refused_allocations.h"

namespace understudy::command {

namespace {

bool has_device_memory(const RecordedObject& object) {
  return object.taken != 0 && object.device >= 0;
}

bool is_of_kind(const Recording& recording, const RecordedObject& object, const char* kind) {
  return recording.object_kinds[object.kind] == kind;
}

bool is_block(const Recording& recording, const RecordedObject& object) {
  return is_of_kind(recording, object, "physical block");
}

class EventCollector {
 public:
  explicit EventCollector(const Recording& recording) : recording_(recording) {}

  std::vector<DeviceMemoryEvent> collect();

 private:
  void add_lives();
  void add_uses();
  void add_beginning(MemoryAction action, uint32_t memory, uint64_t time,
                     const RecordedObject& life);
  void add_end(MemoryAction action, uint32_t memory, uint64_t time, const RecordedObject& life);
  void keep_first_and_last_uses();

  const Recording& recording_;
  std::vector<DeviceMemoryEvent> events_;
};

void EventCollector::add_beginning(MemoryAction action, uint32_t memory, uint64_t time,
                                   const RecordedObject& life) {
  const RecordedObject& piece = recording_.objects[memory];
  events_.push_back({time, piece.taken, memory, life.begin_call, life.stack, piece.device, action});
}

void EventCollector::add_end(MemoryAction action, uint32_t memory, uint64_t time,
                             const RecordedObject& life) {
  if (time == kStillAlive) return;
  const RecordedObject& piece = recording_.objects[memory];
  const uint32_t stack = life.end_call == kNone ? kNone : recording_.calls[life.end_call].stack;
  events_.push_back({time, piece.taken, memory, life.end_call, stack, piece.device, action});
}

void EventCollector::add_lives() {
  for (uint32_t index = 0; index < recording_.objects.size(); ++index) {
    const RecordedObject& object = recording_.objects[index];
    if (!has_device_memory(object)) continue;
    add_beginning(MemoryAction::kTaken, index, object.begin, object);
    if (!is_block(recording_, object)) {
      add_beginning(MemoryAction::kUsed, index, object.begin, object);
      add_end(MemoryAction::kUnused, index, object.end, object);
    }
    add_end(MemoryAction::kGivenBack, index, object.end, object);
  }
}

// As long as its block has a handle: so memory is counted everywhere.
void EventCollector::add_uses() {
  const std::vector<uint32_t> blocks = blocks_of_mappings(recording_);
  for (uint32_t index = 0; index < recording_.objects.size(); ++index) {
    if (blocks[index] == kNone) continue;
    const RecordedObject& mapping = recording_.objects[index];
    const RecordedObject& block = recording_.objects[blocks[index]];
    const uint64_t end = std::min(mapping.end, block.end);
    if (mapping.begin >= end) continue;
    add_beginning(MemoryAction::kUsed, blocks[index], mapping.begin, mapping);
    add_end(MemoryAction::kUnused, blocks[index], end, mapping.end <= block.end ? mapping : block);
  }
}

// Of overlapping uses, by mappings in several places. A use may begin when another ends: it goes
// on.
void EventCollector::keep_first_and_last_uses() {
  std::vector<uint32_t> uses(recording_.objects.size());
  const auto is_superfluous = [&](const DeviceMemoryEvent& event) {
    if (event.action == MemoryAction::kUsed) return uses[event.object]++ != 0;
    if (event.action == MemoryAction::kUnused) return --uses[event.object] != 0;
    return false;
  };
  events_.erase(std::remove_if(events_.begin(), events_.end(), is_superfluous), events_.end());
}

std::vector<DeviceMemoryEvent> EventCollector::collect() {
  add_lives();
  add_uses();
  for (const RefusedAllocation& refused : refused_allocations(recording_)) {
    const RecordedCall& call = recording_.calls[refused.call];
    const uint64_t rest = UINT64_MAX - call.begin;
    events_.push_back({call.begin + std::min(call.duration, rest), refused.bytes, kNone,
                       refused.call, call.stack, refused.device, MemoryAction::kRefused});
  }
  std::stable_sort(events_.begin(), events_.end(), [](const auto& left, const auto& right) {
    return std::tie(left.time, left.action) < std::tie(right.time, right.action);
  });
  keep_first_and_last_uses();
  return std::move(events_);
}

}  // namespace

std::vector<uint32_t> blocks_of_mappings(const Recording& recording) {
  std::vector<uint32_t> blocks = wholes_of(recording);
  for (uint32_t index = 0; index < blocks.size(); ++index) {
    if (blocks[index] == kNone) continue;
    const RecordedObject& object = recording.objects[index];
    const RecordedObject& whole = recording.objects[blocks[index]];
    const bool uses_block = is_of_kind(recording, object, "mapping") && is_block(recording, whole);
    if (!uses_block || !has_device_memory(whole) || object.begin >= whole.end) {
      blocks[index] = kNone;
    }
  }
  return blocks;
}

std::vector<DeviceMemoryEvent> device_memory_events(const Recording& recording) {
  return EventCollector(recording).collect();
}

}  // namespace understudy::command
