// SPDX-License-Identifier: Apache-2.0
#include "stream/task_queue.h"

namespace understudy {

TaskQueue::~TaskQueue() {
  delete spare_.load();
  Segment* segment = head_ != nullptr ? head_ : first_.load();
  while (segment != nullptr) delete std::exchange(segment, segment->next);
}

TaskQueue::Segment* TaskQueue::take_segment() {
  Segment* const spare = spare_.exchange(nullptr, std::memory_order_acquire);
  if (spare == nullptr) return new Segment;
  spare->next = nullptr;
  return spare;
}

void TaskQueue::push(const Task& task) {
  if (tail_index_ == kTasksPerSegment) {
    Segment* const fresh = take_segment();
    if (tail_ == nullptr) {
      first_.store(fresh, std::memory_order_release);
    } else {
      tail_->next = fresh;
    }
    tail_ = fresh;
    tail_index_ = 0;
  }
  tail_->tasks[tail_index_++] = task;
}

Task& TaskQueue::front() {
  if (head_ == nullptr) head_ = first_.load(std::memory_order_acquire);
  if (head_index_ == kTasksPerSegment) {
    Segment* const empty = std::exchange(head_, head_->next);
    head_index_ = 0;
    delete spare_.exchange(empty, std::memory_order_acq_rel);
  }
  return head_->tasks[head_index_];
}

void TaskQueue::pop() { ++head_index_; }

}  // namespace understudy
