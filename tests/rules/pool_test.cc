// SPDX-License-Identifier: Apache-2.0
//
// Pools themselves: made, destroyed, described by attributes, trimmed.
// Covers: POOL-01, POOL-02, POOL-03, POOL-04, POOL-15, POOL-16, POOL-17, POOL-18, POOL-19, POOL-20,
// POOL-21, POOL-22.
#include <cstdint>
#include <limits>
#include <string>

#include "rules/pool_objects.h"

namespace understudy_test::pool {
namespace {

using Pool = DeviceTest;

const aclrtMemPoolAttr kSwitches[] = {ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                                      ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC,
                                      ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES};
const aclrtMemPoolAttr kFigures[] = {
    ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT,
    ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT,
    ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH};

void expect_refused(aclError code, const aclrtMemPoolProps& props) {
  aclrtMemPool pool = address(0x77);
  EXPECT_FAILS(code, aclrtMemPoolCreate(&pool, &props));
  EXPECT_EQ(pool, address(0x77));
}

TEST_F(Pool, POOL_01_NullArgumentsAreRefused) {
  const aclrtMemPoolProps props = properties();
  aclrtMemPool pool = address(0x77);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolCreate(nullptr, &props));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolCreate(&pool, nullptr));
  EXPECT_EQ(pool, address(0x77));
}

TEST_F(Pool, POOL_02_OtherKindsOfMemoryAreRefused) {
  aclrtMemPoolProps props = properties();
  props.allocType = enum_value<aclrtMemAllocationType>(1);
  expect_refused(ACL_ERROR_INVALID_PARAM, props);
  for (const int type : {0, 2, 3, 4, 77}) {
    props = properties();
    props.location.type = enum_value<aclrtMemLocationType>(type);
    expect_refused(ACL_ERROR_INVALID_PARAM, props);
  }
  for (const size_t byte : {size_t{0}, size_t{31}}) {
    props = properties();
    props.reserved[byte] = 1;
    expect_refused(ACL_ERROR_INVALID_PARAM, props);
  }
}

TEST_F(Pool, POOL_03_TheLimitIsRoundedAndAtMostTheDevice) {
  const TestStream stream;
  void* data = nullptr;
  {
    const TestPool pool(3 * kMiB);  // rounded up to 4 MiB
    (void)pool.allocate(4 * kMiB, stream.get());
    EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR,
                 aclrtMemPoolMallocAsync(&data, 1, pool.get(), stream.get()));
  }
  {
    // 0 stands for all of the device, in whole units.
    const TestPool pool;
    uint64_t limit = total_bytes() / kUnit * kUnit;
    EXPECT_SUCCESS(aclrtMemPoolSetAttr(pool.get(), ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &limit));
    ++limit;
    EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR,
                 aclrtMemPoolSetAttr(pool.get(), ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &limit));
  }
  { const TestPool all(total_bytes()); }
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, properties(total_bytes() + 1));
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, properties(std::numeric_limits<size_t>::max()));
}

TEST_F(Pool, POOL_04_DestroyReturnsTheMemory) {
  const size_t before = free_bytes();
  const TestStream stream;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolDestroy(nullptr));
  TestPool pool;
  void* const kept = pool.allocate(6 * kMiB, stream.get());
  (void)pool.allocate_and_free(10 * kMiB, stream.get());
  EXPECT_EQ(free_bytes(), before - 16 * kMiB);
  const aclrtMemPool handle = pool.release();
  EXPECT_SUCCESS(aclrtMemPoolDestroy(handle));
  EXPECT_EQ(free_bytes(), before);
  // The allocation ended with its pool.
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolFreeAsync(kept, stream.get()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(kept));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolDestroy(handle));
}

TEST_F(Pool, POOL_04_WhatQueuedTasksUseStaysUntilTheyRan) {
  const size_t before = free_bytes();
  const TestStream stream;
  TestPool pool;
  void* const data = pool.allocate(kUnit, stream.get());
  void* host = nullptr;
  ASSERT_SUCCESS(aclrtMallocHost(&host, kUnit));
  memset(host, 0, kUnit);
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtMemsetAsync(data, kUnit, 9, kUnit, stream.get()));
    EXPECT_SUCCESS(
        aclrtMemcpyAsync(host, kUnit, data, kUnit, ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, stream.get()));
    pool.destroy();
  }
  EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
  EXPECT_EQ(static_cast<uint8_t*>(host)[kUnit - 1], 9);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_SUCCESS(aclrtFreeHost(host));
}

