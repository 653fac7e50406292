// SPDX-License-Identifier: Apache-2.0
#include "support/device.h"

#include "support/fail.h"

namespace bench {

void fail_call(aclError code) {
  const char* text = aclGetRecentErrMsg();
  fail("error %d: %s", code, text != nullptr ? text : "(no sentence)");
}

void start_device() {
  check(aclInit(nullptr));
  check(aclrtSetDevice(0));
}

std::byte* reserve_addresses(size_t size) {
  void* address = nullptr;
  check(aclrtReserveMemAddress(&address, size, 0, nullptr, 1));
  return static_cast<std::byte*>(address);
}

aclrtDrvMemHandle create_block(size_t size) {
  constexpr aclrtPhysicalMemProp kProperties{
      .handleType = ACL_MEM_HANDLE_TYPE_NONE,
      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
      .memAttr = ACL_HBM_MEM_HUGE,
      .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE},
      .reserve = 0};
  aclrtDrvMemHandle block = nullptr;
  check(aclrtMallocPhysical(&block, size, &kProperties, 0));
  return block;
}

aclrtStream create_stream() {
  aclrtStream stream = nullptr;
  check(aclrtCreateStream(&stream));
  return stream;
}

aclrtMemPool create_pool() {
  aclrtMemPoolProps props = {};
  props.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  props.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  props.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  aclrtMemPool pool = nullptr;
  check(aclrtMemPoolCreate(&pool, &props));
  return pool;
}

}  // namespace bench
