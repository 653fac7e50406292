// SPDX-License-Identifier: Apache-2.0
//
// Checks that the synchronous and the asynchronous forms of copy and set share. Those of every copy
// are part of their callers.
#pragma once

#include <cstddef>

#include "acl/acl_rt.h"
#include "capi/call.h"

namespace understudy::capi {

// COPY-02, COPY-03
inline Result<void> check_copy_pointers(const void* dst, const void* src, aclrtMemcpyKind kind) {
  US_TRY(require_pointer(dst, "dst"));
  US_TRY(require_pointer(src, "src"));
  if (kind >= ACL_MEMCPY_HOST_TO_HOST && kind <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) [[likely]]
    return {};
  return invalid_argument("kind is %d and must be 0 to 5", static_cast<int>(kind));
}
// COPY-04
inline Result<void> check_count(size_t count, size_t destMax) {
  if (count <= destMax) [[likely]]
    return {};
  return Error::format(ErrorCode::kInvalidParam, "count %zu is more than destMax %zu", count,
                       destMax);
}
// SET-03
inline Result<void> check_set_count(size_t count, size_t maxCount) {
  if (count <= maxCount) [[likely]]
    return {};
  return Error::format(ErrorCode::kInvalidParam, "count %zu is more than maxCount %zu", count,
                       maxCount);
}
// SET-11
Result<void> check_words(const void* ptr, size_t memSize, size_t words);

}  // namespace understudy::capi
