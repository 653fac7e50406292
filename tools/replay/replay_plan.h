// SPDX-License-Identifier: Apache-2.0
//
// What a replay is going to do, found out from the recording before anything is called: which calls
// are made, what each may have to wait for, and which values of their arguments stand for things
// that will have other values.
//
// Order: a call may begin once all calls of other threads have ended that had ended in the
// recording when it began. Calls that overlapped may overlap again, so that one that waits for
// another does not keep that from beginning. Calls count by their ends: "the first n have ended" is
// all that a call needs to know.
//
// Values: a thing is what a call made: an allocation, a stream, a token. It is known from the end
// of that call, and what has ended stays known until something new has its value: a wrong use of it
// is the same wrong use again. Two calls that overlapped may have given a value away and handed it
// out anew; which of the two things an argument means is decided here, not by who is faster later.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/recording/recording.h"
#include "tools/replay/call_roles.h"
#include "tools/replay/call_table.h"

namespace understudy::command {

enum class Source : uint8_t {
  kAsRecorded,  // NULL, and wrong values
  kThing,
  kHostMemory,  // of the program, which a recording tells nothing of
};

// What a value stands for.
struct Reference {
  uint64_t offset = 0;  // in the thing
  uint32_t thing = kNone;
  Source source = Source::kAsRecorded;
  bool has_ended = false;  // the thing, in the recording
};

struct ReplayedThing {
  uint32_t process = 0;  // that made it
  uint64_t size = 0;     // bytes at its address; 0: it has none
};

struct PlannedCall {
  uint32_t call = 0;             // in Recording::calls
  uint32_t awaited = 0;          // so many calls have to have ended
  uint32_t place = 0;            // of its own end among them
  uint32_t first_reference = 0;  // in the order of the parameters
  uint32_t first_thing = kNone;  // that it makes
  // A function that it hands to a stream ends when so many calls have ended.
  uint32_t gate = 0;
};

struct PlannedFunction {
  const ReplayedCall* called = nullptr;  // null: it cannot be
  const char* why_not = nullptr;
  std::vector<ParameterRole> roles;
  std::vector<uint32_t> words;  // of a parameter: the first one
};

struct LeftOut {
  uint32_t function = 0;
  std::string why;
  uint64_t calls = 0;
};

struct ReplayedProcess {
  uint64_t host_bytes = 0;    // of the program's memory that a call may touch
  uint32_t needed_until = 0;  // by other processes: how many planned calls have begun by then
  uint32_t over_at = 0;       // so many calls have ended when its last one has
  bool uses_what_ended = false;
  std::vector<uint32_t> threads;  // of Recording::threads, those with calls
};

struct ReplayedThread {
  std::vector<uint32_t> calls;  // positions in the plan's
  // A device that it used before it chose one: the choice was made before the recording begins, or
  // by the library, whose thread it is. -1: none.
  int32_t device = -1;
};

struct ReplayPlan {
  std::vector<PlannedCall> calls;       // by their beginning
  std::vector<ReplayedThread> threads;  // of Recording::threads
  std::vector<Reference> references;
  std::vector<ReplayedThing> things;
  std::vector<PlannedFunction> functions;  // of Recording::functions
  std::vector<ReplayedProcess> processes;  // of Recording::processes
  std::vector<LeftOut> left_out;           // the most calls first
};

// Whether calls may be missing in the recording.
bool is_incomplete(const Recording& recording);

enum class ReplayedCalls : uint8_t { kAll, kOnlyMemory };

// May throw std::bad_alloc. `recording` may be anything that read_recording returns.
ReplayPlan make_replay_plan(const Recording& recording, ReplayedCalls which);

// The word of a parameter of a call; 0 if the recording has none.
uint64_t recorded_word(const Recording& recording, const RecordedCall& call,
                       const PlannedFunction& function, size_t parameter);
// How many bytes a parameter is about.
uint64_t recorded_bytes(const Recording& recording, const RecordedCall& call,
                        const PlannedFunction& function, const ParameterRole& role);
// The same of an element of an array of addresses, in an array that the call also has.
uint64_t recorded_element_bytes(const Recording& recording, uint32_t call,
                                const ParameterRole& role, size_t element);
// A text that is an argument; null for NULL.
const std::string* recorded_text(const Recording& recording, uint64_t word);

}  // namespace understudy::command
