// SPDX-License-Identifier: Apache-2.0
//
// The shape of every entry point: check the arguments, look up the objects, make one call into the
// runtime. `guarded` is the only place that catches exceptions, that turns an Error into a
// published code and that keeps its sentence for aclGetRecentErrMsg. A thread that ends in a
// callback (pthread_exit, pthread_cancel) unwinds through it.
//
// A call of class W (SNAP-08) has the line `const GatePass pass;` behind the checks of its outer
// arguments. Tests compare the class of every exported function with a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>

#include "acl/acl_base.h"
#include "base/forced_unwind.h"
#include "base/result.h"
#include "capi/recorded_arguments.h"
#include "runtime/call_gate.h"
#include "runtime/call_watch.h"
#include "runtime/runtime.h"

namespace understudy::capi {

// The published code of each kind of error.
aclError published_code(ErrorCode code);
// Remembers the sentence, and the code where ERR-05 says so, and logs both. Returns the code.
[[gnu::cold]] aclError report(const char* function, const Error& error) noexcept;
// The same with a code that is not the error's.
[[gnu::cold]] void report_as(aclError code, const char* function, const Error& error) noexcept;
// A call succeeded on a thread where some function failed earlier.
[[gnu::cold]] void note_success(const char* function) noexcept;
[[gnu::cold]] aclError report_exception(const char* function, const char* what) noexcept;

// The beginning of a watched call: when that was, or 0 if its end is not of interest, and the code
// of a call that fails on purpose. That is reported already.
struct CallBegin {
  uint64_t time = 0;
  std::optional<aclError> failure;
};
CallBegin begin_watched(const CallShape& shape, uint64_t bytes, OpenCall& open) noexcept;
CallBegin begin_watched_unfailing(const CallShape& shape, OpenCall& open) noexcept;

template <typename... T>
[[gnu::noinline]] void end_watched(const KeptCall<T...>& kept, uint64_t begun,
                                   aclError code) noexcept {
  end_watched_call(kept.function(), begun, code);
  kept.record(code);
}

// A call that may be watched (runtime/call_watch.h) and answers a code. `bytes`: how much memory it
// asks for or moves; 0 if that is not what it is about.
template <typename... T, typename Call>
aclError watched(const Called<T...>& called, uint64_t bytes, Call&& call) {
  CallBegin begin;
  KeptCall<T...> kept;
  if (may_watch_calls()) [[unlikely]] {
    kept.begin(called);
    begin = begin_watched(kept.shape(), bytes, kept.open());
  }
  // The only place that makes the call: it becomes part of the entry point.
  const aclError code = begin.failure ? *begin.failure : call();
  if (begin.time != 0) [[unlikely]]
    end_watched(kept, begin.time, code);
  return code;
}

// The same for a call that answers something else, and so cannot fail.
template <typename... T, typename Call>
auto watched_unfailing(const Called<T...>& called, Call&& call) {
  if (!may_watch_calls()) [[likely]]
    return call();
  KeptCall<T...> kept;
  kept.begin(called);
  const CallBegin begin = begin_watched_unfailing(kept.shape(), kept.open());
  const auto result = call();
  end_watched(kept, begin.time, ACL_SUCCESS);
  return result;
}

template <typename Body>
US_CATCHES_FORCED_UNWIND aclError attempt(const char* function, Body&& body) {
  static_assert(std::is_same_v<decltype(body()), Result<void>>);
  try {
    const Result<void> result = body();
    if (result.ok()) [[likely]] {
      if (awaited_successes != 0) [[unlikely]]
        note_success(function);
      return ACL_SUCCESS;
    }
    return report(function, result.error());
  } catch (const std::bad_alloc&) {
    return report(function, Error::format(ErrorCode::kOutOfMemory,
                                          "the host has no memory left for bookkeeping"));
  } catch (const ForcedUnwind&) {
    throw;
  } catch (const std::exception& exception) {
    return report_exception(function, exception.what());
  } catch (...) {
    return report_exception(function, "a value that is no std::exception");
  }
}

// `bytes`: as for `watched`.
template <typename... T, typename Body>
aclError guarded(const Called<T...>& called, uint64_t bytes, Body&& body) {
  return watched(called, bytes, [&] { return attempt(called.function, body); });
}
template <typename... T, typename Body>
aclError guarded(const Called<T...>& called, Body&& body) {
  return guarded(called, 0, body);
}

// Checks of the outer layer. Each names the argument.
[[gnu::cold, gnu::format(printf, 1, 2)]] Error invalid_argument(const char* format, ...);

inline Result<void> require_pointer(const void* pointer, const char* name) {
  if (pointer != nullptr) [[likely]]
    return {};
  return invalid_argument("%s is NULL", name);
}
inline Result<void> require_size(uint64_t size, const char* name) {
  if (size != 0) [[likely]]
    return {};
  return invalid_argument("%s is 0", name);
}
inline Result<void> require_zero(uint64_t value, const char* name) {
  if (value == 0) [[likely]]
    return {};
  return invalid_argument("%s is %llu and must be 0", name, static_cast<unsigned long long>(value));
}

// The runtime, where the product has the feature.
[[gnu::cold]] Result<Runtime*> make_runtime_with(Feature feature);
inline Result<Runtime*> runtime_with(Feature feature) {
  Runtime* const runtime = Runtime::existing();
  if (runtime != nullptr && runtime->has_plainly(feature)) [[likely]]
    return runtime;
  return make_runtime_with(feature);
}

// Registers a callback under a name, or unregisters it where there is no function.
Result<void> choose_callback(NamedCallbacks<AnyFunction>& callbacks, const char* name,
                             AnyFunction function, void* arguments);

// Handles cross the C ABI as pointers and are numbers here.
inline uint64_t handle_number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }
inline void* handle_pointer(uint64_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace understudy::capi
