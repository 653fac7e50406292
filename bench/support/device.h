// SPDX-License-Identifier: Apache-2.0
//
// The library under test, by its C ABI. Every call that fails ends the benchmark with its sentence.
#pragma once

#include <cstddef>

#include "acl/acl.h"

namespace bench {

inline constexpr size_t kGranule = size_t{2} << 20;

[[noreturn]] void fail_call(aclError code);

inline void check(aclError code) {
  if (code != ACL_SUCCESS) [[unlikely]]
    fail_call(code);
}

// aclInit, and device 0 for the calling thread.
void start_device();

std::byte* reserve_addresses(size_t size);
aclrtDrvMemHandle create_block(size_t size);
aclrtStream create_stream();
aclrtMemPool create_pool();

inline void map_block(void* address, size_t size, aclrtDrvMemHandle block) {
  check(aclrtMapMem(address, size, 0, block, 0));
}

}  // namespace bench
