// SPDX-License-Identifier: Apache-2.0
//
// What the tests of managed memory share: blocks that end with their scope, locations, and what the
// library remembers about a range.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {

inline constexpr uint32_t kGlobal = ACL_RT_MEM_ATTACH_GLOBAL;
inline constexpr int32_t kHostId = -1;
inline constexpr int32_t kNoId = -2;

class ManagedBlock {
 public:
  explicit ManagedBlock(size_t size = kGranule) : size_(size) {
    EXPECT_SUCCESS(aclrtMemAllocManaged(&data_, size, kGlobal));
    EXPECT_NE(data_, nullptr);
  }
  ~ManagedBlock() {
    if (data_ != nullptr) free();
  }
  ManagedBlock(const ManagedBlock&) = delete;
  ManagedBlock& operator=(const ManagedBlock&) = delete;

  void free() { EXPECT_SUCCESS(aclrtFree(release())); }
  void* release() { return std::exchange(data_, nullptr); }
  void* data() const { return data_; }
  void* at(size_t offset) const { return understudy_test::at(data_, offset); }
  uint8_t* bytes() const { return static_cast<uint8_t*>(data_); }
  size_t size() const { return size_; }

 private:
  const size_t size_;
  void* data_ = nullptr;
};

// ---- Locations ----

inline aclrtMemManagedLocation location(aclrtMemManagedLocationType type, int32_t id = 0) {
  return {type, id};
}
inline aclrtMemManagedLocation on_device(int32_t id) {
  return location(ACL_MEM_LOCATIONTYPE_DEVICE, id);
}
inline aclrtMemManagedLocation on_host() { return location(ACL_MEM_LOCATIONTYPE_HOST); }
inline aclrtMemManagedLocation on_node(int32_t id) {
  return location(ACL_MEM_LOCATIONTYPE_HOST_NUMA, id);
}
inline aclrtMemManagedLocation nowhere() { return location(ACL_MEM_LOCATIONTYPE_INVALID); }

// ---- What is remembered ----

inline int32_t managed_attribute(aclrtMemManagedRangeAttribute attribute, const void* start,
                                 size_t size) {
  int32_t value = 12345;
  EXPECT_SUCCESS(aclrtMemManagedGetAttr(attribute, start, size, &value, sizeof value)) << attribute;
  return value;
}
inline int32_t read_mostly(const void* start, size_t size) {
  return managed_attribute(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, start, size);
}
inline int32_t preferred(const void* start, size_t size) {
  return managed_attribute(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, start, size);
}
inline int32_t preferred_type(const void* start, size_t size) {
  return managed_attribute(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, start, size);
}
inline int32_t preferred_id(const void* start, size_t size) {
  return managed_attribute(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, start, size);
}
inline int32_t last_prefetch(const void* start, size_t size) {
  return managed_attribute(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, start, size);
}
inline int32_t last_prefetch_type(const void* start, size_t size) {
  return managed_attribute(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, start, size);
}
inline int32_t last_prefetch_id(const void* start, size_t size) {
  return managed_attribute(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, start, size);
}
inline std::vector<int32_t> accessed_by(const void* start, size_t size, size_t places) {
  std::vector<int32_t> ids(places, 12345);
  EXPECT_SUCCESS(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, start, size,
                                        ids.data(), places * sizeof(int32_t)));
  return ids;
}

// All of it, to compare before and after a call that must change nothing.
struct Remembered {
  std::array<int32_t, 7> values;
  std::vector<int32_t> accessed;
  friend bool operator==(const Remembered&, const Remembered&) = default;
};
inline Remembered remembered(const void* start, size_t size) {
  return {{read_mostly(start, size), preferred(start, size), preferred_type(start, size),
           preferred_id(start, size), last_prefetch(start, size), last_prefetch_type(start, size),
           last_prefetch_id(start, size)},
          accessed_by(start, size, 10)};
}

}  // namespace understudy_test
