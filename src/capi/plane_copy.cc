// SPDX-License-Identifier: Apache-2.0
//
// Copies of rows. Rules: COPY2D.
#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

constexpr size_t kMostRows = 5242880;
constexpr size_t kWidestRow = 5000000;

Result<void> check_rows(const PlaneCopy& copy, aclrtMemcpyKind kind) {
  if (copy.height > kMostRows || copy.width > kWidestRow) {
    return Error::format(ErrorCode::kRefused, "%zu rows of %zu bytes; at most %zu of %zu can be",
                         static_cast<size_t>(copy.height), static_cast<size_t>(copy.width),
                         kMostRows, kWidestRow);
  }
  if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE) {
    return Error::format(ErrorCode::kNotSupported,
                         "rows are copied within devices on a stream only");
  }
  return {};
}

}  // namespace

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) {
  return guarded(__func__, [&]() -> Result<void> {
    if (width == 0 || height == 0) return {};
    US_TRY(require_pointer(dst, "dst"));
    US_TRY(require_pointer(src, "src"));
    if (width > dpitch || width > spitch) {
      return invalid_argument("width %zu is more than dpitch %zu or spitch %zu", width, dpitch,
                              spitch);
    }
    if (kind != ACL_MEMCPY_HOST_TO_DEVICE && kind != ACL_MEMCPY_DEVICE_TO_HOST &&
        kind != ACL_MEMCPY_DEVICE_TO_DEVICE && kind != ACL_MEMCPY_DEFAULT) {
      return invalid_argument("kind is %d, which has no rows", static_cast<int>(kind));
    }
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(runtime->require(Feature::kPlaneCopy));
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    const PlaneCopy copy{to_address(dst), dpitch, to_address(src), spitch, width, height};
    US_TRY(check_rows(copy, kind));
    return runtime->transfer().copy_rows(copy, context.device());
  });
}
