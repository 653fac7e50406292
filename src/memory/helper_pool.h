// SPDX-License-Identifier: Apache-2.0
//
// Idle threads that help with a large copy. The thread that makes the copy does not wait for them:
// it works itself, and withdraws the work items that no helper took.
#pragma once

#include <span>

namespace understudy {

// A part of a copy that another thread may do. It belongs to the thread that makes the copy before
// it is offered and after it was withdrawn.
struct WorkItem {
  void (*work)(void*) = nullptr;
  void* argument = nullptr;
  WorkItem* next = nullptr;
  enum class State { kOffered, kTaken, kDone } state = State::kOffered;
};

class HelperPool {
 public:
  static constexpr unsigned kMostHelpers = 3;

  // How many items are worth offering at a time; 0 on a machine with one processor.
  virtual unsigned most_helpers() const = 0;
  // Lets idle threads take the items, one each.
  virtual void offer(std::span<WorkItem> items) noexcept = 0;
  // Returns when no thread works on any of them, and none will.
  virtual void withdraw(std::span<WorkItem> items) noexcept = 0;
  // Whether a helper is to leave early, because there are tasks for its thread.
  virtual bool has_other_work() const noexcept = 0;

 protected:
  ~HelperPool() = default;
};

}  // namespace understudy
