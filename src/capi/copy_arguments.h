// SPDX-License-Identifier: Apache-2.0
//
// Checks that the synchronous and the asynchronous forms of copy and set share.
#pragma once

#include <cstddef>

#include "acl/acl_rt.h"
#include "capi/call.h"

namespace understudy::capi {

// COPY-02, COPY-03
Result<void> check_copy_pointers(const void* dst, const void* src, aclrtMemcpyKind kind);
// COPY-04
Result<void> check_count(size_t count, size_t destMax);
// SET-03
Result<void> check_set_count(size_t count, size_t maxCount);
// SET-11
Result<void> check_words(const void* ptr, size_t memSize, size_t words);

}  // namespace understudy::capi
