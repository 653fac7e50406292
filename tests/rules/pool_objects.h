// SPDX-License-Identifier: Apache-2.0
//
// What tests of stream-ordered pools share.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "rules/stream_objects.h"
#include "support/rule_test.h"

namespace understudy_test::pool {

inline constexpr size_t kUnit = 2 * kMiB;  // what sizes are rounded up to

inline aclrtMemPoolProps properties(size_t max_size = 0, uint32_t device = 0) {
  aclrtMemPoolProps props;
  memset(&props, 0, sizeof props);
  props.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  props.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  props.location = {device, ACL_MEM_LOCATION_TYPE_DEVICE};
  props.maxSize = max_size;
  return props;
}

class TestPool {
 public:
  explicit TestPool(size_t max_size = 0, uint32_t device = 0) {
    const aclrtMemPoolProps props = properties(max_size, device);
    EXPECT_SUCCESS(aclrtMemPoolCreate(&pool_, &props));
  }
  ~TestPool() {
    if (pool_ != nullptr) destroy();
  }
  TestPool(const TestPool&) = delete;
  TestPool& operator=(const TestPool&) = delete;

  aclrtMemPool get() const { return pool_; }
  void destroy() { EXPECT_SUCCESS(aclrtMemPoolDestroy(release())); }
  // The caller destroys it from now on.
  aclrtMemPool release() { return std::exchange(pool_, nullptr); }

  void* allocate(size_t size, aclrtStream stream) const {
    void* address = nullptr;
    EXPECT_SUCCESS(aclrtMemPoolMallocAsync(&address, size, pool_, stream));
    return address;
  }
  // An allocation on the stream that is freed on it at once.
  void* allocate_and_free(size_t size, aclrtStream stream) const {
    void* const address = allocate(size, stream);
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(address, stream));
    return address;
  }

  uint64_t figure(aclrtMemPoolAttr attribute) const {
    uint64_t value = UINT64_MAX;
    EXPECT_SUCCESS(aclrtMemPoolGetAttr(pool_, attribute, &value));
    return value;
  }
  uint64_t reserved() const { return figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT); }
  uint64_t used() const { return figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT); }
  uint64_t reserved_high() const { return figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH); }
  uint64_t used_high() const { return figure(ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH); }

  uint32_t reuse(aclrtMemPoolAttr attribute) const {
    uint32_t value = 77;
    EXPECT_SUCCESS(aclrtMemPoolGetAttr(pool_, attribute, &value));
    return value;
  }
  void allow(aclrtMemPoolAttr attribute, uint32_t value = 1) const {
    EXPECT_SUCCESS(aclrtMemPoolSetAttr(pool_, attribute, &value));
  }
  void keep(uint64_t threshold) const {
    EXPECT_SUCCESS(aclrtMemPoolSetAttr(pool_, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &threshold));
  }

 private:
  aclrtMemPool pool_ = nullptr;
};

inline size_t total_bytes() {
  size_t free = 0;
  size_t total = 0;
  EXPECT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  return total;
}

inline bool holds(const void* address, size_t size, uint8_t value) {
  return copy_out(address, size) == std::vector<uint8_t>(size, value);
}

}  // namespace understudy_test::pool
