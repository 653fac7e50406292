// SPDX-License-Identifier: Apache-2.0
//
// A task: one thing that a stream does, as plain data of one cache line. Tasks hold addresses and
// numbers, never memory: what they name is looked up when they run.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/deadline.h"
#include "base/virtual_range.h"
#include "memory/transfer.h"
#include "stream/captured_bytes.h"
#include "stream/notify.h"

namespace understudy {

struct Event;
struct Stream;
class DeviceMemory;
class SharedEventLink;

enum class TaskKind : uint8_t {
  kCopy,
  kCopyRows,
  kCopyList,
  kCopyCaptured,   // of bytes that were put aside when the task was queued
  kCopyDescribed,  // as device memory says when the task runs
  kCopyIndirect,   // between addresses that device memory holds when the task runs
  kMemoryHint,     // how memory will be used; changes nothing
  kSet,
  kSetWords,
  kReduce,
  kWriteValue,
  kWaitForValue,
  kRecord,
  kWaitForRecord,
  kWaitForShared,  // for a record that another process made
  kResetEvent,
  kChangeNotify,
  kWaitForNotify,
  kFree,  // of an allocation that is not a pool's
  kHostFunction,
  kReport,  // a callback for a subscribed thread
  kNothing,
};

struct Copy {
  VirtualAddress to = 0;
  VirtualAddress from = 0;
  uint64_t count = 0;
};

// Several copies in one task.
struct ListedCopy {
  Copy copy;
  Sides sides = Sides::kDevices;
};
using CopyList = std::vector<ListedCopy>;

struct CapturedCopy {
  VirtualAddress to;
  CapturedBytes* source;  // deleted with the task
};

// Between addresses that two cells of device memory hold, each with an offset added.
struct IndirectCopy {
  VirtualAddress to_cell;
  uint64_t to_offset;
  VirtualAddress from_cell;
  uint64_t from_offset;
  uint64_t count;
};

struct Fill {
  VirtualAddress to;
  uint64_t count;  // bytes or words
  uint32_t value;
};

// When 64 bits of memory, a, let a stream go on.
enum class ValueCondition : uint8_t {
  kAtLeast,    // a - value >= 0, as signed numbers
  kEqual,      // a == value
  kAnyBitSet,  // (a & value) != 0
  kAnyBitOff,  // ~(a | value) != 0
};

struct ValueTask {
  VirtualAddress address;
  uint64_t value;
  ValueCondition condition;
  uint32_t looks;  // how often it was looked at in vain
};

// An event as it was at one record: `state` tells whether it is still the same event.
struct EventMoment {
  Event* event;
  uint32_t state;
  uint64_t sequence;
};

// A record of an event. `shared` is a user of the link, if other processes are to see it.
struct RecordTask {
  EventMoment moment;
  SharedEventLink* shared;
  uint64_t shared_record;
};

// `shared` is a user of the link.
struct SharedWaitTask {
  SharedEventLink* shared;
  uint64_t record;
  uint32_t limit_seconds;  // 0: none
  uint32_t looks;
  bool has_begun;  // then `deadline` is known
  Deadline deadline;
};

// Waits until `stream` has done the task at `position`; or, if there is no stream, until the event
// is recorded once more than it was.
struct WaitTask {
  Stream* stream;
  uint64_t position;
  EventMoment moment;
  uint32_t limit_seconds;  // 0: none
  bool is_counted;         // the event counts it as a wait that is not over
  bool has_begun;          // then `deadline` is known
  Deadline deadline;
};

// The task is a user of the notify; so is the next one.
struct NotifyChangeTask {
  Notify* notify;
  NotifyChange change;
};

struct NotifyWaitTask {
  Notify* notify;
  NotifyCondition condition;
  uint32_t limit_seconds;  // 0: none
  uint32_t looks;
  bool has_begun;  // then `deadline` is known
  Deadline deadline;
};

// The allocation ends, whether the task runs or is dropped.
struct FreeTask {
  DeviceMemory* memory;
  VirtualRange range;
};

struct UserFunction {
  void (*function)(void*);
  void* argument;
  bool blocks;  // later tasks wait for it
};

struct Task {
  TaskKind kind = TaskKind::kSet;
  uint8_t device = 0;  // on whose behalf
  // A side that is host memory is page-locked, and must still be when the task runs.
  Sides sides = Sides::kDevices;
  uint32_t submitter = 0;  // number of the thread, for observers of failures
  union {
    Copy copy;
    PlaneCopy rows;
    CopyList* list;  // deleted with the task
    CapturedCopy captured;
    VirtualAddress description;  // of a hint: 0 if there is none
    IndirectCopy indirect;
    Fill fill;
    Reduction reduction;
    ValueTask value;
    EventMoment moment;
    WaitTask wait;
    RecordTask record;
    SharedWaitTask shared_wait;
    NotifyChangeTask notify_change;
    NotifyWaitTask notify_wait;
    FreeTask free;
    UserFunction user;
  };

  Task() : fill{} {}
  Task(TaskKind what, unsigned on_device)
      : kind(what), device(static_cast<uint8_t>(on_device)), fill{} {}
};
static_assert(sizeof(Task) == 64 && std::is_trivially_copyable_v<Task>);

// Frees what a task owns, whether it ran or not.
void release_shared_event(Task& task);
void release_notify(Task& task);
inline void release_payload(Task& task) {
  switch (task.kind) {
    case TaskKind::kCopyList:
      delete task.list;
      break;
    case TaskKind::kCopyCaptured:
      delete task.captured.source;
      break;
    case TaskKind::kRecord:
    case TaskKind::kWaitForShared:
      release_shared_event(task);
      break;
    case TaskKind::kChangeNotify:
    case TaskKind::kWaitForNotify:
      release_notify(task);
      break;
    default:
      break;
  }
}

}  // namespace understudy
