// SPDX-License-Identifier: Apache-2.0
//
// Whether the library is sanitized. Asked for at run time: most tests run on a sanitized library
// without being sanitized themselves.
#pragma once

#include <dlfcn.h>

namespace understudy_test {

// By name: in a program at a fixed address a weak reference is settled when it is linked.
inline bool has_thread_sanitizer() { return dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr; }
inline bool has_address_sanitizer() { return dlsym(RTLD_DEFAULT, "__asan_init") != nullptr; }

// Sanitizers are slow and need memory: tests do with fewer rounds.
inline const bool kSanitized = has_thread_sanitizer() || has_address_sanitizer();

}  // namespace understudy_test
