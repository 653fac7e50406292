// SPDX-License-Identifier: Apache-2.0
//
// The file of a recording: what the processes of a program called, made and ran, as they write it
// and as the command reads it. One file for all processes, mapped by each. It consists of chunks of
// one size; the first holds the file header. Each other chunk is written by one thread at a time.
//
//   file header | chunk | chunk | ...      chunk: header, record, record, ..., zeros
//
// A record is a few words. Its first word is written last, so that a process that is killed leaves
// whole records; a zero in its place ends the chunk. Numbers are those of the machine that
// recorded. Times are ticks; `ClockPair`s say how long one is. A reader believes nothing of what it
// finds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace understudy {

inline constexpr uint64_t kRecordingMagic = 0x31'43'45'52'55'53'50'4e;  // "NPSUREC1"
inline constexpr uint32_t kRecordingVersion = 1;
inline constexpr uint64_t kChunkBytes = uint64_t{64} << 10;

// The same moment on two clocks. Ticks are 0 if there is none.
struct ClockPair {
  std::atomic<uint64_t> ticks;
  std::atomic<uint64_t> nanoseconds;  // of the machine, since it was started
};

enum RecordingFlags : uint32_t {
  kRingRecording = 1,  // when the file is full, the oldest chunk is written anew
  kRecordsStacks = 2,
  kBegunByProgram = 4,  // objects from before it began may end in it
};

struct RecordingHeader {
  std::atomic<uint64_t> magic;  // written last
  uint32_t version;
  uint32_t flags;  // of RecordingFlags
  uint64_t chunk_bytes;
  uint64_t most_chunks;            // with the first
  std::atomic<uint64_t> chunks;    // that were taken, with the first; the file has them all
  std::atomic<uint64_t> lost;      // records that found no room
  std::atomic<uint64_t> recycled;  // chunks that were written anew
  uint64_t wall_clock;             // nanoseconds since 1970 at `first`
  ClockPair first;
  ClockPair second;  // some microseconds later
  // Of a ring: the chunk that is looked at next for being written anew, counted on and on.
  std::atomic<uint64_t> next_recycled;
};

enum class ChunkKind : uint32_t {
  kRecords = 1,
  kDefinitions = 2,  // what numbers of a process stand for; written anew after all else of it
};

enum class ChunkState : uint32_t {
  kFree = 0,    // taken from the file, and not begun
  kOpen = 1,    // a thread writes it, or did when it was killed
  kClosed = 2,  // nothing writes it any more
};

struct ChunkHeader {
  std::atomic<uint32_t> state;  // of ChunkState
  uint32_t kind;                // of ChunkKind
  uint32_t process;             // its pid
  uint32_t thread;              // that wrote first; see RecordKind::kThread
  uint64_t process_start;       // tells processes with one pid apart
  uint64_t process_namespace;   // in which the pid means it; 0: not known
  uint64_t serial;              // counts chunks of the process, from 1
  ClockPair clock;              // renewed now and then
  // A call that has begun, by its function's number and its first tick; 0: none. A process that
  // was killed in a call is found in it.
  std::atomic<uint64_t> open_function;
  std::atomic<uint64_t> open_since;
};
inline constexpr size_t kChunkHeaderBytes = 128;
static_assert(sizeof(ChunkHeader) <= kChunkHeaderBytes && sizeof(RecordingHeader) <= 4096 &&
              std::is_standard_layout_v<RecordingHeader> &&
              std::atomic<uint64_t>::is_always_lock_free);

enum class RecordKind : uint8_t {
  // The records behind it are of this thread. value: its kernel number
  kThread = 1,
  // detail: function; value: code; words: begin, duration | stack << 40, arguments
  kCall = 2,
  // detail: ObjectKind; value: device or -1; words: tick, number, size, taken, part_of, stack
  kObjectBegin = 3,
  // detail: ObjectKind; value: 1 if the program did not ask for it; words: tick, number
  kObjectEnd = 4,
  // detail: task kind; value: device; words: tick, stream, position
  kQueued = 5,
  // detail: task kind; value: code; words: begin, duration, stream, position, bytes, awaited
  // stream, awaited position
  kTask = 6,
  // detail: DefinitionKind; value: number; words: bytes of text, text
  kDefinition = 7,
  // The program has one more handle of it. detail: ObjectKind; words: tick, number
  kObjectHandle = 8,
  // All of a kind end that are on a device, or part of something. detail: ObjectKind; value: device
  // or -1; words: tick, part_of
  kObjectsEnd = 9,
  // What a parameter of the thread's next call leads to. detail: the parameter; value: bytes;
  // words: begin of the call, content. Several of one parameter continue one another.
  kPointed = 10,
};

// What a definition explains. Texts are UTF-8 and may have zeros at their end.
enum class DefinitionKind : uint16_t {
  kFunction = 1,    // "aclrtMalloc(out devPtr:p, size:u, policy:i)"
  kStack = 2,       // lines, the innermost first: "fill at kv.cc:41", or "kv.py:41 fill"
  kProcess = 3,     // lines "key=value": pid, parent, program, product, devices, memory
  kThread = 4,      // its name
  kTaskKind = 5,    // "copy"
  kObjectKind = 6,  // "allocation"
  kText = 7,        // an argument that is a text
};

// How many bytes are recorded of what a parameter leads to: an array of the longest batch.
inline constexpr uint64_t kMostPointed = uint64_t{128} << 10;

// The stack in the word of a call's duration.
inline constexpr unsigned kStackShift = 40;
inline constexpr uint64_t kDurationMask = (uint64_t{1} << kStackShift) - 1;

// The first word of a record.
struct RecordHead {
  RecordKind kind;
  uint8_t words;  // of the record, with this one; 0: as many as the text of a definition needs
  uint16_t detail;
  int32_t value;

  uint64_t packed() const {
    return static_cast<uint64_t>(kind) | uint64_t{words} << 8 | uint64_t{detail} << 16 |
           uint64_t{static_cast<uint32_t>(value)} << 32;
  }
  static RecordHead unpack(uint64_t word) {
    return {static_cast<RecordKind>(word & 0xff), static_cast<uint8_t>(word >> 8),
            static_cast<uint16_t>(word >> 16),
            static_cast<int32_t>(static_cast<uint32_t>(word >> 32))};
  }
};

// A stream in one word: the number of its slot, and how often that was used before.
constexpr uint64_t recorded_stream(uint32_t index, uint32_t generation) {
  return uint64_t{generation} << 32 | index;
}

}  // namespace understudy
