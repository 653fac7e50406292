// SPDX-License-Identifier: Apache-2.0
//
// A function of the program that hears of failures as they happen. One for the process, also before
// there is a runtime; a fork child starts without one. Where there is none, a failure costs one
// load more, and a success nothing.
//
// The function is called without a lock, on the thread whose call or task failed, and may make
// calls; what fails on that thread meanwhile, it does not hear of. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "runtime/named_callbacks.h"
#include "stream/task_failure.h"

namespace understudy {

class ErrorListener {
 public:
  ErrorListener() = delete;

  // Null for none. Once it returns, no thread is in the one before, which is never called again.
  // Refused inside a listener, which would wait for itself.
  // `tell` tells it of a task that failed: streams take a detour for it only while there is one.
  static Result<void> set(AnyFunction function, void* user_data, FailureObserver tell);

  // Keeps the listener from being replaced, for its lifetime.
  class Use {
   public:
    Use();
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // Null if there is none, or the calling thread is in it.
    AnyFunction function() const { return is_counted_ ? function_ : nullptr; }
    void* user_data() const { return user_data_; }

   private:
    bool is_counted_ = false;
  };

 private:
  static void begin_anew_in_child();

  // A thread counts itself before it reads is_set_, and set() changes that before it reads the
  // count: either the thread sees that there is none, or set() waits for it.
  static std::atomic<bool> is_set_;
  static std::atomic<uint32_t> uses_;
  static std::atomic<bool> is_being_set_;  // one thread at a time
  // Change while nothing is set and no thread uses them.
  static AnyFunction function_;
  static void* user_data_;
  static const bool registered_;
};

}  // namespace understudy
