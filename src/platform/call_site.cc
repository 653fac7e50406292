// SPDX-License-Identifier: Apache-2.0
#include "platform/call_site.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>

#include "base/mutex.h"
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

// A function as people know it: "Cache::fill", without arguments and what the compiler adds.
std::string readable(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  std::string text = status == 0 && name != nullptr ? name.get() : symbol;
  constexpr std::string_view kNameless = "(anonymous namespace)::";
  for (size_t at = text.find(kNameless); at != std::string::npos; at = text.find(kNameless)) {
    text.erase(at, kNameless.size());
  }
  text.resize(std::min(text.find('('), text.size()));
  return text;
}

#if defined(US_HAS_LIBBACKTRACE)

void ignore_error(void*, const char*, int) {}

// The first one, which is the innermost of functions that were inlined. Called by C.
int keep_place(void* kept, uintptr_t, const char* file, int line, const char* function) noexcept {
  auto& source = *static_cast<SourcePlace*>(kept);
  try {
    if (function != nullptr) source.function = readable(function);
    if (file == nullptr) return 0;
    source.place = std::string(file_name(file)) + ":" + std::to_string(line);
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

// While debug information is read, its reader has a lock of the dynamic linker, which a fork child
// finds as it was: no thread forks meanwhile.
Mutex reading(LockRank::kDebugInformation);

void begin_fork() US_NO_THREAD_SAFETY_ANALYSIS { reading.lock(); }
void end_fork() US_NO_THREAD_SAFETY_ANALYSIS { reading.unlock(); }

// When the library is loaded: see CallGate.
[[maybe_unused]] const bool registered = pthread_atfork(begin_fork, end_fork, end_fork) == 0;

// The place is empty if there is no debug information.
SourcePlace place_in_source(uintptr_t address) {
  SourcePlace source;
  const MutexLock lock(reading);
  if (backtrace_state* const state = debug_information()) {
    backtrace_pcinfo(state, address, keep_place, ignore_error, &source);
  }
  return source;
}

#else

SourcePlace place_in_source(uintptr_t) { return {}; }

#endif

// The symbol before an address, as the dynamic linker knows it.
std::string exported_function(uintptr_t address) {
  Dl_info symbol;
  if (dladdr(to_pointer(address), &symbol) == 0 || symbol.dli_sname == nullptr) return {};
  return readable(symbol.dli_sname);
}

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

SourcePlace find_source(uintptr_t return_address) {
  // An address in the call, not behind it.
  SourcePlace source = place_in_source(return_address - 1);
  if (source.place.empty()) source.place = call_site_of(return_address);
  if (source.function.empty()) source.function = exported_function(return_address - 1);
  const std::string site = call_site_of(return_address);
  source.object = site.substr(0, site.rfind('+'));
  return source;
}

std::string source_place_of(uintptr_t return_address) { return find_source(return_address).place; }

}  // namespace understudy::platform