TEST_F(Pool, POOL_15_AttributesOfNoPool) {
  uint64_t value = 7;
  TestPool pool;
  for (const aclrtMemPoolAttr attribute : {kSwitches[0], kFigures[0]}) {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolSetAttr(nullptr, attribute, &value));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolGetAttr(nullptr, attribute, &value));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolSetAttr(pool.get(), attribute, nullptr));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolGetAttr(pool.get(), attribute, nullptr));
  }
  const aclrtMemPool destroyed = pool.get();
  pool.destroy();
  for (void* const unknown : {destroyed, address(0x1234), static_cast<void*>(&value)}) {
    for (const aclrtMemPoolAttr attribute : kSwitches) {
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolGetAttr(unknown, attribute, &value));
    }
    for (const aclrtMemPoolAttr attribute : kFigures) {
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolGetAttr(unknown, attribute, &value));
    }
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemPoolSetAttr(unknown, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &value));
    uint32_t on = 1;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolSetAttr(unknown, kSwitches[0], &on));
  }
  EXPECT_EQ(value, 7u);
}

TEST_F(Pool, POOL_16_CurrentFiguresAreReadOnly) {
  const TestStream stream;
  const TestPool pool;
  (void)pool.allocate(kUnit, stream.get());
  for (const aclrtMemPoolAttr attribute :
       {ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT}) {
    for (uint64_t value : {uint64_t{0}, uint64_t{1}}) {
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolSetAttr(pool.get(), attribute, &value));
    }
    EXPECT_EQ(pool.figure(attribute), kUnit);
  }
}

TEST_F(Pool, POOL_17_HighMarksTakeOnlyZero) {
  const TestStream stream;
  const TestPool pool(8 * kMiB);
  pool.keep(8 * kMiB);
  (void)pool.allocate_and_free(4 * kMiB, stream.get());
  (void)pool.allocate(kUnit, stream.get());
  EXPECT_EQ(pool.reserved_high(), 4 * kMiB);
  EXPECT_EQ(pool.used_high(), 4 * kMiB);
  for (const aclrtMemPoolAttr attribute :
       {ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH}) {
    uint64_t value = 1;
    EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR, aclrtMemPoolSetAttr(pool.get(), attribute, &value));
    EXPECT_EQ(pool.figure(attribute), 4 * kMiB);
    value = 0;
    EXPECT_SUCCESS(aclrtMemPoolSetAttr(pool.get(), attribute, &value));
  }
  // From then on they are the highest since.
  EXPECT_EQ(pool.used_high(), kUnit);
  EXPECT_EQ(pool.reserved_high(), 4 * kMiB);
}

TEST_F(Pool, POOL_17_UnknownAttributesAndThresholdsBeyondTheLimit) {
  const TestPool pool(8 * kMiB);
  for (const int number : {0, 9, -1, 1000}) {
    const auto attribute = enum_value<aclrtMemPoolAttr>(number);
    uint64_t value = 5;
    EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR, aclrtMemPoolSetAttr(pool.get(), attribute, &value));
    EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR, aclrtMemPoolGetAttr(pool.get(), attribute, &value));
    EXPECT_EQ(value, 5u);
  }
  pool.keep(8 * kMiB);
  for (uint64_t value : {uint64_t{8 * kMiB + 1}, std::numeric_limits<uint64_t>::max()}) {
    EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR,
                 aclrtMemPoolSetAttr(pool.get(), ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &value));
  }
  EXPECT_EQ(pool.figure(ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD), 8 * kMiB);
}

