// SPDX-License-Identifier: Apache-2.0
//
// The reader of recordings: what it makes of correct files, and that it survives all others.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <span>

#include "platform/unique_fd.h"
#include "tools/recording/recording.h"
#include "tools/recording/summary.h"
#include "unit/recording/recording_builder.h"
#include "unit/temporary_directory.h"

namespace understudy::command {
namespace {

using Builder = RecordingBuilder;

constexpr uint16_t kMalloc = 1;
constexpr uint16_t kReset = 2;
constexpr uint16_t kAllocation = 0;
constexpr uint16_t kMapping = 1;
constexpr uint16_t kStreamKind = 2;
constexpr uint16_t kCopyTask = 0;
constexpr uint16_t kWaitTask = 1;

void add_definitions(Builder& builder, BuiltProcess process, const std::string& program) {
  builder.begin_chunk(ChunkKind::kDefinitions, process);
  builder.define(
      DefinitionKind::kProcess, 0,
      "pid=1\nparent=99\nprogram=" + program + "\nproduct=a2\ndevices=8\nmemory=68719476736\n");
  builder.define(DefinitionKind::kFunction, kMalloc,
                 "aclrtMalloc(out devPtr:p, size:u, name:t, prop:P2)");
  builder.define(DefinitionKind::kFunction, kReset, "aclrtResetDevice(deviceId:i)");
  builder.define(DefinitionKind::kStack, 5, "fill at kv.cc:41\nmain at kv.cc:80");
  builder.define(DefinitionKind::kText, 9, "layer 3");
  builder.define(DefinitionKind::kObjectKind, kAllocation, "allocation");
  builder.define(DefinitionKind::kObjectKind, kMapping, "mapping");
  builder.define(DefinitionKind::kObjectKind, kStreamKind, "stream");
  builder.define(DefinitionKind::kTaskKind, kCopyTask, "copy");
  builder.define(DefinitionKind::kTaskKind, kWaitTask, "event wait");
  builder.define(DefinitionKind::kThread, static_cast<int32_t>(process.pid), "main");
}

uint64_t took(uint64_t nanoseconds, uint64_t stack = 0) {
  return 2 * nanoseconds | stack << kStackShift;
}

void add_call(Builder& builder, uint16_t function, uint64_t begin, uint64_t duration,
              int32_t code = 0, uint64_t stack = 0) {
  builder.add({RecordKind::kCall, 0, function, code},
              {Builder::tick(begin), took(duration, stack)});
}

void begin_object(Builder& builder, uint16_t kind, int32_t device, uint64_t moment, uint64_t number,
                  uint64_t taken, uint64_t part_of = 0, uint64_t stack = 0) {
  builder.add({RecordKind::kObjectBegin, 0, kind, device},
              {Builder::tick(moment), number, taken, taken, part_of, stack});
}

void end_object(Builder& builder, uint16_t kind, uint64_t moment, uint64_t number) {
  builder.add({RecordKind::kObjectEnd, 0, kind, 0}, {Builder::tick(moment), number});
}

// A file that can be changed in places and read again.
class RecordingOnDisk {
 public:
  explicit RecordingOnDisk(std::string bytes)
      : bytes_(std::move(bytes)), file_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    restore();
  }

