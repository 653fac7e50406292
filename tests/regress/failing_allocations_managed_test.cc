// SPDX-License-Identifier: Apache-2.0
//
// Failing allocations in managed memory.
#include "regress/failing_allocations.h"

namespace understudy_test::failing {
namespace {

constexpr size_t kSize = 4 * kBlock;
constexpr aclrtMemManagedLocation kOnDevice = {ACL_MEM_LOCATIONTYPE_DEVICE, 1};
constexpr auto kPrefer = ACL_MEM_ADVISE_SET_PREFERRED_LOCATION;

// Managed memory, and a stream.
struct Managed {
  Managed() {
    EXPECT_SUCCESS(aclrtMemAllocManaged(&data, kSize, ACL_RT_MEM_ATTACH_GLOBAL));
    EXPECT_SUCCESS(aclrtCreateStream(&stream));
  }
  ~Managed() {
    (void)aclrtSynchronizeStream(stream);
    EXPECT_SUCCESS(aclrtDestroyStream(stream));
    if (data != nullptr) {
      EXPECT_SUCCESS(aclrtFree(data));
    }
  }
  Managed(const Managed&) = delete;
  Managed& operator=(const Managed&) = delete;
  void* data = nullptr;
  aclrtStream stream = nullptr;
};

// What is remembered of the middle, which no failed call may have changed.
int32_t value_of(aclrtMemManagedRangeAttribute attribute, const Managed& on) {
  int32_t value = 0;
  EXPECT_SUCCESS(
      aclrtMemManagedGetAttr(attribute, at(on.data, kBlock), kBlock, &value, sizeof value));
  return value;
}

US_SCENARIO(aclrtMemAllocManaged, Small) {
  probe.call(
      [&] { return aclrtMemAllocManaged(&probe.out<void*>(), 1, ACL_RT_MEM_ATTACH_GLOBAL); });
  probe.after([&] { EXPECT_SUCCESS(aclrtFree(probe.out<void*>())); });
}
US_SCENARIO(aclrtMemAllocManaged, Large) {
  probe.call([&] {
    return aclrtMemAllocManaged(&probe.out<void*>(), 3 * kGiB, ACL_RT_MEM_ATTACH_GLOBAL);
  });
  probe.after([&] { EXPECT_SUCCESS(aclrtFree(probe.out<void*>())); });
}
US_SCENARIO(aclrtFree, Managed) {
  Managed on;
  EXPECT_SUCCESS(aclrtMemset(on.data, kSize, 1, kSize));
  probe.call([&] { return aclrtFree(on.data); });
  on.data = nullptr;
}
US_SCENARIO(aclrtMemset, Managed) {
  const Managed on;
  probe.call([&] { return aclrtMemset(on.data, kSize, 1, kSize); });
}
US_SCENARIO(aclrtMemManagedAdvise, InTheMiddle) {
  const Managed on;
  probe.call(
      [&] { return aclrtMemManagedAdvise(at(on.data, kBlock), kBlock, kPrefer, kOnDevice); });
  EXPECT_EQ(value_of(ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, on), 1);
}
US_SCENARIO(aclrtMemManagedGetAttr, Call) {
  const Managed on;
  probe.call([&] {
    return aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, on.data, kSize,
                                  &probe.out<int32_t>(), sizeof(int32_t));
  });
}
US_SCENARIO(aclrtMemManagedGetAttrs, Call) {
  const Managed on;
  aclrtMemManagedRangeAttribute attributes[] = {ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                                ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
  void* data[] = {&probe.out<int32_t>(0), &probe.out<int32_t>(1)};
  size_t sizes[] = {sizeof(int32_t), sizeof(int32_t)};
  probe.call([&] { return aclrtMemManagedGetAttrs(attributes, 2, on.data, kSize, data, sizes); });
}
US_SCENARIO(aclrtMemManagedPrefetchAsync, InTheMiddle) {
  const Managed on;
  probe.call([&] {
    return aclrtMemManagedPrefetchAsync(at(on.data, kBlock), kBlock, kOnDevice, 0, on.stream);
  });
  EXPECT_EQ(value_of(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, on), 1);
}
US_SCENARIO(aclrtMemManagedPrefetchBatchAsync, Call) {
  const Managed on;
  const void* starts[] = {on.data, at(on.data, kBlock), at(on.data, 3 * kBlock)};
  size_t sizes[] = {kBlock, kBlock, kBlock};
  aclrtMemManagedLocation location = kOnDevice;
  size_t first = 0;
  probe.call([&] {
    return aclrtMemManagedPrefetchBatchAsync(starts, sizes, 3, &location, &first, 1, 0, on.stream);
  });
  EXPECT_EQ(value_of(ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, on), 1);
}

}  // namespace
}  // namespace understudy_test::failing
