// SPDX-License-Identifier: Apache-2.0
#include "capi/copy_arguments.h"

namespace understudy::capi {

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
