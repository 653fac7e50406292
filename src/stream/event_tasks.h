// SPDX-License-Identifier: Apache-2.0
//
// What tasks do to events when they run. Each takes the lock of its event, and does nothing where
// the event has ended.
#pragma once

#include "stream/task.h"

namespace understudy {

// The stream got to a record: notes the time, if it is still the latest and has one.
void reach_record(const EventMoment& moment);
// Forgets the record, unless there is a later one.
void reset_event(const EventMoment& moment);

// Binds a wait for a record that was yet to come to the first one since. False if the event has
// ended; the wait stays unbound as long as there is no record.
bool bind(WaitTask& wait);
// Why a wait for a record of another process ends without it.
Error record_lost();
// A wait is over, or was dropped.
void end_wait(const WaitTask& wait);

}  // namespace understudy
