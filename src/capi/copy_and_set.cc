// SPDX-License-Identifier: Apache-2.0
//
// Copy and set, synchronously. Rules: COPY, SET.
#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  return guarded(__func__, [&]() -> Result<void> {
    if (count == 0) return {};
    US_TRY(require_pointer(dst, "dst"));
    US_TRY(require_pointer(src, "src"));
    if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
      return invalid_argument("kind is %d and must be 0 to 5", static_cast<int>(kind));
    }
    if (count > destMax) {
      return Error::format(ErrorCode::kRefused, "count %zu is more than destMax %zu", count,
                           destMax);
    }
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    if (dst == src) return {};
    return runtime->transfer().copy(to_address(dst), to_address(src), count, context.device());
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return guarded(__func__, [&]() -> Result<void> {
    if (count == 0) return {};
    US_TRY(require_pointer(devPtr, "devPtr"));
    if (count > maxCount) {
      return Error::format(ErrorCode::kRefused, "count %zu is more than maxCount %zu", count,
                           maxCount);
    }
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    return runtime->transfer().set(to_address(devPtr), static_cast<uint8_t>(value), count,
                                   context.device());
  });
}
