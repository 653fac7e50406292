// SPDX-License-Identifier: Apache-2.0
//
// Copies of rows. Rules: COPY2D.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

constexpr size_t kMostRows = 5242880;
constexpr size_t kWidestRow = 5000000;

// COPY2D-02, COPY2D-03
Result<void> check_arguments(const PlaneCopy& copy, aclrtMemcpyKind kind) {
  US_TRY(require_pointer(to_pointer(copy.to), "dst"));
  US_TRY(require_pointer(to_pointer(copy.from), "src"));
  if (copy.width > copy.to_pitch || copy.width > copy.from_pitch) {
    return invalid_argument("width %zu is more than dpitch %zu or spitch %zu",
                            static_cast<size_t>(copy.width), static_cast<size_t>(copy.to_pitch),
                            static_cast<size_t>(copy.from_pitch));
  }
  if (kind != ACL_MEMCPY_HOST_TO_DEVICE && kind != ACL_MEMCPY_DEVICE_TO_HOST &&
      kind != ACL_MEMCPY_DEVICE_TO_DEVICE && kind != ACL_MEMCPY_DEFAULT) {
    return invalid_argument("kind is %d, which has no rows", static_cast<int>(kind));
  }
  return {};
}

// COPY2D-04
Result<void> check_extent(const PlaneCopy& copy) {
  if (copy.height <= kMostRows && copy.width <= kWidestRow) return {};
  return Error::format(ErrorCode::kInvalidParam, "%zu rows of %zu bytes; at most %zu of %zu can be",
                       static_cast<size_t>(copy.height), static_cast<size_t>(copy.width), kMostRows,
                       kWidestRow);
}

}  // namespace

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) {
  return guarded(US_CALL(dst, dpitch, src, spitch, width, height, kind), width * height,
                 [&]() -> Result<void> {
                   if (width == 0 || height == 0) return {};
                   const PlaneCopy copy{to_address(dst), dpitch, to_address(src),
                                        spitch,          width,  height};
                   US_TRY(check_arguments(copy, kind));
                   const GatePass pass;
                   US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPlaneCopy));
                   US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
                   US_TRY(check_extent(copy));
                   if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE) {
                     return Error::format(ErrorCode::kNotSupported,
                                          "rows are copied within devices on a stream only");
                   }
                   return runtime->copies().copy_rows(copy, context.device());
                 });
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  return guarded(
      US_CALL(dst, dpitch, src, spitch, width, height, kind, stream), width * height,
      [&]() -> Result<void> {
        if (width == 0 || height == 0) return {};
        const PlaneCopy copy{to_address(dst), dpitch, to_address(src), spitch, width, height};
        US_TRY(check_arguments(copy, kind));
        US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPlaneCopy));
        if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE &&
            !runtime->settings().product.has(Feature::kDevicePlaneCopy)) {
          return invalid_argument("kind is DEVICE_TO_DEVICE, which product %s does not do in rows",
                                  runtime->settings().product.key.data());
        }
        const GatePass pass;
        US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
        US_TRY(check_extent(copy));
        return call.runtime->copies().queue_rows(call.stream, copy);
      });
}
