// SPDX-License-Identifier: Apache-2.0
//
// A queue of tasks in segments: one thread at a time adds, one takes, and they share nothing but
// the count of tasks that the stream publishes. It grows as long as there is memory; a segment
// that was emptied is used again.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "stream/task.h"

namespace understudy {

class TaskQueue {
 public:
  TaskQueue() = default;
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // To be called before the lock under which the `number`-th task is pushed: gets memory for it, if
  // it needs some. May throw for want of it, as push may where others were faster.
  void prepare(uint64_t number) {
    if (number % kTasksPerSegment == 0 && spare_.load(std::memory_order_relaxed) == nullptr) {
      delete spare_.exchange(new Segment, std::memory_order_acq_rel);
    }
  }
  // The caller publishes afterwards that there is one more.
  void push(const Task& task);
  // REQUIRES: a task is published that was not popped.
  Task& front();
  void pop();

 private:
  static constexpr unsigned kTasksPerSegment = 64;
  struct Segment {
    std::array<Task, kTasksPerSegment> tasks;
    Segment* next = nullptr;
  };

  Segment* take_segment();

  // The thread that adds.
  alignas(64) Segment* tail_ = nullptr;
  unsigned tail_index_ = kTasksPerSegment;
  // The thread that takes.
  alignas(64) Segment* head_ = nullptr;
  unsigned head_index_ = 0;
  // Between them: the first segment for the one who takes, and one to be used again.
  alignas(64) std::atomic<Segment*> first_{nullptr};
  std::atomic<Segment*> spare_{nullptr};
};

}  // namespace understudy