TEST_F(Pool, POOL_18_DefaultsAreZeroAndTheLastSetCounts) {
  const TestPool pool;
  for (const aclrtMemPoolAttr attribute : kFigures) EXPECT_EQ(pool.figure(attribute), 0u);
  for (const aclrtMemPoolAttr attribute : kSwitches) {
    EXPECT_EQ(pool.reuse(attribute), 0u);
    pool.allow(attribute);
    pool.allow(attribute, 0);
    pool.allow(attribute);
    EXPECT_EQ(pool.reuse(attribute), 1u);
    uint32_t value = 2;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolSetAttr(pool.get(), attribute, &value));
    EXPECT_EQ(pool.reuse(attribute), 1u);
  }
  pool.keep(3);
  pool.keep(4 * kMiB);
  EXPECT_EQ(pool.figure(ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD), 4 * kMiB);
}

TEST_F(Pool, POOL_18_SwitchesAreFourBytes) {
  const TestPool pool;
  uint32_t values[2] = {1, 0xA5A5A5A5};
  EXPECT_SUCCESS(aclrtMemPoolSetAttr(pool.get(), kSwitches[0], &values[0]));
  EXPECT_SUCCESS(aclrtMemPoolGetAttr(pool.get(), kSwitches[1], &values[0]));
  EXPECT_EQ(values[0], 0u);
  EXPECT_EQ(values[1], 0xA5A5A5A5u);
}

TEST_F(Pool, POOL_19_SynchronisationReturnsFreeMemoryAboveTheThreshold) {
  const size_t before = free_bytes();
  const TestStream stream;
  const TestPool pool;
  void* const used = pool.allocate(kUnit, stream.get());
  (void)pool.allocate_and_free(8 * kMiB, stream.get());
  EXPECT_EQ(pool.reserved(), 10 * kMiB);
  pool.keep(4 * kMiB);
  EXPECT_EQ(pool.reserved(), 10 * kMiB);
  EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
  EXPECT_EQ(pool.reserved(), 6 * kMiB);
  EXPECT_EQ(pool.used(), kUnit);
  EXPECT_EQ(free_bytes(), before - 6 * kMiB);
  // The default of 0 keeps nothing that is free; any kind of synchronisation does it.
  pool.keep(0);
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
  EXPECT_EQ(pool.reserved(), kUnit);
  EXPECT_EQ(free_bytes(), before - kUnit);
  EXPECT_SUCCESS(aclrtMemPoolFreeAsync(used, stream.get()));
  EXPECT_SUCCESS(aclrtSynchronizeStreamWithTimeout(stream.get(), 60'000));
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(Pool, POOL_19_WhatAnotherStreamHasYetToFreeStays) {
  const TestStream idle;
  const TestStream held;
  const TestPool pool;
  void* const data = pool.allocate(kUnit, held.get());
  {
    Gate gate(held.get());
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, held.get()));
    EXPECT_SUCCESS(aclrtSynchronizeStream(idle.get()));
    EXPECT_EQ(pool.reserved(), kUnit);
    EXPECT_EQ(pool.used(), 0u);
  }
  EXPECT_SUCCESS(aclrtSynchronizeStream(held.get()));
  EXPECT_EQ(pool.reserved(), 0u);
}

TEST_F(Pool, POOL_20_TrimRefusesNoPoolAndTooMuch) {
  TestPool pool(8 * kMiB);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolTrimTo(nullptr, 0));
  EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR, aclrtMemPoolTrimTo(pool.get(), 8 * kMiB + 1));
  EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool.get(), 8 * kMiB));
  const aclrtMemPool destroyed = pool.get();
  pool.destroy();
  EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR, aclrtMemPoolTrimTo(destroyed, 0));
  EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR, aclrtMemPoolTrimTo(address(0x1234), 0));
}

