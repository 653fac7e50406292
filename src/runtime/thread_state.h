// SPDX-License-Identifier: Apache-2.0
//
// What belongs to one thread: its current context, its last error, and the texts of its errors.
// Made at the thread's first call and freed at its end; a call from a later destructor of the
// thread makes a fresh one that stays.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/error.h"
#include "runtime/context.h"

namespace understudy {

// Texts of errors, newest first, until someone asks for them. Old ones go when it gets too many. A
// text is dated once a later call of the same function has succeeded.
class ErrorTexts {
 public:
  // `function` is a literal, the same one for all calls of a function.
  void add(const char* function, const Error& error);
  // The texts, a line each, and forgets them: the newest, and older ones that are not dated. Empty
  // if there are none.
  std::string take();
  // A call of the function has succeeded.
  void note_success(const char* function) noexcept;
  // The functions whose success would date a text, a bit each; several may have the same.
  uint64_t awaited() const;

 private:
  static constexpr size_t kMaxTexts = 64;
  struct Text {
    const char* function;
    bool is_dated;
    std::string text;
  };
  std::deque<Text> texts_;
};

inline uint64_t bit_of_function(const char* function) {
  constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;
  return uint64_t{1} << (reinterpret_cast<uintptr_t>(function) * kSpread >> 58);
}

struct ThreadState {
  ContextReference context;
  StreamReference limits_stream;  // whose limits this thread uses
  int32_t last_error = 0;
  ErrorTexts texts;
  std::string returned_text;  // what aclGetRecentErrMsg last pointed to
};

// Null before the thread's first call, and after its end.
extern thread_local constinit ThreadState* own_thread_state [[gnu::tls_model("initial-exec")]];
[[gnu::cold]] ThreadState& make_thread_state();
inline ThreadState& thread_state() {
  if (own_thread_state != nullptr) [[likely]]
    return *own_thread_state;
  return make_thread_state();
}

// The functions that failed on this thread and whose next success is to be noted, a bit each. All
// that a successful call looks at: nearly always it is 0.
extern thread_local constinit uint64_t awaited_successes [[gnu::tls_model("initial-exec")]];

}  // namespace understudy
