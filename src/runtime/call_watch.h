// SPDX-License-Identifier: Apache-2.0
//
// Public calls that are watched: told of in the log, made to fail on purpose, or listed by the
// places of the program that make them. A call looks at one word; the rest is for processes whose
// configuration asks for it. A call may be the first of the process: then the configuration is read
// to find out. A runtime that is made later decides anew. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "device/settings.h"
#include "runtime/failure_plan.h"

namespace understudy {

enum CallWatch : uint8_t {
  kUnwatched = 0,
  kUnknownWatch = 1,  // the configuration was not read yet
  kLogged = 2,
  kMayFail = 4,
  kListed = 8,     // its place in the program is put on a list
  kChecked = 16,   // it may begin or end lives of objects (observe/history.h)
  kRecorded = 32,  // it is part of a recording (observe/recorder.h)
};
extern constinit std::atomic<uint8_t> call_watch;  // of CallWatch, added up

inline bool may_watch_calls() { return call_watch.load(std::memory_order_relaxed) != kUnwatched; }

// The beginning of a call whose end is of interest, but not its time.
inline constexpr uint64_t kUntimed = 1;

// Tells when, if it is logged; 0: its end is not of interest.
uint64_t begin_watched_call(const char* function) noexcept;
// Whether planned_failure has something to do.
inline bool may_fail_calls() {
  return (call_watch.load(std::memory_order_relaxed) & (kMayFail | kListed)) != 0;
}
// The failure that is planned for a call that answers a code and moves `bytes`, or 0. The place of
// the call is put on the list, if there is one.
[[gnu::cold]] std::optional<InjectedFailure> planned_failure(const char* function,
                                                             uint64_t bytes) noexcept;
void end_watched_call(const char* function, uint64_t begun, int32_t code) noexcept;

// Records the process from now on, or no longer, because the program wants it. May throw
// std::bad_alloc.
Result<void> start_recording(RecordingChoice choice);
Result<void> stop_recording();

// What the configuration asks for; where it is wrong, what the environment asks for by itself.
// Fails if the checks or the recording cannot begin. May throw std::bad_alloc.
Result<void> choose_call_watch(const Result<Settings>& settings);
// The same for a configuration that may change until there is a runtime. Nothing if it is chosen.
void choose_call_watch_for_now() noexcept;

}  // namespace understudy