  const std::string& path() const { return path_; }
  const std::string& bytes() const { return bytes_; }
  void restore() { put(0, bytes_); }
  void put(size_t offset, std::string_view bytes) {
    ASSERT_EQ(pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
  }
  void put_word(size_t offset, uint64_t word) {
    put(offset, {reinterpret_cast<const char*>(&word), sizeof word});
  }
  void put_back(size_t offset, size_t count) {
    put(offset, std::string_view(bytes_).substr(offset, count));
  }
  void cut(size_t size) { ASSERT_EQ(ftruncate(file_.get(), static_cast<off_t>(size)), 0); }

 private:
  std::string bytes_;
  TemporaryDirectory directory_;
  std::string path_ = directory_.at("recording");
  platform::UniqueFd file_;
};

Recording read_built(const Builder& builder) {
  const RecordingOnDisk file(builder.bytes());
  Result<Recording> recording = read_recording(file.path());
  EXPECT_TRUE(recording.ok()) << recording.error().text();
  return recording.ok() ? std::move(recording.value()) : Recording();
}

template <typename Entry>
size_t room_of(const std::vector<Entry>& entries) {
  return entries.capacity() * sizeof(Entry);
}

bool is_place(uint32_t place, size_t count) { return place == kNone || place < count; }

// What recording.h promises of any recording.
void expect_consistent(const Recording& recording, size_t file_bytes) {
  uint64_t last = 0;
  for (const RecordedCall& call : recording.calls) {
    ASSERT_LT(call.function, recording.functions.size());
    ASSERT_LT(call.thread, recording.threads.size());
    ASSERT_TRUE(is_place(call.stack, recording.stacks.size()));
    ASSERT_LE(call.arguments, recording.words.size());
    ASSERT_LE(call.first_argument, recording.words.size() - call.arguments);
    ASSERT_GE(call.begin, last);
    ASSERT_LE(call.duration, recording.duration - call.begin);
    last = call.begin;
  }
  last = 0;
  for (const RecordedObject& object : recording.objects) {
    ASSERT_LT(object.kind, recording.object_kinds.size());
    ASSERT_LT(object.process, recording.processes.size());
    ASSERT_TRUE(is_place(object.stack, recording.stacks.size()));
    ASSERT_TRUE(is_place(object.begin_call, recording.calls.size()));
    ASSERT_TRUE(is_place(object.end_call, recording.calls.size()));
    ASSERT_GE(object.begin, last);
    ASSERT_GT(object.end, object.begin);
    last = object.begin;
  }
  for (const RecordedTask& task : recording.tasks) {
    ASSERT_LT(task.kind, recording.task_kinds.size());
    ASSERT_LT(task.stream, recording.streams.size());
    ASSERT_TRUE(is_place(task.queued_by, recording.calls.size()));
    ASSERT_TRUE(is_place(task.awaited_task, recording.tasks.size()));
    ASSERT_LE(task.queued, task.begin);
    ASSERT_LE(task.duration, recording.duration - task.begin);
  }
  for (const RecordedBytes& bytes : recording.bytes) {
    ASSERT_LT(bytes.call, recording.calls.size());
    ASSERT_LE(bytes.size, recording.pointed.size());
    ASSERT_LE(bytes.first, recording.pointed.size() - bytes.size);
  }
  for (const RecordedStream& stream : recording.streams) {
    ASSERT_LT(stream.process, recording.processes.size());
  }
  for (const RecordedThread& thread : recording.threads) {
    ASSERT_LT(thread.process, recording.processes.size());
    ASSERT_TRUE(is_place(thread.open_function, recording.functions.size()));
  }
  for (const RecordedProcess& process : recording.processes) ASSERT_LE(process.begin, process.end);
  const size_t room =
      room_of(recording.calls) + room_of(recording.objects) + room_of(recording.tasks) +
      room_of(recording.words) + room_of(recording.threads) + room_of(recording.streams) +
      room_of(recording.stacks) + room_of(recording.functions) + room_of(recording.texts) +
      room_of(recording.processes) + room_of(recording.bytes) + room_of(recording.pointed);
  ASSERT_LE(room, 64 * (file_bytes + kChunkBytes));
  const Summary summary = summarize(recording, 16);
  ASSERT_EQ(summary.calls.calls, recording.calls.size());
  ASSERT_EQ(summary.tasks.tasks, recording.tasks.size());
}

// Reads what may be damaged; true if it opened.
bool survives(const RecordingOnDisk& file) {
  const Result<Recording> recording = read_recording(file.path());
  if (!recording.ok()) {
    EXPECT_NE(std::string(recording.error().text()).find(file.path()), std::string::npos);
    return false;
  }
  expect_consistent(recording.value(), file.bytes().size());
  return true;
}

// Two processes with one pid, three threads, every kind of record.
Builder everything() {
  Builder builder;
  const BuiltProcess first{100, 7};
  const BuiltProcess second{100, 8};
  add_definitions(builder, first, "first");
  builder.begin_chunk(ChunkKind::kRecords, first);
  begin_object(builder, kStreamKind, 0, 900, 0x70, 0);
  begin_object(builder, kAllocation, 0, 1'100, 0x1000, 4096, 0, 5);
  builder.add({RecordKind::kPointed, 0, 3, 16}, {Builder::tick(1'000), 11, 12});
  builder.add({RecordKind::kPointed, 0, 3, 4}, {Builder::tick(1'000), 13});
  builder.add({RecordKind::kCall, 0, kMalloc, 0},
              {Builder::tick(1'000), took(200, 5), 0x1000, 4096, 9, 1, 2});
  begin_object(builder, kMapping, 0, 1'300, 0x9000, 0, 0x55);
  builder.add({RecordKind::kObjectHandle, 0, kAllocation, 0}, {Builder::tick(1'400), 0x1000});
  builder.add({RecordKind::kQueued, 0, kCopyTask, 0}, {Builder::tick(1'520), 3, 1});
  add_call(builder, kMalloc, 1'500, 50, 207001);
  builder.add_thread(101);
  builder.add({RecordKind::kTask, 0, kCopyTask, 0},
              {Builder::tick(1'600), 2 * 100, 3, 1, 4096, 0, 0});
  builder.add({RecordKind::kTask, 0, kWaitTask, 12}, {Builder::tick(1'800), 2 * 10, 4, 1, 0, 3, 1});
  end_object(builder, kAllocation, 1'900, 0x1000);
  end_object(builder, kAllocation, 1'950, 0x1000);
  builder.add({RecordKind::kObjectsEnd, 0, kMapping, -1}, {Builder::tick(1'960), 0x55});
  builder.add({RecordKind::kObjectsEnd, 0, kStreamKind, 0}, {Builder::tick(1'970), 0});
  add_definitions(builder, second, "second");
  ChunkHeader& open = builder.begin_chunk(ChunkKind::kRecords, second, 102);
  open.state = static_cast<uint32_t>(ChunkState::kOpen);
  open.open_function = kReset;
  open.open_since = Builder::tick(5'000);
  add_call(builder, kMalloc, 4'000, 100);
  begin_object(builder, kAllocation, 1, 4'500, 0x1000, 8192);
  return builder;
}

TEST(RecordingReader, CallsObjectsAndTasksOfACorrectFile) {
  const Recording recording = read_built(everything());
  EXPECT_TRUE(recording.notes.empty()) << recording.notes.front();
  EXPECT_EQ(recording.wall_clock, Builder::kWallClock);
  ASSERT_EQ(recording.calls.size(), 3U);
  const RecordedCall& call = recording.calls.front();
  EXPECT_EQ(recording.functions.at(call.function).name, "aclrtMalloc");
  EXPECT_EQ(call.begin, 1'000U);
  EXPECT_EQ(call.duration, 200U);
  EXPECT_EQ(recording.stacks.at(call.stack), "fill at kv.cc:41\nmain at kv.cc:80");
  const std::span<const uint64_t> arguments = recording.arguments(call);
  ASSERT_EQ(arguments.size(), 5U);
  EXPECT_EQ(arguments[1], 4096U);
  EXPECT_EQ(recording.texts.at(arguments[2]), "layer 3");
  EXPECT_EQ(recording.calls[1].code, 207001);
  EXPECT_EQ(recording.pointed_by(0, 3).size(), 20U);
  EXPECT_TRUE(recording.pointed_by(0, 2).empty());

  ASSERT_EQ(recording.objects.size(), 4U);
  const RecordedObject& allocation = recording.objects[1];
  EXPECT_EQ(recording.object_kinds.at(allocation.kind), "allocation");
  EXPECT_EQ(allocation.begin_call, 0U);
  EXPECT_EQ(allocation.end, 1'950U) << "it had two handles";
  EXPECT_EQ(recording.objects[0].end, 1'970U) << "all of device 0 ended";
  EXPECT_TRUE(recording.objects[0].ended_unasked);
  EXPECT_EQ(recording.objects[2].end, 1'960U) << "what it was part of ended";
  EXPECT_EQ(recording.objects[3].end, kStillAlive);

  ASSERT_EQ(recording.tasks.size(), 2U);
  EXPECT_EQ(recording.tasks[0].queued, 1'520U);
  EXPECT_EQ(recording.tasks[0].queued_by, 1U);
  EXPECT_EQ(recording.tasks[0].begin, 1'600U);
  EXPECT_EQ(recording.tasks[1].awaited_task, 0U);
  EXPECT_EQ(recording.tasks[1].code, 12);
  expect_consistent(recording, everything().bytes().size());
}

TEST(RecordingReader, ProcessesWithOnePidAreTwo) {
  const Recording recording = read_built(everything());
  ASSERT_EQ(recording.processes.size(), 2U);
  EXPECT_EQ(recording.processes[0].pid, recording.processes[1].pid);
  EXPECT_EQ(recording.processes[0].program, "first");
  EXPECT_EQ(recording.processes[1].program, "second");
  EXPECT_EQ(recording.processes[0].parent, 99U);
  EXPECT_EQ(recording.processes[0].device_memory, uint64_t{64} << 30);
  EXPECT_EQ(recording.objects[3].process, 1U);
  EXPECT_EQ(recording.functions.size(), 2U) << "they share the names of functions";
}

TEST(RecordingReader, ThreadsShareAChunk) {
  const Recording recording = read_built(everything());
  ASSERT_EQ(recording.threads.size(), 3U);
  EXPECT_EQ(recording.threads[0].number, 100U);
  EXPECT_EQ(recording.threads[0].name, "main");
  EXPECT_EQ(recording.threads[1].number, 101U);
  EXPECT_EQ(recording.threads[2].number, 102U);
  EXPECT_EQ(recording.calls[2].thread, 2U);
}

TEST(RecordingReader, OpenCallIsOfTheThreadThatWroteLast) {
  const Recording recording = read_built(everything());
  EXPECT_EQ(recording.threads[0].open_function, kNone);
  ASSERT_NE(recording.threads[2].open_function, kNone);
  EXPECT_EQ(recording.functions[recording.threads[2].open_function].name, "aclrtResetDevice");
  EXPECT_EQ(recording.threads[2].open_since, 5'000U);
}

TEST(RecordingReader, FirstCallOfAThreadMayBeOpen) {
  Builder builder;
  add_definitions(builder, {}, "program");
  ChunkHeader& chunk = builder.begin_chunk(ChunkKind::kRecords, {}, 200);
  chunk.state = static_cast<uint32_t>(ChunkState::kOpen);
  chunk.open_function = kReset;
  chunk.open_since = Builder::tick(70'000);
  const Recording recording = read_built(builder);
  ASSERT_EQ(recording.threads.size(), 1U);
  EXPECT_EQ(recording.threads[0].number, 200U);
  ASSERT_NE(recording.threads[0].open_function, kNone);
}

TEST(RecordingReader, InnerCallsComeBehindOuterOnes) {
  Builder builder;
  add_definitions(builder, {}, "program");
  builder.begin_chunk(ChunkKind::kRecords, {});
  begin_object(builder, kAllocation, 0, 1'200, 1, 64);
  add_call(builder, kMalloc, 1'100, 200);
  begin_object(builder, kAllocation, 0, 1'400, 2, 64);
  add_call(builder, kReset, 1'000, 500);
  const Recording recording = read_built(builder);
  ASSERT_EQ(recording.calls.size(), 2U);
  EXPECT_EQ(recording.calls[0].begin, 1'000U);
  EXPECT_EQ(recording.calls[1].begin, 1'100U);
  EXPECT_EQ(recording.objects[0].begin_call, 1U) << "the inner one made it";
  EXPECT_EQ(recording.objects[1].begin_call, 0U);
  const ThreadFigures thread = summarize(recording, 4).calls.threads.at(0);
  EXPECT_EQ(thread.in_calls, 500U) << "the inner call is part of the outer one";
}

TEST(RecordingReader, CallsOfThreadsAreMergedByTime) {
  Builder builder;
  add_definitions(builder, {}, "program");
  for (uint32_t thread = 1; thread <= 5; ++thread) {
    builder.begin_chunk(ChunkKind::kRecords, {}, thread);
    for (uint64_t call = 0; call < 50; ++call) {
      const uint64_t begin = 1'000 + call * 100 + thread;
      begin_object(builder, kAllocation, 0, begin, thread * 1'000 + call, begin);
      add_call(builder, kMalloc, begin, 50);
    }
  }
  const Recording recording = read_built(builder);
  ASSERT_EQ(recording.calls.size(), 250U);
  expect_consistent(recording, builder.bytes().size());
  for (const RecordedObject& object : recording.objects) {
    ASSERT_NE(object.begin_call, kNone);
    EXPECT_EQ(recording.calls[object.begin_call].begin, object.begin);
    EXPECT_EQ(object.taken, object.begin);
  }
}

TEST(RecordingReader, RingMayLackTheBeginning) {
  Builder builder;
  builder.header().flags = kRingRecording;
  builder.begin_chunk(ChunkKind::kRecords, {});
  end_object(builder, kAllocation, 1'000, 0x1000);
  add_call(builder, kReset, 2'000, 10);
  add_definitions(builder, {}, "program");
  const Recording recording = read_built(builder);
  EXPECT_TRUE(recording.is_ring);
  EXPECT_TRUE(recording.objects.empty());
  EXPECT_TRUE(recording.notes.empty()) << recording.notes.front();
}

TEST(RecordingReader, EndsWithoutBeginningsAreNoted) {
  Builder builder;
  add_definitions(builder, {}, "program");
  builder.begin_chunk(ChunkKind::kRecords, {});
  end_object(builder, kAllocation, 1'000, 0x1000);
  EXPECT_EQ(read_built(builder).notes,
            std::vector<std::string>{"1 object ended whose beginning is missing"});
}

// A reset ends all events first, and each of them then.
TEST(RecordingReader, EndsBehindThatOfTheirGroupAreNotMissingABeginning) {
  Builder builder;
  add_definitions(builder, {}, "program");
  builder.begin_chunk(ChunkKind::kRecords, {});
  begin_object(builder, kStreamKind, 0, 900, 0x70, 0);
  builder.add({RecordKind::kObjectsEnd, 0, kStreamKind, 0}, {Builder::tick(1'000), 0});
  end_object(builder, kStreamKind, 1'000, 0x70);
  const Recording recording = read_built(builder);
  EXPECT_EQ(recording.notes, std::vector<std::string>{});
  ASSERT_EQ(recording.objects.size(), 1U);
  EXPECT_TRUE(recording.objects[0].ended_unasked);
  end_object(builder, kStreamKind, 1'100, 0x70);
  EXPECT_EQ(read_built(builder).notes.size(), 1U);
}

TEST(RecordingReader, NamesThatAreMissingAreMadeUp) {
  Builder builder;
  builder.begin_chunk(ChunkKind::kRecords, {});
  add_call(builder, 77, 1'000, 10, 0, 4);
  begin_object(builder, 9, 0, 1'000, 1, 64);
  const Recording recording = read_built(builder);
  EXPECT_EQ(recording.functions.at(0).name, "function77");
  EXPECT_EQ(recording.object_kinds.at(0), "object kind 9");
  EXPECT_EQ(recording.calls.at(0).stack, kNone);
  EXPECT_EQ(recording.notes, std::vector<std::string>{"2 names are missing"});
}

TEST(RecordingReader, AbsurdNumbersAreDamagedRecords) {
  Builder builder;
  add_definitions(builder, {}, "program");
  builder.begin_chunk(ChunkKind::kRecords, {});
  const auto add_absurd_call = [&](uint64_t begin, uint64_t duration) {
    builder.add({RecordKind::kCall, 0, kMalloc, 0}, {begin, duration});
  };
  add_absurd_call(0, 1);
  add_absurd_call(UINT64_MAX, kDurationMask);
  add_absurd_call(UINT64_MAX - 5, 10);
  builder.add({RecordKind::kTask, 0, kCopyTask, 0},
              {Builder::tick(1'000), UINT64_MAX, 3, 1, UINT64_MAX, 0, 0});
  begin_object(builder, kAllocation, INT32_MIN, 1'000, 1, 1);
  begin_object(builder, kAllocation, INT32_MAX, 1'000, 1, 1);
  builder.add({RecordKind::kObjectBegin, 0, kAllocation, 0}, {Builder::tick(1'000), 1});
  add_call(builder, kMalloc, 1'000, 10);
  const Recording recording = read_built(builder);
  EXPECT_EQ(recording.calls.size(), 1U);
  EXPECT_TRUE(recording.objects.empty());
  EXPECT_EQ(recording.notes, std::vector<std::string>{"7 records are damaged and were left out"});
}

TEST(RecordingReader, SumsOfAbsurdSizesDoNotCrash) {
  Builder builder;
  add_definitions(builder, {}, "program");
  builder.begin_chunk(ChunkKind::kRecords, {});
  for (uint64_t number = 1; number < 40; ++number) {
    begin_object(builder, kAllocation, 0, 1'000 + number, UINT64_MAX / number, UINT64_MAX / 2);
    begin_object(builder, kMapping, 0, 1'000 + number, UINT64_MAX - number * 8, UINT64_MAX / 3, 4);
  }
  expect_consistent(read_built(builder), builder.bytes().size());
}

TEST(RecordingReader, ClocksOfAThousandYearsAreNotBelieved) {
  Builder builder = everything();
  builder.header().second.ticks = UINT64_MAX;
  builder.header().second.nanoseconds = UINT64_MAX;
  builder.chunk().clock.ticks = UINT64_MAX - 3;
  builder.chunk().clock.nanoseconds = UINT64_MAX - 3;
  expect_consistent(read_built(builder), builder.bytes().size());
}

TEST(RecordingReader, DefinitionsMayLie) {
  Builder builder = everything();
  builder.begin_chunk(ChunkKind::kDefinitions, {});
  builder.define(DefinitionKind::kFunction, kMalloc, std::string(3'000, ','));
  builder.define(DefinitionKind::kFunction, kReset, "\xff(\x1b[2J:p999999999999999999999,:t255)");
  builder.define(DefinitionKind::kProcess, 0, "devices=99999999999999999999\n=\nprogram");
  builder.define(DefinitionKind::kStack, 5, "");
  builder.define(static_cast<DefinitionKind>(999), 5, "of a later version");
  builder.add({RecordKind::kDefinition, 0, 1, 3}, {UINT64_MAX});
  expect_consistent(read_built(builder), builder.bytes().size());
}

TEST(RecordingReader, ManyThreadsAndNamesTakeNoMoreThanAMultipleOfTheFile) {
  Builder builder;
  builder.begin_chunk(ChunkKind::kRecords, {});
  for (uint32_t number = 0; number < 8'000; ++number) builder.add_thread(number);
  builder.begin_chunk(ChunkKind::kDefinitions, {});
  for (int32_t number = 0; number < 2'000; ++number) {
    builder.define(DefinitionKind::kTaskKind, number, std::to_string(number));
  }
  const Recording recording = read_built(builder);
  EXPECT_EQ(recording.threads.size(), 8'000U);
  expect_consistent(recording, builder.bytes().size());
}

TEST(RecordingReader, ArraysOfThreadsThatTakeTurnsAreKeptApart) {
  Builder builder;
  builder.begin_chunk(ChunkKind::kRecords, {});
  constexpr uint64_t kParts = 1'000;
  for (uint64_t part = 0; part < kParts; ++part) {
    for (const uint32_t thread : {1U, 2U}) {
      builder.add_thread(thread);
      builder.add({RecordKind::kPointed, 0, 0, 8}, {Builder::tick(thread), thread});
    }
  }
  for (const uint32_t thread : {1U, 2U}) {
    builder.add_thread(thread);
    add_call(builder, kMalloc, thread, 10);
  }
  const Recording recording = read_built(builder);
  expect_consistent(recording, builder.bytes().size());
  EXPECT_EQ(recording.pointed.size(), 2 * kParts * 8) << "each is there once";
  ASSERT_EQ(recording.pointed_by(1, 0).size(), kParts * 8);
  for (uint64_t part = 0; part < kParts; ++part) {
    ASSERT_EQ(recording.pointed_by(1, 0)[8 * part], std::byte{2});
  }
}

TEST(RecordingReader, FilesThatAreNoRecordingsAreRefused) {
  const auto error_of = [](Builder builder) {
    const RecordingOnDisk file(builder.bytes());
    const Result<Recording> recording = read_recording(file.path());
    return recording.ok() ? std::string() : std::string(recording.error().text());
  };
  Builder builder;
  builder.header().version = 2;
  EXPECT_NE(error_of(builder).find("is a recording of version 2; this command reads version 1"),
            std::string::npos);
  builder = Builder();
  builder.header().chunk_bytes = 4096;
  EXPECT_NE(error_of(builder).find("has chunks of 4096 bytes"), std::string::npos);
  builder = Builder();
  builder.header().magic = 1;
  EXPECT_NE(error_of(builder).find("does not begin like one"), std::string::npos);
}

TEST(RecordingReader, TruncatedAtAnyWord) {
  RecordingOnDisk file(everything().bytes());
  const uint64_t end = file.bytes().size() - kChunkBytes + 4096;
  // What follows the records of a chunk is zero: to cut there differs in nothing but the size.
  const auto is_interesting = [](uint64_t size) { return size % kChunkBytes < 2048; };
  for (uint64_t size = end; size > 0; size -= sizeof(uint64_t)) {
    if (!is_interesting(size)) continue;
    file.cut(size);
    EXPECT_EQ(survives(file), size >= sizeof(RecordingHeader)) << size;
  }
}

TEST(RecordingReader, CutFileIsNoted) {
  RecordingOnDisk file(everything().bytes());
  file.cut(2 * kChunkBytes);
  EXPECT_EQ(read_recording(file.path()).value().notes.front(),
            "the file is cut short: it has 2 of 5 chunks");
}

TEST(RecordingReader, EveryByteOfTheHeadersMutated) {
  RecordingOnDisk file(everything().bytes());
  const auto mutate = [&](size_t begin, size_t count) {
    for (size_t offset = begin; offset < begin + count; ++offset) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        const char byte = static_cast<char>(file.bytes()[offset] ^ flip);
        file.put(offset, {&byte, 1});
        survives(file);
      }
      file.put_back(offset, 1);
    }
  };
  mutate(0, sizeof(RecordingHeader));
  for (size_t chunk = 1; chunk < file.bytes().size() / kChunkBytes; ++chunk) {
    mutate(chunk * kChunkBytes, sizeof(ChunkHeader));
  }
}

// UNDERSTUDY_TEST_MUTATIONS asks for more, UNDERSTUDY_TEST_SEED for others.
uint64_t number_of_variable(const char* name, uint64_t usual) {
  const char* const text = getenv(name);
  return text == nullptr ? usual : strtoull(text, nullptr, 10);
}

TEST(RecordingReader, RandomMutations) {
  RecordingOnDisk file(everything().bytes());
  const uint64_t count = number_of_variable("UNDERSTUDY_TEST_MUTATIONS", 2'000);
  const uint64_t seed = number_of_variable("UNDERSTUDY_TEST_SEED", 1);
  std::mt19937_64 random(seed);
  constexpr uint64_t kValues[] = {0,          1,          UINT64_MAX, UINT64_MAX / 2,   UINT32_MAX,
                                  0x00000802, 0x00000803, 0x00000009, uint64_t{1} << 63};
  for (uint64_t round = 0; round < count; ++round) {
    std::vector<size_t> changed;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      // Most of a chunk is empty.
      const size_t chunk = random() % (file.bytes().size() / kChunkBytes);
      const size_t word = random() % (random() % 8 == 0 ? kChunkBytes / 8 : 128);
      const size_t offset = chunk * kChunkBytes + word * sizeof(uint64_t);
      uint64_t value = 0;
      memcpy(&value, file.bytes().data() + offset, sizeof value);
      switch (random() % 4) {
        case 0:
          value = kValues[random() % std::size(kValues)];
          break;
        case 1:
          value ^= uint64_t{1} << random() % 64;
          break;
        case 2:
          value += random() % 64 - 32;
          break;
        default:
          value = random();
          break;
      }
      file.put_word(offset, value);
      changed.push_back(offset);
    }
    survives(file);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", mutation " << round;
    for (const size_t offset : changed) file.put_back(offset, sizeof(uint64_t));
  }
}

}  // namespace
}  // namespace understudy::command
