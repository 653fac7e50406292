// SPDX-License-Identifier: Apache-2.0
//
// Records what the process does into a file (key `trace`, recording_format.h): public calls with
// their arguments, lives of objects, tasks of streams. Everything asks `is_recorded` first: where
// nothing is recorded, that test is all that it costs.
//
// Each thread writes a chunk of its own, so that threads never meet but when a chunk is full. A
// chunk that a thread leaves behind is the next new thread's. What numbers stand for (functions,
// stacks, kinds) is defined once per process, in chunks of their own.
//
// A record takes no lock and no heap memory; a new chunk or definition takes a lock that is below
// all others. What finds no room is counted as lost. A fork child goes on in the same file, as a
// process of its own. Any thread may call anything, with any locks.
//
// The program may begin a recording itself, end it, and begin another one, while its threads make
// calls. What a thread uses of a recording it publishes (recording_use.h): the file is given back
// when no thread uses it any more. A call or task that began before a recording is not in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "observe/check.h"
#include "observe/object_life.h"
#include "observe/recording_choice.h"
#include "observe/recording_format.h"
#include "platform/tick_clock.h"

namespace understudy {

// A function and its parameters, for as long as the process lives.
struct CallShape {
  const char* function;
  const char* names;  // as they stand in the source: "out(devPtr), size, policy"
  const char* types;  // a letter each, and the number of words if there are several: "p,u,P4"
};

// A call that has begun.
struct OpenCall {
  uint64_t begun = 0;  // 0: it is not recorded
  // Those of the call around it, which has a callback that makes this one.
  uint64_t outer_moment = 0;
  uint64_t outer_function = 0;
  uint64_t outer_since = 0;
  uint32_t function = 0;
  uint32_t stack = 0;
  uint32_t outer_stack = 0;
};

struct RecordedTaskRun {
  uint16_t kind;
  int32_t code;  // 0: it did what it was to do
  uint64_t begun;
  uint64_t stream;
  uint64_t position;
  uint64_t bytes;
  uint64_t awaited_stream;  // 0 with a position of 0: none
  uint64_t awaited_position;
};

struct NewObject;

class Recorder {
 public:
  Recorder() = delete;

  // From now on the process is recorded. A second choice changes nothing. REQUIRES: a file is
  // chosen.
  // `facts` are lines "key=value" about the process. Fails if the file cannot be used. May throw
  // std::bad_alloc.
  static Result<void> begin(const RecordingChoice& choice, const std::string& facts);
  // The same for the program itself. Fails if the process is recorded already.
  static Result<void> start(RecordingChoice choice, const std::string& facts);
  // Ends what `start` has begun, in this process; a fork child ends what it inherited. Waits a
  // little for threads that are in the middle of a record: what one of those uses is given back
  // with a later start or stop. Fails if there is nothing to end.
  static Result<void> stop();
  static bool records_stacks() noexcept;

  static void begin_call(const CallShape& shape, OpenCall& call) noexcept;
  // Something that an argument leads to, which may be nowhere. Before the end of the call.
  static void note_pointed(const OpenCall& call, unsigned parameter, const void* from,
                           size_t size) noexcept;
  static void end_call(const OpenCall& call, int32_t code,
                       std::span<const uint64_t> arguments) noexcept;
  // A text that is an argument: the number that stands for it, 0 if there is none. `is_good`: the
  // call has read it.
  static uint64_t define_text(const char* text, bool is_good) noexcept;
  // Copies what a pointer of the program leads to, which may be nowhere. False then.
  static bool try_read(const void* from, void* to, size_t size) noexcept;

  static void begin_object(const NewObject& object) noexcept;
  static void add_handle(ObjectKind kind, uint64_t number) noexcept;
  static void end_object(ObjectKind kind, uint64_t number) noexcept;
  static void end_objects(ObjectKind kind, int32_t device, uint64_t part_of) noexcept;

  static void note_queued(uint16_t kind, uint32_t device, uint64_t stream,
                          uint64_t position) noexcept;
  // A task begins on this thread, maybe inside of a call: what it ends, ends at this moment.
  static uint64_t begin_task(uint64_t& outer_moment) noexcept;
  static void end_task(const RecordedTaskRun& task) noexcept;
  static void leave_task(uint64_t outer_moment) noexcept;
  // The words for kinds of tasks. REQUIRES: they live as long as the process.
  static void name_task_kinds(std::span<const char* const> names) noexcept;

 private:
  class State;
  class Use;
  class Writing;
  struct ThreadPart;

  // False if it was begun already.
  static Result<bool> begin_with(const RecordingChoice& choice, const std::string& facts);
  // Makes a fork child's own, if its parent was recorded. May be null.
  static State* join_parent() noexcept;
  static void forget_in_fork_child();
  // Has everything ask the recorder, or not.
  static void renew_flag() noexcept;
  static void retire(State& stopped) noexcept;
  // False if a thread uses one of the retired states.
  static bool try_give_back() noexcept;
  template <size_t kWords>
  static void put(State& state, RecordHead head, const uint64_t (&words)[kWords],
                  std::span<const uint64_t> more = {}) noexcept;
  // When the call or task began that the thread is in; now, if there is none.
  static uint64_t moment(const State& state) noexcept;

  static std::atomic<State*> state_;
  static std::atomic<State*> inherited_;  // of the process that this one was forked from
  static std::atomic<State*> retired_;    // stopped, and not given back yet
  static const bool registered_;
};

}  // namespace understudy
