// SPDX-License-Identifier: Apache-2.0
//
// Copy and set on streams. Rules: ACOPY, SET-07 to SET-12.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/copy_arguments.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

static_assert(static_cast<int>(CopyKind::kHostToHost) == ACL_MEMCPY_HOST_TO_HOST);
static_assert(static_cast<int>(CopyKind::kHostToDevice) == ACL_MEMCPY_HOST_TO_DEVICE);
static_assert(static_cast<int>(CopyKind::kDeviceToHost) == ACL_MEMCPY_DEVICE_TO_HOST);
static_assert(static_cast<int>(CopyKind::kDeviceToDevice) == ACL_MEMCPY_DEVICE_TO_DEVICE);
static_assert(static_cast<int>(CopyKind::kDefault) == ACL_MEMCPY_DEFAULT);
static_assert(static_cast<int>(CopyKind::kHostThroughBuffer) == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE);

Result<void> copy_async(void* dst, size_t destMax, const void* src, size_t count,
                        aclrtMemcpyKind kind, aclrtStream stream, Feature feature) {
  if (count == 0) return {};
  US_TRY(check_copy_pointers(dst, src, kind));
  const GatePass pass;
  US_TRY_ASSIGN(const StreamCall call, stream_call(feature, stream));
  US_TRY(check_count(count, destMax));
  if (dst == src) return {};
  return call.runtime->copies().queue_copy(call.stream, {to_address(dst), to_address(src), count},
                                           static_cast<CopyKind>(kind));
}

}  // namespace

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  return guarded(US_CALL(dst, destMax, src, count, kind, stream), count, [&] {
    return copy_async(dst, destMax, src, count, kind, stream, Feature::kAsyncCopy);
  });
}

aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
  return guarded(US_CALL(dst, destMax, src, count, kind, stream), count, [&] {
    return copy_async(dst, destMax, src, count, kind, stream, Feature::kConditionalCopy);
  });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  return guarded(US_CALL(devPtr, maxCount, value, count, stream), count, [&]() -> Result<void> {
    if (count == 0) return {};
    US_TRY(require_pointer(devPtr, "devPtr"));
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kAsyncCopy, stream));
    US_TRY(check_set_count(count, maxCount));
    return call.runtime->copies().queue_set(
        call.stream, {to_address(devPtr), count, static_cast<uint8_t>(value)});
  });
}

aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                             aclrtStream stream) {
  return guarded(US_CALL(ptr, memSize, value, N, stream), N * sizeof value, [&]() -> Result<void> {
    if (N == 0) return {};
    US_TRY(check_words(ptr, memSize, N));
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kBatchCopy, stream));
    US_TRY(call.runtime->copies().check_words(to_address(ptr), N));
    const GatePass pass;
    return call.runtime->copies().queue_set_words(call.stream, {to_address(ptr), N, value});
  });
}
