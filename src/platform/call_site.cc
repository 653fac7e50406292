// SPDX-License-Identifier: Apache-2.0
#include "platform/call_site.h"

#include <dlfcn.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <new>
#include <string_view>

#include "base/virtual_range.h"

#if defined(US_HAS_LIBBACKTRACE)
// libbacktrace, a part of the compiler, whose header only the compiler itself finds.
struct backtrace_state;
extern "C" {
using backtrace_error_callback = void (*)(void* data, const char* message, int number);
using backtrace_full_callback = int (*)(void* data, uintptr_t address, const char* file, int line,
                                        const char* function);
backtrace_state* backtrace_create_state(const char* file, int threaded,
                                        backtrace_error_callback on_error, void* data);
int backtrace_pcinfo(backtrace_state* state, uintptr_t address, backtrace_full_callback callback,
                     backtrace_error_callback on_error, void* data);
}
#endif

namespace understudy::platform {

namespace {

std::string_view file_name(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

#if defined(US_HAS_LIBBACKTRACE)

void ignore_error(void*, const char*, int) {}

// The first one, which is the innermost of functions that were inlined. Called by C.
int keep_place(void* kept, uintptr_t, const char* file, int line, const char*) noexcept {
  if (file == nullptr) return 0;
  try {
    *static_cast<std::string*>(kept) = std::string(file_name(file)) + ":" + std::to_string(line);
  } catch (const std::bad_alloc&) {
    return 1;  // as if there were none
  }
  return 1;
}

// What was read of the program's debug information; never destroyed.
backtrace_state* debug_information() {
  static constinit std::atomic<backtrace_state*> made{nullptr};
  if (backtrace_state* const state = made.load(std::memory_order_acquire)) return state;
  backtrace_state* const fresh = backtrace_create_state(nullptr, 1, ignore_error, nullptr);
  backtrace_state* faster = nullptr;
  return made.compare_exchange_strong(faster, fresh) ? fresh : faster;
}

// Empty if there is no debug information.
std::string place_in_source(uintptr_t address) {
  std::string place;
  if (backtrace_state* const state = debug_information()) {
    backtrace_pcinfo(state, address, keep_place, ignore_error, &place);
  }
  return place;
}

#else

std::string place_in_source(uintptr_t) { return {}; }

#endif

}  // namespace

std::string call_site_of(uintptr_t return_address) {
  Dl_info object;
  if (dladdr(to_pointer(return_address), &object) == 0) return {};
  if (object.dli_fname == nullptr) return {};
  char offset[32];
  snprintf(offset, sizeof offset, "+0x%" PRIxPTR,
           return_address - reinterpret_cast<uintptr_t>(object.dli_fbase));
  return std::string(file_name(object.dli_fname)) + offset;
}

std::string source_place_of(uintptr_t return_address) {
  // An address in the call, not behind it.
  std::string place = place_in_source(return_address - 1);
  return place.empty() ? call_site_of(return_address) : place;
}

}  // namespace understudy::platform
