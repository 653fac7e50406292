// SPDX-License-Identifier: Apache-2.0
//
// Failing allocations in the functions about stream-ordered pools.
#include "regress/failing_allocations.h"
#include "rules/pool_objects.h"

namespace understudy_test::failing {
namespace {

using pool::kUnit;
using pool::TestPool;

constexpr const char* kProduct = "a2";  // the only one with pools

US_SCENARIO_ON(kProduct, aclrtMemPoolCreate, Call) {
  const aclrtMemPoolProps props = pool::properties();
  probe.call([&] { return aclrtMemPoolCreate(&probe.out<aclrtMemPool>(), &props); });
  probe.after([&] { EXPECT_SUCCESS(aclrtMemPoolDestroy(probe.out<aclrtMemPool>())); });
}
US_SCENARIO_ON(kProduct, aclrtMemPoolDestroy, WithMemory) {
  const Stage on;
  TestPool from;
  (void)from.allocate(kUnit, on.stream);
  (void)from.allocate_and_free(kUnit, on.stream);
  probe.call([&] { return aclrtMemPoolDestroy(from.get()); });
  probe.after([&] { (void)from.release(); });
}
void allocate_from(Probe& probe, const TestPool& from, aclrtStream stream) {
  probe.call(
      [&] { return aclrtMemPoolMallocAsync(&probe.out<void*>(), kUnit, from.get(), stream); });
}
US_SCENARIO_ON(kProduct, aclrtMemPoolMallocAsync, First) {
  const Stage on;
  const TestPool from;
  allocate_from(probe, from, on.stream);
}
US_SCENARIO_ON(kProduct, aclrtMemPoolMallocAsync, PartOfAFreeBlock) {
  const Stage on;
  const TestPool from;
  (void)from.allocate_and_free(4 * kUnit, on.stream);
  allocate_from(probe, from, on.stream);
}
US_SCENARIO_ON(kProduct, aclrtMemPoolMallocAsync, WithAWaitForAnotherStream) {
  const Stage on;
  const TestPool from;
  from.allow(ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
  const TestStream other;
  void* const data = from.allocate(2 * kUnit, other.get());
  EXPECT_SUCCESS(aclrtMemsetAsync(data, kUnit, 1, kUnit, other.get()));
  EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, other.get()));
  allocate_from(probe, from, on.stream);
}
US_SCENARIO_ON(kProduct, aclrtMemPoolMallocAsync, AtTheLimit) {
  const Stage on;
  const TestPool from(4 * kUnit);
  const TestStream other;
  (void)from.allocate_and_free(4 * kUnit, other.get());
  // Giving memory back in the middle of the call is allowed, whatever comes of the call.
  probe.expect_returns();
  allocate_from(probe, from, on.stream);
}
US_SCENARIO_ON(kProduct, aclrtMemPoolFreeAsync, OfAPool) {
  const Stage on;
  const TestPool from;
  void* const data = from.allocate(kUnit, on.stream);
  probe.call([&] { return aclrtMemPoolFreeAsync(data, on.stream); });
}
US_SCENARIO_ON(kProduct, aclrtMemPoolFreeAsync, OfOrdinaryMemory) {
  const Stage on;
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&data, 4 * kMiB, kHugeFirst));
  probe.call([&] { return aclrtMemPoolFreeAsync(data, on.stream); });
}
US_SCENARIO_ON(kProduct, aclrtFree, OfAPool) {
  const Stage on;
  const TestPool from;
  void* const data = from.allocate(kUnit, on.stream);
  probe.call([&] { return aclrtFree(data); });
}
US_SCENARIO_ON(kProduct, aclrtMemPoolTrimTo, PartOfAFreeBlock) {
  const Stage on;
  const TestPool from;
  (void)from.allocate_and_free(4 * kUnit, on.stream);
  probe.call([&] { return aclrtMemPoolTrimTo(from.get(), kUnit); });
}
US_SCENARIO_ON(kProduct, aclrtSynchronizeStream, WithFreeMemoryOfAPool) {
  const Stage on;
  const TestPool from;
  (void)from.allocate_and_free(4 * kUnit, on.stream);
  probe.call([&] { return aclrtSynchronizeStream(on.stream); });
}
US_SCENARIO_ON(kProduct, aclrtSynchronizeStream, WithAThreshold) {
  const Stage on;
  const TestPool from;
  from.keep(kUnit);
  (void)from.allocate_and_free(4 * kUnit, on.stream);
  probe.expect_returns();
  probe.call([&] { return aclrtSynchronizeStream(on.stream); });
}
US_SCENARIO_ON(kProduct, aclrtMemPoolSetAttr, Call) {
  const TestPool from;
  uint64_t value = kUnit;
  probe.call([&] {
    return aclrtMemPoolSetAttr(from.get(), ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &value);
  });
}
US_SCENARIO_ON(kProduct, aclrtMemPoolGetAttr, Call) {
  const TestPool from;
  probe.call([&] {
    return aclrtMemPoolGetAttr(from.get(), ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH,
                               &probe.out<uint64_t>());
  });
}

}  // namespace
}  // namespace understudy_test::failing
