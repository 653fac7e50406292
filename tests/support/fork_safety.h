// SPDX-License-Identifier: Apache-2.0
//
// Whether a test may fork a process that has several threads. Sanitizers are asked for at run time:
// most tests run on a sanitized library without being sanitized themselves.
#pragma once

extern "C" void __asan_init() __attribute__((weak));  // NOLINT: the name is the sanitizer's
extern "C" void __tsan_init() __attribute__((weak));  // NOLINT

namespace understudy_test {

// The reason why not; null if it may.
inline const char* why_no_fork_of_threads() {
  if (&__tsan_init != nullptr) {
    return "ThreadSanitizer ends a child that starts a thread if its parent had several";
  }
  if (&__asan_init != nullptr) {
    return "AddressSanitizer's allocator may be locked for ever in a child whose parent had "
           "several "
           "threads";
  }
  return nullptr;
}

}  // namespace understudy_test

#define US_SKIP_UNLESS_THREADS_MAY_FORK()                     \
  if (::understudy_test::why_no_fork_of_threads() != nullptr) \
  GTEST_SKIP() << ::understudy_test::why_no_fork_of_threads()
