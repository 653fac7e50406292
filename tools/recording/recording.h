// SPDX-License-Identifier: Apache-2.0
//
// A recording as it was read: processes, threads, calls, objects and tasks, in the order of time.
// Plain values; numbers that name another entry are positions in the vectors here. Times are
// nanoseconds since the recording began.
//
// The file may be of a program that runs still, was killed, or is damaged: what can be understood
// is here, and `notes` says in sentences what could not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace understudy::command {

inline constexpr uint32_t kNone = UINT32_MAX;
inline constexpr uint64_t kStillAlive = UINT64_MAX;

// Of a function, as "out devPtr:p" in its definition.
struct Parameter {
  std::string name;
  // u unsigned, i signed, p address, h handle, s stream, t text (a number of a string, see
  // Recording::text), x other pointer (only whether it is NULL matters). Upper case: several words,
  // see recorded_arguments.h of the library: P aclrtPhysicalMemProp, L aclrtMemLocation, ...
  char type = 'u';
  uint8_t words = 1;    // of the arguments of a call
  bool is_out = false;  // the value that the call wrote; if it failed, the address to write to
};

struct RecordedFunction {
  std::string name;  // "aclrtMalloc"
  std::vector<Parameter> parameters;
};

struct RecordedProcess {
  uint32_t pid = 0;
  uint32_t parent = 0;  // its pid
  std::string program;  // with its arguments
  std::string product;
  uint32_t devices = 0;
  uint64_t device_memory = 0;  // of one device, in bytes
  // Keys that its configuration gave a value, the stronger one behind the weaker.
  std::vector<std::pair<std::string, std::string>> given;
  std::optional<std::string> visible_devices;  // its variable ASCEND_RT_VISIBLE_DEVICES
  uint64_t begin = 0;                          // its first record
  uint64_t end = 0;                            // its last
};

struct RecordedThread {
  uint32_t process = 0;
  uint32_t number = 0;  // as the kernel counts them
  std::string name;
  // A call that had not ended when the recording did.
  uint32_t open_function = kNone;
  uint64_t open_since = 0;
};

struct RecordedCall {
  uint64_t begin = 0;
  uint64_t duration = 0;
  uint32_t function = 0;
  int32_t code = 0;
  uint32_t thread = 0;
  uint32_t stack = kNone;
  uint64_t first_argument = 0;  // in Recording::words
  uint32_t arguments = 0;       // how many words
};

// What a parameter of a call led to: an array, a structure.
struct RecordedBytes {
  uint32_t call = 0;
  uint32_t parameter = 0;  // counts from 0
  uint64_t first = 0;      // in Recording::pointed
  uint64_t size = 0;
};

struct RecordedObject {
  uint16_t kind = 0;    // in Recording::object_kinds
  int32_t device = -1;  // -1: none, or the host
  uint32_t process = 0;
  uint32_t stack = kNone;       // that made it
  uint32_t begin_call = kNone;  // that made it
  uint32_t end_call = kNone;
  bool ended_unasked = false;  // by a reset, or with what it was part of
  uint64_t number = 0;         // the handle, or the address
  uint64_t size = 0;
  uint64_t taken = 0;    // bytes of memory that it has, of the device or the host; 0: none
  uint64_t part_of = 0;  // the number of what it belongs to: the block of a mapping
  uint64_t begin = 0;
  uint64_t end = kStillAlive;  // else later than `begin`
};

struct RecordedStream {
  uint32_t process = 0;
  int32_t device = -1;
  uint32_t index = 0;       // as messages name it
  uint32_t generation = 0;  // how many streams had that index before
};

struct RecordedTask {
  uint16_t kind = 0;  // in Recording::task_kinds
  int32_t code = 0;
  uint32_t stream = 0;
  uint64_t position = 0;
  uint64_t queued = 0;
  uint32_t queued_by = kNone;  // the call
  uint64_t begin = 0;
  uint64_t duration = 0;
  bool has_run = false;  // else only `queued` is known
  uint64_t bytes = 0;
  uint32_t awaited_task = kNone;  // that it waited for: the record of an event
};

struct Recording {
  uint64_t wall_clock = 0;  // nanoseconds since 1970 when it began
  uint64_t duration = 0;
  uint64_t lost = 0;     // records that found no room
  bool is_ring = false;  // the beginning may be missing
  bool is_part = false;  // the program began it: what it did before is not in it
  bool has_stacks = false;
  std::vector<std::string> notes;  // what is damaged or missing

  std::vector<RecordedFunction> functions;
  std::vector<std::string> stacks;  // lines, the innermost first
  std::vector<std::string> task_kinds;
  std::vector<std::string> object_kinds;
  std::vector<RecordedProcess> processes;
  std::vector<RecordedThread> threads;
  std::vector<RecordedStream> streams;
  std::vector<RecordedCall> calls;      // by their beginning
  std::vector<RecordedObject> objects;  // by their beginning
  std::vector<RecordedTask> tasks;      // by their beginning, or the moment they were queued
  std::vector<uint64_t> words;
  std::vector<std::string> texts;
  std::vector<RecordedBytes> bytes;  // by call and parameter
  std::vector<std::byte> pointed;

  std::span<const uint64_t> arguments(const RecordedCall& call) const {
    return std::span(words).subspan(call.first_argument, call.arguments);
  }
  // Empty if nothing is known.
  std::span<const std::byte> pointed_by(uint32_t call, uint32_t parameter) const;
};

// Reads a recording. Fails with a sentence if the file cannot be read or is no recording. May throw
// std::bad_alloc.
Result<Recording> read_recording(const std::string& path);

}  // namespace understudy::command
