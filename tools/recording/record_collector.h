// SPDX-License-Identifier: Apache-2.0
//
// Records of calls, objects and tasks as the chunks hold them, brought into vectors: with ticks for
// times, and functions, stacks and kinds as their process counts them. Which call made an object or
// queued a task follows from the order of the records of a thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/recording_format.h"
#include "tools/recording/recorded_bytes.h"
#include "tools/recording/recorded_lives.h"
#include "tools/recording/recorded_tasks.h"
#include "tools/recording/recording.h"
#include "tools/recording/recording_clock.h"

namespace understudy::command {

// Whether a record has the words that its kind needs.
bool is_complete(std::span<const uint64_t> record);

class RecordCollector {
 public:
  // Adds calls, threads, streams and words to the recording.
  RecordCollector(Recording& recording, RecordingClock& clock)
      : recording_(recording), clock_(clock), bytes_(recording) {}

  // What follows was written by this thread.
  void begin_thread(uint32_t process, uint32_t number);
  // Any record but a definition.
  void add(uint32_t process, std::span<const uint64_t> record);
  // The thread was inside of a call when it wrote last. A moment that makes no sense is ignored.
  void note_open_call(uint64_t function, uint64_t since);
  // A part of all records is there: makes room for the rest.
  void expect_times(double factor);

  std::vector<ObjectRecord>& objects() { return objects_; }
  std::vector<TaskRecord>& queued() { return queued_; }
  std::vector<TaskRecord>& run() { return run_; }
  uint64_t damaged() const { return damaged_; }

 private:
  // A record that waits for the call it was made in.
  struct Pending {
    uint64_t tick;
    uint32_t record;
    bool is_task;  // else an object's
  };

  void add_call(std::span<const uint64_t> words);
  void add_object(uint32_t process, std::span<const uint64_t> words);
  void add_queued(uint32_t process, std::span<const uint64_t> words);
  void add_run(uint32_t process, std::span<const uint64_t> words);
  uint32_t stream(uint32_t process, uint64_t word);
  bool is_plausible(uint64_t tick);
  // Whether something that began at a plausible moment may have taken so long.
  bool is_plausible(uint64_t begin, uint64_t duration);

  Recording& recording_;
  RecordingClock& clock_;
  BytesCollector bytes_;
  std::unordered_map<uint64_t, uint32_t> threads_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> streams_;
  std::vector<std::vector<Pending>> pending_;  // of each thread
  uint32_t thread_ = 0;                        // of the records that are read
  std::pair<uint32_t, uint64_t> last_stream_key_{kNone, 0};
  uint32_t last_stream_ = 0;
  std::vector<ObjectRecord> objects_;
  std::vector<TaskRecord> queued_;
  std::vector<TaskRecord> run_;
  uint64_t damaged_ = 0;
};

}  // namespace understudy::command
