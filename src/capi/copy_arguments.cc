// SPDX-License-Identifier: Apache-2.0
#include "capi/copy_arguments.h"

namespace understudy::capi {

Result<void> check_copy_pointers(const void* dst, const void* src, aclrtMemcpyKind kind) {
  US_TRY(require_pointer(dst, "dst"));
  US_TRY(require_pointer(src, "src"));
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
    return invalid_argument("kind is %d and must be 0 to 5", static_cast<int>(kind));
  }
  return {};
}

Result<void> check_count(size_t count, size_t destMax) {
  if (count <= destMax) [[likely]]
    return {};
  return Error::format(ErrorCode::kInvalidParam, "count %zu is more than destMax %zu", count,
                       destMax);
}

Result<void> check_set_count(size_t count, size_t maxCount) {
  if (count <= maxCount) [[likely]]
    return {};
  return Error::format(ErrorCode::kInvalidParam, "count %zu is more than maxCount %zu", count,
                       maxCount);
}

Result<void> check_words(const void* ptr, size_t memSize, size_t words) {
  US_TRY(require_pointer(ptr, "ptr"));
  if (!is_aligned(to_address(ptr), sizeof(uint32_t))) {
    return invalid_argument("ptr %p is not a multiple of 4", ptr);
  }
  if (words > memSize / sizeof(uint32_t)) {
    return invalid_argument("N is %zu, more words than memSize %zu has room for", words, memSize);
  }
  return {};
}

}  // namespace understudy::capi
