// SPDX-License-Identifier: Apache-2.0
//
// Puts a recording together: the chunks of each process in the order they were begun, then what
// numbers stand for, then everything in the order of time. Definitions are read last, so that in a
// file that is written still every number that was seen has been defined by then.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tools/recording/chunk_file.h"
#include "tools/recording/record_collector.h"
#include "tools/recording/recorded_lives.h"
#include "tools/recording/recorded_names.h"
#include "tools/recording/recorded_tasks.h"
#include "tools/recording/recording.h"
#include "tools/recording/recording_clock.h"
#include "tools/recording/stable_places.h"

namespace understudy::command {

namespace {

class RecordingReader {
 public:
  explicit RecordingReader(ChunkFile& file) : file_(file), clock_(file.facts()) {}

  Recording read();

 private:
  void find_chunks();
  void read_records();
  void read_definitions();
  std::span<const uint64_t> words_of(ChunkFacts& chunk);

  void sort_calls();
  void resolve_calls();
  void finish_objects();
  void finish_tasks();
  void finish_times();
  void write_notes();

  ChunkFile& file_;
  RecordingClock clock_;
  Recording recording_;
  RecordedNames names_{recording_};
  RecordCollector records_{recording_, clock_};
  std::vector<ChunkFacts> record_chunks_;
  std::vector<ChunkFacts> definition_chunks_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> processes_;
  uint64_t damaged_chunks_ = 0;
  uint64_t damaged_records_ = 0;
  uint64_t vanished_chunks_ = 0;
  uint64_t unmatched_ends_ = 0;
};

void RecordingReader::find_chunks() {
  std::vector<ChunkFacts> chunks;
  for (uint64_t index = 1; index < file_.chunks(); ++index) {
    ChunkFacts chunk;
    if (!file_.read_header(index, chunk)) continue;
    if (chunk.kind != static_cast<uint32_t>(ChunkKind::kRecords) &&
        chunk.kind != static_cast<uint32_t>(ChunkKind::kDefinitions)) {
      ++damaged_chunks_;
      continue;
    }
    chunks.push_back(chunk);
    clock_.add(chunk.clock);
  }
  // Processes in the order they began, as far as their chunks tell.
  std::stable_sort(chunks.begin(), chunks.end(), [](const auto& left, const auto& right) {
    return left.clock.ticks < right.clock.ticks;
  });
  for (const ChunkFacts& chunk : chunks) {
    const auto [found, is_new] = processes_.try_emplace(
        {chunk.process, chunk.process_start}, static_cast<uint32_t>(recording_.processes.size()));
    if (!is_new) continue;
    recording_.processes.emplace_back();
    recording_.processes.back().pid = chunk.process;
    recording_.processes.back().begin = UINT64_MAX;
  }
  // A thread's records are in its chunks in the order of their serials.
  std::stable_sort(chunks.begin(), chunks.end(), [](const auto& left, const auto& right) {
    return std::tie(left.process, left.process_start, left.serial) <
           std::tie(right.process, right.process_start, right.serial);
  });
  for (const ChunkFacts& chunk : chunks) {
    const bool has_records = chunk.kind == static_cast<uint32_t>(ChunkKind::kRecords);
    (has_records ? record_chunks_ : definition_chunks_).push_back(chunk);
  }
}

// Empty if the chunk was written anew.
std::span<const uint64_t> RecordingReader::words_of(ChunkFacts& chunk) {
  const std::span<const uint64_t> words = file_.read_records(chunk);
  ChunkFacts now;
  if (words.empty() && (!file_.read_header(chunk.index, now) || !now.is_same(chunk))) {
    ++vanished_chunks_;
    chunk.open_function = 0;
  }
  return words;
}

void RecordingReader::read_records() {
  constexpr size_t kPart = 16;
  size_t done = 0;
  for (ChunkFacts& chunk : record_chunks_) {
    const uint32_t process = processes_.at({chunk.process, chunk.process_start});
    std::span<const uint64_t> words = words_of(chunk);
    if (++done == record_chunks_.size() / kPart) records_.expect_times(kPart * 1.1);
    if (words.empty() && chunk.open_function == 0) continue;
    records_.begin_thread(process, chunk.thread);
    while (const size_t count = words_of_record(words)) {
      const std::span<const uint64_t> record = words.first(count);
      words = words.subspan(count);
      if (!is_complete(record)) {
        ++damaged_records_;
      } else if (RecordHead::unpack(record[0]).kind != RecordKind::kDefinition) {
        records_.add(process, record);
      }
    }
    if (chunk.state == static_cast<uint32_t>(ChunkState::kOpen)) {
      records_.note_open_call(chunk.open_function, chunk.open_since);
    }
  }
  damaged_records_ += records_.damaged();
}

void RecordingReader::read_definitions() {
  for (ChunkFacts& chunk : definition_chunks_) {
    const uint32_t process = processes_.at({chunk.process, chunk.process_start});
    std::span<const uint64_t> words = words_of(chunk);
    while (const size_t count = words_of_record(words)) {
      const std::span<const uint64_t> record = words.first(count);
      words = words.subspan(count);
      const bool is_definition = RecordHead::unpack(record[0]).kind == RecordKind::kDefinition;
      if (is_definition && is_complete(record)) names_.add(process, record);
    }
  }
}

// By their beginning, the outer before the inner one. Those of one thread that calls nothing from
// inside of a call are in that order.
void RecordingReader::sort_calls() {
  std::vector<RecordedCall>& calls = recording_.calls;
  const auto is_before = [](const RecordedCall& left, const RecordedCall& right) {
    if (left.begin != right.begin) return left.begin < right.begin;
    return left.duration > right.duration;
  };
  if (std::is_sorted(calls.begin(), calls.end(), is_before)) return;
  const std::vector<uint32_t> places = sort_with_places(calls, is_before);
  for (RecordedBytes& bytes : recording_.bytes) bytes.call = places[bytes.call];
  for (ObjectRecord& record : records_.objects()) {
    if (record.call != kNone) record.call = places[record.call];
  }
  for (TaskRecord& record : records_.queued()) {
    if (record.task.queued_by != kNone) record.task.queued_by = places[record.task.queued_by];
  }
}

// Numbers of processes become positions, and ticks nanoseconds.
void RecordingReader::resolve_calls() {
  for (RecordedCall& call : recording_.calls) {
    const uint32_t process = recording_.threads[call.thread].process;
    call.function = names_.function(process, call.function);
    call.stack = names_.stack(process, call.stack);
    size_t word = call.first_argument;
    const size_t end = word + call.arguments;
    for (const Parameter& parameter : recording_.functions[call.function].parameters) {
      if (word >= end) break;
      if (parameter.type == 't') {
        recording_.words[word] = names_.text(process, recording_.words[word]);
      }
      word += parameter.words;
    }
    const uint64_t begin = clock_.nanoseconds(call.begin);
    call.duration = clock_.nanoseconds(call.begin + call.duration) - begin;
    call.begin = begin;
  }
  for (RecordedThread& thread : recording_.threads) {
    thread.name = names_.thread_name(thread.process, thread.number);
    if (thread.open_function == kNone) continue;
    thread.open_function = names_.function(thread.process, thread.open_function);
    thread.open_since = clock_.nanoseconds(thread.open_since);
  }
}

void RecordingReader::finish_objects() {
  unmatched_ends_ = match_lives(records_.objects(), recording_.objects);
  records_.objects() = {};
  for (RecordedObject& object : recording_.objects) {
    object.kind = names_.object_kind(object.process, object.kind);
    object.stack = names_.stack(object.process, object.stack);
    object.begin = clock_.nanoseconds(object.begin);
    // Alive for a moment at least, so that its end comes behind its beginning.
    if (object.end != kStillAlive) {
      object.end = std::max(clock_.nanoseconds(object.end), object.begin + 1);
    }
    // Stacks of objects are those of their calls where they have none of their own.
    if (object.stack == kNone && object.begin_call != kNone) {
      object.stack = recording_.calls[object.begin_call].stack;
    }
  }
}

void RecordingReader::finish_tasks() {
  recording_.tasks = match_tasks(std::move(records_.queued()), std::move(records_.run()));
  for (RecordedTask& task : recording_.tasks) {
    task.kind = names_.task_kind(recording_.streams[task.stream].process, task.kind);
    task.queued = clock_.nanoseconds(task.queued);
    const uint64_t end = clock_.nanoseconds(task.begin + task.duration);
    task.begin = clock_.nanoseconds(task.begin);
    task.duration = end - task.begin;
  }
}

void RecordingReader::finish_times() {
  const auto extend = [&](uint32_t process, uint64_t begin, uint64_t end) {
    RecordedProcess& extended = recording_.processes[process];
    extended.begin = std::min(extended.begin, begin);
    extended.end = std::max(extended.end, end);
    recording_.duration = std::max(recording_.duration, end);
  };
  for (const RecordedCall& call : recording_.calls) {
    extend(recording_.threads[call.thread].process, call.begin, call.begin + call.duration);
  }
  for (const RecordedObject& object : recording_.objects) {
    extend(object.process, object.begin, object.end == kStillAlive ? object.begin : object.end);
  }
  for (const RecordedTask& task : recording_.tasks) {
    extend(recording_.streams[task.stream].process, task.queued, task.begin + task.duration);
  }
  for (const RecordedThread& thread : recording_.threads) {
    if (thread.open_function != kNone) {
      extend(thread.process, thread.open_since, thread.open_since);
    }
  }
  for (RecordedProcess& process : recording_.processes) {
    process.begin = std::min(process.begin, process.end);
  }
}

void RecordingReader::write_notes() {
  const auto note = [&](uint64_t count, const char* one, const char* many) {
    if (count == 0) return;
    recording_.notes.push_back(count == 1 ? std::string("1 ") + one
                                          : std::to_string(count) + " " + many);
  };
  const FileFacts& facts = file_.facts();
  if (facts.chunks > file_.chunks()) {
    recording_.notes.push_back("the file is cut short: it has " + std::to_string(file_.chunks()) +
                               " of " + std::to_string(facts.chunks) + " chunks");
  } else if (file_.bytes() % kChunkBytes != 0) {
    recording_.notes.push_back("the file is cut short in its last chunk");
  }
  note(recording_.lost, "record found no room and is missing",
       "records found no room and are missing");
  note(damaged_chunks_, "chunk is damaged and was left out",
       "chunks are damaged and were left out");
  note(damaged_records_, "record is damaged and was left out",
       "records are damaged and were left out");
  note(vanished_chunks_, "chunk was written anew while it was read",
       "chunks were written anew while they were read");
  note(names_.unknown(), "name is missing", "names are missing");
  // Objects from before a recording that the program began are not in it.
  if ((facts.flags & (kRingRecording | kBegunByProgram)) == 0 && recording_.lost == 0) {
    note(unmatched_ends_, "object ended whose beginning is missing",
         "objects ended whose beginnings are missing");
  }
}

Recording RecordingReader::read() {
  const FileFacts& facts = file_.facts();
  recording_.wall_clock = facts.wall_clock;
  recording_.lost = facts.lost;
  recording_.is_ring = (facts.flags & kRingRecording) != 0;
  recording_.is_part = (facts.flags & kBegunByProgram) != 0;
  recording_.has_stacks = (facts.flags & kRecordsStacks) != 0;
  find_chunks();
  if (!clock_.is_known()) {
    recording_.notes.emplace_back("the clocks of the recording are damaged; times are rough");
  }
  read_records();
  read_definitions();
  sort_calls();
  sort_bytes(recording_.bytes);
  resolve_calls();
  finish_objects();
  finish_tasks();
  finish_times();
  write_notes();
  return std::move(recording_);
}

}  // namespace

Result<Recording> read_recording(const std::string& path) {
  US_TRY_ASSIGN(ChunkFile file, ChunkFile::open(path));
  return RecordingReader(file).read();
}

}  // namespace understudy::command
