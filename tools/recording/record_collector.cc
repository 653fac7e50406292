// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/record_collector.h"

namespace understudy::command {

namespace {

// No server has as many; the device of a damaged record may be any number.
constexpr int32_t kMostDevices = 1024;
constexpr int32_t kNoDevice = -1;

// Words of each kind of record, with the head: the fewest that make sense.
size_t fewest_words(RecordKind kind) {
  switch (kind) {
    case RecordKind::kThread:
      return 1;
    case RecordKind::kCall:
    case RecordKind::kObjectEnd:
    case RecordKind::kObjectHandle:
    case RecordKind::kObjectsEnd:
      return 3;
    case RecordKind::kObjectBegin:
      return 7;
    case RecordKind::kQueued:
      return 4;
    case RecordKind::kTask:
      return 8;
    case RecordKind::kDefinition:
    case RecordKind::kPointed:
      return 2;
  }
  return 1;
}

template <typename Record>
void reserve_times(std::vector<Record>& records, double factor) {
  records.reserve(static_cast<size_t>(static_cast<double>(records.size()) * factor));
}

}  // namespace

bool is_complete(std::span<const uint64_t> record) {
  return record.size() >= fewest_words(RecordHead::unpack(record[0]).kind);
}

void RecordCollector::begin_thread(uint32_t process, uint32_t number) {
  const auto [found, is_new] = threads_.try_emplace(
      uint64_t{process} << 32 | number, static_cast<uint32_t>(recording_.threads.size()));
  if (is_new) {
    RecordedThread& added = recording_.threads.emplace_back();
    added.process = process;
    added.number = number;
    pending_.emplace_back();
  }
  thread_ = found->second;
}

uint32_t RecordCollector::stream(uint32_t process, uint64_t word) {
  const std::pair key(process, word);
  if (key == last_stream_key_) return last_stream_;
  const auto [found, is_new] =
      streams_.try_emplace(key, static_cast<uint32_t>(recording_.streams.size()));
  if (is_new) {
    recording_.streams.push_back({.process = process,
                                  .index = static_cast<uint32_t>(word),
                                  .generation = static_cast<uint32_t>(word >> 32)});
  }
  last_stream_key_ = key;
  last_stream_ = found->second;
  return last_stream_;
}

bool RecordCollector::is_plausible(uint64_t tick) {
  if (!clock_.is_known()) clock_.begin_at(tick);
  return clock_.is_plausible(tick);
}

bool RecordCollector::is_plausible(uint64_t begin, uint64_t duration) {
  return duration <= UINT64_MAX - begin && is_plausible(begin + duration);
}

void RecordCollector::add(uint32_t process, std::span<const uint64_t> record) {
  const RecordHead head = RecordHead::unpack(record[0]);
  if (head.kind == RecordKind::kThread) {
    return begin_thread(process, static_cast<uint32_t>(head.value));
  }
  if (head.kind > RecordKind::kPointed) return;  // of a later version
  if (!is_plausible(record[1])) {
    ++damaged_;
    return;
  }
  switch (head.kind) {
    case RecordKind::kCall:
      return add_call(record);
    case RecordKind::kQueued:
      return add_queued(process, record);
    case RecordKind::kTask:
      return add_run(process, record);
    case RecordKind::kPointed:
      damaged_ += bytes_.add(thread_, record) ? 0 : 1;
      return;
    default:
      return add_object(process, record);
  }
}

void RecordCollector::add_call(std::span<const uint64_t> words) {
  const RecordHead head = RecordHead::unpack(words[0]);
  RecordedCall call;
  call.begin = words[1];
  call.duration = words[2] & kDurationMask;
  if (!is_plausible(call.begin, call.duration)) {
    ++damaged_;
    return;
  }
  call.function = head.detail;
  call.code = head.value;
  call.thread = thread_;
  call.stack = static_cast<uint32_t>(words[2] >> kStackShift);
  call.first_argument = recording_.words.size();
  call.arguments = static_cast<uint32_t>(words.size() - 3);
  recording_.words.insert(recording_.words.end(), words.begin() + 3, words.end());
  const auto number = static_cast<uint32_t>(recording_.calls.size());
  recording_.calls.push_back(call);
  bytes_.attach(thread_, number);
  // What was written since the call began is at the end, less what inner calls took.
  std::vector<Pending>& pending = pending_[thread_];
  while (!pending.empty() && pending.back().tick >= call.begin) {
    const Pending& last = pending.back();
    if (last.tick <= call.begin + call.duration) {
      if (last.is_task) {
        queued_[last.record].task.queued_by = number;
      } else {
        objects_[last.record].call = number;
      }
    }
    pending.pop_back();
  }
}

void RecordCollector::add_object(uint32_t process, std::span<const uint64_t> words) {
  const RecordHead head = RecordHead::unpack(words[0]);
  const bool has_device = head.kind == RecordKind::kObjectBegin;
  if (has_device && (head.value < kNoDevice || head.value >= kMostDevices)) {
    ++damaged_;
    return;
  }
  ObjectRecord record;
  record.tick = words[1];
  record.record = head.kind;
  record.kind = head.detail;
  record.value = head.value;
  record.process = process;
  record.number = words[2];
  if (has_device) {
    record.size = words[3];
    record.taken = words[4];
    record.part_of = words[5];
    record.stack = words[6];
  }
  pending_[thread_].push_back({record.tick, static_cast<uint32_t>(objects_.size()), false});
  objects_.push_back(record);
}

void RecordCollector::add_queued(uint32_t process, std::span<const uint64_t> words) {
  const RecordHead head = RecordHead::unpack(words[0]);
  TaskRecord record;
  record.task.kind = head.detail;
  record.task.begin = words[1];
  record.task.queued = words[1];
  record.task.stream = stream(process, words[2]);
  record.task.position = words[3];
  recording_.streams[record.task.stream].device = head.value;
  pending_[thread_].push_back({words[1], static_cast<uint32_t>(queued_.size()), true});
  queued_.push_back(record);
}

void RecordCollector::add_run(uint32_t process, std::span<const uint64_t> words) {
  const RecordHead head = RecordHead::unpack(words[0]);
  if (!is_plausible(words[1], words[2])) {
    ++damaged_;
    return;
  }
  TaskRecord record;
  RecordedTask& task = record.task;
  task.kind = head.detail;
  task.code = head.value;
  task.begin = words[1];
  task.queued = words[1];
  task.duration = words[2];
  task.has_run = true;
  task.stream = stream(process, words[3]);
  task.position = words[4];
  task.bytes = words[5];
  if (words[6] != 0 || words[7] != 0) {
    record.awaited_stream = stream(process, words[6]);
    record.awaited_position = words[7];
  }
  run_.push_back(record);
}

void RecordCollector::note_open_call(uint64_t function, uint64_t since) {
  if (function == 0 || function > UINT16_MAX || !is_plausible(since)) return;
  recording_.threads[thread_].open_function = static_cast<uint32_t>(function);
  recording_.threads[thread_].open_since = since;
}

void RecordCollector::expect_times(double factor) {
  reserve_times(recording_.calls, factor);
  reserve_times(recording_.words, factor);
  reserve_times(objects_, factor);
  reserve_times(queued_, factor);
  reserve_times(run_, factor);
}

}  // namespace understudy::command
