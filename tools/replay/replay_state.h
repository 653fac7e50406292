// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a replay have in common, in memory that they share: how far they are, what
// things of the recording are now, and what came of each call. Made before the processes, which are
// forked; all of it is zero at first. Each entry has one writer at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "tools/replay/call_order.h"
#include "tools/replay/replay_plan.h"

namespace understudy::command {

enum class CallOutcome : uint8_t {
  kNotReached,
  kMade,
  kImpossible,  // what it uses was not made here
};

struct CallResult {
  std::atomic<CallOutcome> outcome;
  int32_t code;
  uint64_t ticks;
};

enum class ThingState : uint8_t { kNotYet, kMade, kNeverMade };

struct ThingNow {
  std::atomic<ThingState> state;
  uint64_t value;
};

// What a thing is to other processes: a token, an event's handle, a key.
using PublicBytes = std::array<char, 136>;

enum class ThreadPhase : uint8_t { kNotStarted, kWaits, kPauses, kCalls, kEnded };

struct ThreadNow {
  std::atomic<ThreadPhase> phase;
  std::atomic<uint32_t> call;  // of the plan
  std::atomic<uint32_t> ended;
  uint64_t identity;  // pthread_self
};

struct ProcessNow {
  std::atomic<int32_t> pid;
  std::atomic<bool> is_to_end;  // when its calls have ended; else it stays to the end of the replay
  std::atomic<bool> has_ended;
};

// A call with another result. The first ones are kept.
struct DifferenceNow {
  std::atomic<bool> is_complete;
  uint32_t call;        // of the plan
  uint64_t free_bytes;  // of its device, where memory was short; 0 with a total of 0: not known
  uint64_t total_bytes;
  std::array<char, 512> sentence;
};
inline constexpr uint32_t kKeptDifferences = 4096;

// Counts what processes tell each other apart from calls.
class Signal {
 public:
  void raise();
  uint32_t value() const { return word_.load(); }
  // Until it is raised above that, or for a moment.
  void wait(uint32_t value) const;

 private:
  std::atomic<uint32_t> word_;
};

struct ReplayHeader {
  CallOrder::Counts counts;
  Signal signal;
  std::atomic<uint32_t> ready;       // processes
  std::atomic<bool> has_begun;       // all are
  std::atomic<uint32_t> unfinished;  // processes
  std::atomic<uint32_t> differences;
  uint64_t begin;                  // machine time
  std::atomic<uint64_t> last_end;  // of a call
  std::array<char, 512> failure;   // of a process that cannot begin
};

class ReplayState {
 public:
  static Result<ReplayState> make(const Recording& recording, const ReplayPlan& plan);

  ReplayHeader& header() const { return *header_; }
  CallResult& result(uint32_t call) const { return results_[call]; }
  ThingNow& thing(uint32_t thing) const { return things_[thing]; }
  PublicBytes& bytes_of(uint32_t thing) const { return bytes_[thing]; }
  ThreadNow& thread(uint32_t thread) const { return threads_[thread]; }
  ProcessNow& process(uint32_t process) const { return processes_[process]; }
  DifferenceNow& difference(uint32_t number) const { return differences_[number]; }
  // Threads wait by their places in the recording; others from `first_other_thread` on.
  CallOrder order() const { return {header_->counts, {ended_, calls_}, {waiting_, words_}}; }
  uint32_t first_other_thread() const { return words_ - kOtherThreads; }

 private:
  static constexpr uint32_t kOtherThreads = 64;  // the library's, in functions of the program

  ReplayState() = default;

  // For as long as the process lives.
  ReplayHeader* header_ = nullptr;
  CallResult* results_ = nullptr;
  ThingNow* things_ = nullptr;
  PublicBytes* bytes_ = nullptr;
  ThreadNow* threads_ = nullptr;
  ProcessNow* processes_ = nullptr;
  DifferenceNow* differences_ = nullptr;
  std::atomic<uint8_t>* ended_ = nullptr;
  std::atomic<uint32_t>* waiting_ = nullptr;
  uint32_t calls_ = 0;
  uint32_t words_ = 0;
};

}  // namespace understudy::command
