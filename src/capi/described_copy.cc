// SPDX-License-Identifier: Apache-2.0
//
// Copies within a device whose addresses are in device memory: as a description, or in cells.
// Rules: DESC.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "stream/descriptions.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

constexpr size_t kLargestOffset = 0xFFFFFFFFFFFF;

// DESC-01, the outer part.
Result<void> check_kind_number(aclrtMemcpyKind kind) {
  if (kind >= ACL_MEMCPY_HOST_TO_HOST && kind <= ACL_MEMCPY_INTER_DEVICE_TO_DEVICE) return {};
  return invalid_argument("kind is %d and must be 0 to 7", static_cast<int>(kind));
}

// The rest of it.
Result<void> check_within_device(aclrtMemcpyKind kind) {
  if (kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE) return {};
  return Error::format(ErrorCode::kNotSupported,
                       "kind is %d; only copies within a device (6) can be described",
                       static_cast<int>(kind));
}

Result<void> check_offset(size_t offset, const char* name) {
  if (offset <= kLargestOffset) return {};
  return Error::format(ErrorCode::kInvalidParam, "%s is %zu and must be at most 0x%zx", name,
                       offset, kLargestOffset);
}

// DESC-10
Result<void> check_room(size_t destMax, size_t dstDataOffset, size_t count) {
  if (dstDataOffset >= destMax || count > destMax - dstDataOffset) {
    return Error::format(ErrorCode::kInvalidParam,
                         "count %zu at dstDataOffset %zu is more than destMax %zu", count,
                         dstDataOffset, destMax);
  }
  if (count > kMostDescribedBytes) {
    return Error::format(ErrorCode::kInvalidParam, "count %zu is more than 4 GiB", count);
  }
  return {};
}

}  // namespace

aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t* descSize) {
  return guarded(US_CALL(kind, out(descSize)), [&]() -> Result<void> {
    US_TRY(check_kind_number(kind));
    US_TRY(require_pointer(descSize, "descSize"));
    US_TRY(runtime_with(Feature::kCopyDescriptors));
    US_TRY(check_within_device(kind));
    *descSize = sizeof(CopyDescription);
    return {};
  });
}

aclError aclrtSetMemcpyDesc(void* desc, aclrtMemcpyKind kind, void* srcAddr, void* dstAddr,
                            size_t count, void* config) {
  return guarded(US_CALL(desc, kind, srcAddr, dstAddr, count, config), [&]() -> Result<void> {
    US_TRY(check_kind_number(kind));
    US_TRY(require_pointer(desc, "desc"));
    US_TRY(require_pointer(srcAddr, "srcAddr"));
    US_TRY(require_pointer(dstAddr, "dstAddr"));
    US_TRY(require_size(count, "count"));
    if (config != nullptr) return invalid_argument("config is %p and must be NULL", config);
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kCopyDescriptors));
    US_TRY(check_within_device(kind));
    US_TRY_ASSIGN(const unsigned device, runtime->current_device());
    return runtime->copies().describe(to_address(desc),
                                      {to_address(dstAddr), to_address(srcAddr), count}, device);
  });
}

aclError aclrtMemcpyAsyncWithDesc(void* desc, aclrtMemcpyKind kind, aclrtStream stream) {
  return guarded(US_CALL(desc, kind, stream), [&]() -> Result<void> {
    US_TRY(check_kind_number(kind));
    US_TRY(require_pointer(desc, "desc"));
    US_TRY(require_pointer(stream, "stream"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kCopyDescriptors));
    US_TRY(check_within_device(kind));
    US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
    return runtime->copies().queue_described(call.stream, to_address(desc));
  });
}

aclError aclrtMemcpyAsyncWithOffset(void** dst, size_t destMax, size_t dstDataOffset,
                                    const void** src, size_t count, size_t srcDataOffset,
                                    aclrtMemcpyKind kind, aclrtStream stream) {
  return guarded(
      US_CALL(dst, destMax, dstDataOffset, src, count, srcDataOffset, kind, stream), count,
      [&]() -> Result<void> {
        if (count == 0) return {};
        US_TRY(require_pointer(dst, "dst"));
        US_TRY(require_pointer(src, "src"));
        const GatePass pass;
        US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kOffsetCopy, stream));
        if (kind != ACL_MEMCPY_INNER_DEVICE_TO_DEVICE) {
          return Error::format(ErrorCode::kInvalidParam,
                               "kind is %d and must be 6, within a device", static_cast<int>(kind));
        }
        US_TRY(check_offset(dstDataOffset, "dstDataOffset"));
        US_TRY(check_offset(srcDataOffset, "srcDataOffset"));
        US_TRY(check_room(destMax, dstDataOffset, count));
        return call.runtime->copies().queue_indirect(
            call.stream, {to_address(dst), dstDataOffset, to_address(src), srcDataOffset, count});
      });
}
