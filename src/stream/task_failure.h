// SPDX-License-Identifier: Apache-2.0
//
// Tasks that failed: what the stream remembers until someone is told, and who wants to hear of it
// at once.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "stream/stream.h"

namespace understudy {

struct TaskFailure {
  unsigned device;
  uint32_t stream;
  uint32_t task;    // its position, as far as 32 bits tell
  uint32_t thread;  // that queued it
  const Error* error;
};

// Called when a task fails, by a thread of the library that holds no lock. One per process; null
// for nobody. It must not throw.
using FailureObserver = void (*)(const TaskFailure&);
void set_failure_observer(FailureObserver observer);
FailureObserver failure_observer();

// The first failure stays until someone takes it; one that `stays` until it is forgotten.
enum class FailureLife : uint8_t { kUntilTaken, kStays };
// The owner of the stream, whose task it was.
void note_failure(Stream& stream, const Error& error, FailureLife life);
// Someone else. Nothing if it is another stream by now; so it is with the others.
void note_failure(const StreamReference& reference, const Error& error, FailureLife life);
// What a synchronisation has to return.
Result<void> take_failure(const StreamReference& reference);
// What a new task has to be refused with: only failures that stay.
Result<void> lasting_failure(const StreamReference& reference);
void forget_failure(const StreamReference& reference);

}  // namespace understudy
