// SPDX-License-Identifier: Apache-2.0
//
// Checks that the synchronous and the asynchronous forms of copy and set share.
#pragma once

#include <cstddef>

#include "acl/acl_rt.h"
#include "capi/call.h"

namespace understudy::capi {

// Tells streams that wait for memory to change, at the end of its scope, that it may have. An
// object, because a function's result that has a name would have to be copied.
class WriteNotice {
 public:
  explicit WriteNotice(Runtime& runtime) : waiting_(runtime.streams().waiting()) {}
  ~WriteNotice() { waiting_.note_write(); }
  WriteNotice(const WriteNotice&) = delete;
  WriteNotice& operator=(const WriteNotice&) = delete;

 private:
  Waiting& waiting_;
};

// COPY-02, COPY-03
Result<void> check_copy_pointers(const void* dst, const void* src, aclrtMemcpyKind kind);
// COPY-04
Result<void> check_count(size_t count, size_t destMax);
// SET-03
Result<void> check_set_count(size_t count, size_t maxCount);
// SET-11, before and after the product is known to have the function.
Result<void> check_words(const void* ptr, size_t memSize, size_t words);
Result<void> check_words_are_known(Runtime& runtime, const void* ptr, size_t words);

}  // namespace understudy::capi
