// SPDX-License-Identifier: Apache-2.0
//
// The shape of every entry point: check the arguments, look up the objects, make one call into the
// runtime. `guarded` is the only place that catches exceptions, that turns an Error into a
// published code and that keeps its sentence for aclGetRecentErrMsg. User mistakes are returned,
// never printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>

#include "acl/acl_base.h"
#include "base/result.h"
#include "runtime/runtime.h"

namespace understudy::capi {

// The published code of each kind of error.
aclError published_code(ErrorCode code);
// Remembers the sentence, and the code where ERR-05 says so. Returns the code.
aclError report(const char* function, const Error& error) noexcept;
aclError report_exception(const char* function, const char* what) noexcept;

template <typename Body>
aclError guarded(const char* function, Body&& body) noexcept {
  static_assert(std::is_same_v<decltype(body()), Result<void>>);
  try {
    const Result<void> result = body();
    if (result.ok()) [[likely]]
      return ACL_SUCCESS;
    return report(function, result.error());
  } catch (const std::bad_alloc&) {
    return report(function, Error::format(ErrorCode::kOutOfMemory,
                                          "the host has no memory left for bookkeeping"));
  } catch (const std::exception& exception) {
    return report_exception(function, exception.what());
  } catch (...) {
    return report_exception(function, "an exception of unknown type");
  }
}

// Checks of the outer layer. Each names the argument.
[[gnu::format(printf, 1, 2)]] Error invalid_argument(const char* format, ...);

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

// Refuses what the product lacks.
Result<void> require_feature(Feature feature);

// Handles cross the C ABI as pointers and are numbers here.
inline uint64_t handle_number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }
inline void* handle_pointer(uint64_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace understudy::capi
