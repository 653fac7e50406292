// SPDX-License-Identifier: Apache-2.0
//
// Threads that have nothing to do and may help with a large copy. Who asks does not wait for them:
// it works itself, and withdraws what nobody took.
#pragma once

#include <span>

namespace understudy {

// Work that another thread may do for its owner. It is the owner's until it is offered, and again
// when it was withdrawn.
struct Errand {
  void (*work)(void*) = nullptr;
  void* argument = nullptr;
  Errand* next = nullptr;
  enum class State { kOffered, kTaken, kDone } state = State::kOffered;
};

class CopyHelpers {
 public:
  static constexpr unsigned kMostHelpers = 3;

  // How many errands it makes sense to offer at a time; 0 where there is one processor.
  virtual unsigned most_helpers() const = 0;
  // Lets idle threads take the errands, each one at most.
  virtual void offer(std::span<Errand> errands) noexcept = 0;
  // Returns when nobody does any of them, and nobody will.
  virtual void withdraw(std::span<Errand> errands) noexcept = 0;
  // A helper is to leave early: the threads are wanted elsewhere.
  virtual bool has_other_work() const noexcept = 0;

 protected:
  ~CopyHelpers() = default;
};

}  // namespace understudy
