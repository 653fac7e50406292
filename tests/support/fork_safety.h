// SPDX-License-Identifier: Apache-2.0
//
// Whether a test may fork a process that has several threads.
#pragma once

#include "support/sanitizers.h"

namespace understudy_test {

// The reason why not; null if it may.
inline const char* why_no_fork_of_threads() {
  if (has_thread_sanitizer()) {
    return "ThreadSanitizer ends a child that starts a thread if its parent had several";
  }
  if (has_address_sanitizer()) {
    return "AddressSanitizer's allocator may be locked for ever in a child of a process that had "
           "several threads";
  }
  return nullptr;
}

}  // namespace understudy_test

#define US_SKIP_UNLESS_THREADS_MAY_FORK()                     \
  if (::understudy_test::why_no_fork_of_threads() != nullptr) \
  GTEST_SKIP() << ::understudy_test::why_no_fork_of_threads()