TEST_F(Pool, POOL_21_TrimReturnsFreeMemoryAndNoOther) {
  const size_t before = free_bytes();
  const TestStream stream;
  const TestPool pool;
  pool.keep(64 * kMiB);  // which trimming does not care about
  void* const first = pool.allocate(kUnit, stream.get());
  void* const middle = pool.allocate(kUnit, stream.get());
  void* const last = pool.allocate(kUnit, stream.get());
  copy_in(first, pattern(kUnit, 1));
  copy_in(last, pattern(kUnit, 3));
  EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool.get(), 0));  // nothing is free
  EXPECT_EQ(pool.reserved(), 3 * kUnit);

  EXPECT_SUCCESS(aclrtMemPoolFreeAsync(middle, stream.get()));
  EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool.get(), 3 * kUnit));
  EXPECT_EQ(pool.reserved(), 3 * kUnit);
  EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool.get(), 0));
  EXPECT_EQ(pool.reserved(), 2 * kUnit);
  EXPECT_EQ(free_bytes(), before - 2 * kUnit);
  EXPECT_EQ(copy_out(first, kUnit), pattern(kUnit, 1));
  EXPECT_EQ(copy_out(last, kUnit), pattern(kUnit, 3));
  EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool.get(), 0));
}

TEST_F(Pool, POOL_21_TrimKeepsWhatItIsTold) {
  const TestStream stream;
  const TestPool pool;
  (void)pool.allocate_and_free(64 * kMiB, stream.get());
  EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool.get(), 9 * kMiB));
  EXPECT_EQ(pool.reserved(), 8 * kMiB);  // in whole units, at most
  // A part of an allocation that was freed can go while the rest is in use again.
  (void)pool.allocate(kUnit, stream.get());
  EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool.get(), 0));
  EXPECT_EQ(pool.reserved(), kUnit);
  EXPECT_EQ(pool.reserved_high(), 64 * kMiB);
}

TEST_F(Pool, POOL_22_HandleTypesAndDevices) {
  for (const auto type : {ACL_MEM_HANDLE_TYPE_NONE, ACL_MEM_HANDLE_TYPE_POSIX}) {
    aclrtMemPoolProps props = properties();
    props.handleType = type;
    aclrtMemPool pool = nullptr;
    EXPECT_SUCCESS(aclrtMemPoolCreate(&pool, &props));
    EXPECT_NE(pool, nullptr);
    EXPECT_SUCCESS(aclrtMemPoolDestroy(pool));
  }
  for (const int type : {1, 3, -1}) {
    aclrtMemPoolProps props = properties();
    props.handleType = enum_value<aclrtMemHandleType>(type);
    expect_refused(ACL_ERROR_INVALID_PARAM, props);
  }
  uint32_t count = 0;
  ASSERT_SUCCESS(aclrtGetDeviceCount(&count));
  for (const uint32_t id : {count, std::numeric_limits<uint32_t>::max()}) {
    expect_refused(ACL_ERROR_RT_INVALID_DEVICEID, properties(0, id));
  }
  // Outer faults come first.
  aclrtMemPoolProps props = properties(0, count);
  props.reserved[3] = 1;
  expect_refused(ACL_ERROR_INVALID_PARAM, props);
}

class PoolOnProductWithoutIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, PoolOnProductWithoutIt,
                         testing::Values("a3", "inf", "trn", "200i", "950"),
                         [](const auto& parameter) { return "On" + parameter.param; });

TEST_P(PoolOnProductWithoutIt, POOL_01_TheProductIsAskedAfterTheOuterCheck) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "4G"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtMemPoolProps props = properties();
  aclrtMemPool pool = address(0x77);
  void* data = address(0x78);
  uint64_t value = 0;
  const aclError unsupported = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  const auto attribute = ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolCreate(nullptr, &props));
  EXPECT_FAILS(unsupported, aclrtMemPoolCreate(&pool, &props));
  EXPECT_FAILS(unsupported, aclrtMemPoolDestroy(pool));
  EXPECT_FAILS(unsupported, aclrtMemPoolSetAttr(pool, attribute, &value));
  EXPECT_FAILS(unsupported, aclrtMemPoolGetAttr(pool, attribute, &value));
  EXPECT_FAILS(unsupported, aclrtMemPoolMallocAsync(&data, 1, pool, data));
  EXPECT_FAILS(unsupported, aclrtMemPoolFreeAsync(data, data));
  EXPECT_FAILS(unsupported, aclrtMemPoolTrimTo(pool, 0));
  EXPECT_EQ(pool, address(0x77));
  EXPECT_EQ(data, address(0x78));
}

}  // namespace
}  // namespace understudy_test::pool
