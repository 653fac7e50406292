// SPDX-License-Identifier: Apache-2.0
//
// What a recorder has of one recording, and what a thread has of it. The inside of recorder.h.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "observe/recorder.h"
#include "observe/recording_definitions.h"
#include "observe/recording_file.h"
#include "observe/recording_use.h"
#include "platform/host_facts.h"
#include "platform/tick_clock.h"

namespace understudy {

// The part of a chunk that a thread has not written yet, and where the thread is.
struct Recorder::ThreadPart {
  // Has what is left given back when the thread ends.
  struct Returner {
    ~Returner();
  };

  static thread_local constinit ThreadPart own [[gnu::tls_model("initial-exec")]];

  // Begins anew with another recording: the chunk is of an earlier one, which may be gone.
  void join(uint64_t recording) noexcept {
    generation = recording;
    chunk = nullptr;
    next = nullptr;
    end = nullptr;
    clock_due = 0;
    stack = 0;
  }

  uint64_t generation = 0;  // of the recording that the chunk is of
  ChunkHeader* chunk = nullptr;
  uint64_t* next = nullptr;
  uint64_t* end = nullptr;
  uint64_t clock_due = 0;     // the tick at which the chunk's clocks are read again
  uint64_t moment = 0;        // when the call or task began that the thread is in; 0: none
  uint64_t object_begun = 0;  // the tick of an object that began since; 0: none
  uint32_t stack = 0;         // of the call
  bool is_writing = false;    // what a signal handler calls meanwhile is lost
  bool has_ended = false;     // its destructors ran: what it takes now it gives back at once
};

class Recorder::State {
 public:
  State(RecordingChoice choice, std::string facts, std::unique_ptr<RecordingFile> file)
      : choice_(std::move(choice)), facts_(std::move(facts)), file_(std::move(file)) {}

  // The same file again, for a child of this process. Null if that is not to be had. May throw
  // std::bad_alloc.
  std::unique_ptr<State> for_child() const;
  // `parent`: the process that this one was forked from; 0: it was not.
  void describe_process(int32_t parent);

  int32_t process() const { return process_; }
  const RecordingChoice& choice() const { return choice_; }
  // Tells recordings of a process apart, also where one lies at the address of another.
  uint64_t generation() const { return generation_; }
  bool has_seen_begin(uint64_t tick) const { return tick >= begun_; }
  RecordingFile& file() { return *file_; }
  RecordingDefinitions& definitions() { return definitions_; }

  // Another chunk for the thread. False if there is none.
  [[gnu::cold]] bool change_chunk(ThreadPart& part) noexcept;
  // The thread ends, and the next one goes on in its chunk.
  void leave(ThreadPart& part) noexcept;

  static constinit std::span<const char* const> task_kinds;

  State* next_retired = nullptr;

 private:
  struct Spare {
    ChunkHeader* chunk;
    uint64_t* next;
    uint64_t* end;
  };
  // A chunk with less room than this is not handed on.
  static constexpr ptrdiff_t kUsefulWords = 256;

  static void close(ChunkHeader* chunk) noexcept {
    chunk->state.store(static_cast<uint32_t>(ChunkState::kClosed), std::memory_order_release);
  }
  static void move_open_call(const ChunkHeader& from, ChunkHeader& to) noexcept {
    to.open_since.store(from.open_since.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.open_function.store(from.open_function.load(std::memory_order_relaxed),
                           std::memory_order_release);
  }
  bool take_spare(ThreadPart& part) noexcept;

  const RecordingChoice choice_;
  const std::string facts_;
  const int32_t process_ = platform::process_id();
  static constinit std::atomic<uint64_t> generations_;
  const uint64_t generation_ = generations_.fetch_add(1) + 1;
  const uint64_t begun_ = platform::tick();
  const std::unique_ptr<RecordingFile> file_;
  RecordingDefinitions definitions_{*file_};
  Mutex mutex_{LockRank::kRecording};
  std::array<Spare, 1024> spare_ US_GUARDED_BY(mutex_){};
  size_t spare_count_ US_GUARDED_BY(mutex_) = 0;
};

// What is recorded stays for the life of this, as far as it is the calling thread's affair.
class Recorder::Use {
 public:
  Use() noexcept;
  ~Use() {
    if (record_ == nullptr) return;
    record_->used.store(nullptr, std::memory_order_release);
    if (record_ != own_use_record) [[unlikely]]
      release_use_record(*record_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  // Null if nothing is recorded.
  State* state() const { return state_; }
  State* operator->() const { return state_; }
  State& operator*() const { return *state_; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  State* find() noexcept;

  UseRecord* record_ = nullptr;  // null if it is used around this already
  State* state_ = nullptr;
};

}  // namespace understudy
