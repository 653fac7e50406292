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

aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  return guarded(__func__, [&]() -> Result<void> {
    if (N == 0) return {};
    US_TRY(require_pointer(ptr, "ptr"));
    const VirtualAddress address = to_address(ptr);
    if (!is_aligned(address, sizeof value)) {
      return invalid_argument("ptr %p is not a multiple of 4", ptr);
    }
    if (N > memSize / sizeof value) {
      return invalid_argument("%zu words are more than memSize %zu", N, memSize);
    }
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(runtime->require(Feature::kBatchCopy));
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    if (!runtime->address_space().find(address)) {
      const std::optional<VirtualRange> host = runtime->host_memory().find(address);
      if (!host || !host->contains({address, N * sizeof value})) {
        return invalid_argument("%zu words at %p are not memory of this interface", N, ptr);
      }
    }
    return runtime->transfer().set_words(address, value, N, context.device());
  });
}
