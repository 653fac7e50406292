// SPDX-License-Identifier: Apache-2.0
//
// What belongs to one thread: its current context, its last error, and the texts of its errors.
// Made at the thread's first call and freed at its end; a call from a later destructor of the
// thread makes a fresh one that stays.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "runtime/context.h"

namespace understudy {

// Texts of errors, newest first, until someone asks for them. Old ones go when it gets too many.
class ErrorTexts {
 public:
  void add(std::string text);
  // All texts, a line each, and forgets them; empty if there are none.
  std::string take();

 private:
  static constexpr size_t kMaxTexts = 64;
  std::deque<std::string> texts_;
};

struct ThreadState {
  ContextReference context;
  StreamReference limits_stream;  // whose limits this thread uses
  int32_t last_error = 0;
  ErrorTexts texts;
  std::string returned_text;  // what aclGetRecentErrMsg last pointed to
};

ThreadState& thread_state();

}  // namespace understudy
