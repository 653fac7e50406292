// SPDX-License-Identifier: Apache-2.0
//
// Tasks that failed: what the stream remembers until a synchronisation returns it, and the
// observers that hear of it at once.
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

// Called when a task fails, by a thread of the library that holds no lock. One of each kind per
// process; null for none. It must not throw.
using FailureObserver = void (*)(const TaskFailure&);
// In the order in which they hear of it.
enum class ObserverKind : uint8_t { kErrorListener, kCallbacks };
void set_failure_observer(ObserverKind kind, FailureObserver observer);
bool has_failure_observer();
void tell_failure_observers(const TaskFailure& failure);

// The same for the log, which is told at once, and once, by the thread that notices: it must not
// wait, since that may be any thread. Failures that the program asked for are left out.
void set_failure_log(FailureObserver log);
void log_failure(const TaskFailure& failure);

// The first failure stays until a synchronisation takes it; one that `stays` until it is forgotten.
enum class FailureLife : uint8_t { kUntilTaken, kStays };
// The owner of the stream, whose task it was.
void note_failure(Stream& stream, const Error& error, FailureLife life);
// Another thread. Does nothing if it is another stream by now; so do the others.
void note_failure(const StreamReference& reference, const Error& error, FailureLife life);
// What a synchronisation has to return.
Result<void> take_failure(const StreamReference& reference);
// The same without taking it.
Result<void> unreported_failure(const StreamReference& reference);
// What a new task has to be refused with: only failures that stay.
Result<void> lasting_failure(const StreamReference& reference);
void forget_failure(const StreamReference& reference);

}  // namespace understudy
