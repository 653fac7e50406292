// SPDX-License-Identifier: Apache-2.0
//
// Copy and set, synchronously. Rules: COPY, SET.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/copy_arguments.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  return guarded(US_CALL(dst, destMax, src, count, kind), count, [&]() -> Result<void> {
    if (count == 0) return {};
    US_TRY(check_copy_pointers(dst, src, kind));
    US_TRY(check_count(count, destMax));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->current_device());
    if (dst == src) return {};
    return runtime->copies().copy({to_address(dst), to_address(src), count}, device);
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return guarded(US_CALL(devPtr, maxCount, value, count), count, [&]() -> Result<void> {
    if (count == 0) return {};
    US_TRY(require_pointer(devPtr, "devPtr"));
    US_TRY(check_set_count(count, maxCount));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->current_device());
    return runtime->copies().set(to_address(devPtr), static_cast<uint8_t>(value), count, device);
  });
}

aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  return guarded(US_CALL(ptr, memSize, value, N), N * sizeof value, [&]() -> Result<void> {
    if (N == 0) return {};
    US_TRY(check_words(ptr, memSize, N));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kBatchCopy));
    US_TRY_ASSIGN(const unsigned device, runtime->current_device());
    US_TRY(runtime->copies().check_words(to_address(ptr), N));
    const GatePass pass;
    return runtime->copies().set_words(to_address(ptr), value, N, device);
  });
}
