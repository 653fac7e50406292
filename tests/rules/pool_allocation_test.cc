// SPDX-License-Identifier: Apache-2.0
//
// Memory of pools: allocated, used by tasks, freed on streams and at once.
// Covers: FREE-07, POOL-05, POOL-06, POOL-07, POOL-08, POOL-09, POOL-10, POOL-11.
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "rules/pool_objects.h"
#include "rules/runtime_support.h"

namespace understudy_test::pool {
namespace {

using PoolAllocation = DeviceTest;

TEST_F(PoolAllocation, POOL_05_NullArgumentsAreRefused) {
  const TestStream stream;
  const TestPool pool;
  void* data = address(0x77);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemPoolMallocAsync(nullptr, kUnit, pool.get(), stream.get()));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemPoolMallocAsync(&data, kUnit, nullptr, stream.get()));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolMallocAsync(&data, kUnit, pool.get(), nullptr));
  EXPECT_EQ(data, address(0x77));
  EXPECT_EQ(pool.reserved(), 0u);
}

TEST_F(PoolAllocation, POOL_06_NoBytesAreNothing) {
  const TestStream stream;
  const TestPool pool;
  void* data = address(0x77);
  EXPECT_SUCCESS(aclrtMemPoolMallocAsync(&data, 0, pool.get(), stream.get()));
  EXPECT_EQ(data, address(0x77));
  EXPECT_EQ(pool.reserved(), 0u);
}

TEST_F(PoolAllocation, POOL_07_SizesAreRoundedUp) {
  const size_t before = free_bytes();
  const TestStream stream;
  const TestPool pool;
  size_t used = 0;
  for (const size_t size : {size_t{1}, kUnit, kUnit + 1, 5 * kMiB}) {
    SCOPED_TRACE(size);
    void* const data = pool.allocate(size, stream.get());
    EXPECT_EQ(number(data) % kUnit, 0u);
    used += (size + kUnit - 1) / kUnit * kUnit;
    EXPECT_EQ(pool.used(), used);
    EXPECT_EQ(pool.reserved(), used);
    EXPECT_EQ(free_bytes(), before - used);
  }
}

TEST_F(PoolAllocation, POOL_07_TasksQueuedLaterUseIt) {
  const TestStream stream;
  const TestPool pool;
  void* host = nullptr;
  ASSERT_SUCCESS(aclrtMallocHost(&host, kUnit));
  {
    Gate gate(stream.get());  // the stream has work to do meanwhile
    void* const data = pool.allocate(3 * kMiB, stream.get());
    EXPECT_SUCCESS(aclrtMemsetAsync(data, 4 * kMiB, 3, 4 * kMiB, stream.get()));
    EXPECT_SUCCESS(aclrtMemcpyAsync(host, kUnit, at(data, kUnit), kUnit, ACL_MEMCPY_DEVICE_TO_HOST,
                                    stream.get()));
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, stream.get()));
  }
  EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
  EXPECT_EQ(std::vector<uint8_t>(static_cast<uint8_t*>(host), static_cast<uint8_t*>(host) + kUnit),
            std::vector<uint8_t>(kUnit, 3));
  EXPECT_SUCCESS(aclrtFreeHost(host));
}

TEST_F(PoolAllocation, POOL_07_ItIsDeviceMemoryForEveryCall) {
  const TestStream stream;
  const TestPool pool;
  void* const data = pool.allocate(3 * kMiB, stream.get());
  void* const next = pool.allocate(kUnit, stream.get());
  copy_in(data, pattern(4 * kMiB, 5));
  copy_in(next, pattern(kUnit, 6));
  EXPECT_EQ(copy_out(data, 4 * kMiB), pattern(4 * kMiB, 5));

  aclrtPtrAttributes attributes;
  EXPECT_SUCCESS(aclrtPointerGetAttributes(at(data, kUnit + 5), &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(attributes.location.id, 0u);
  EXPECT_EQ(attributes.pageSize, kUnit);
  void* base = nullptr;
  size_t size = 0;
  EXPECT_SUCCESS(aclrtMemGetAddressRange(at(data, kUnit + 5), &base, &size));
  EXPECT_EQ(base, data);
  EXPECT_EQ(size, 4 * kMiB);

  // A copy that leaves the allocation is refused, whatever lies behind it.
  std::vector<uint8_t> bytes(4 * kMiB + 1);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(bytes.data(), bytes.size(), data,
                                                       bytes.size(), ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(data, bytes.size(), 0, bytes.size()));
  EXPECT_EQ(copy_out(next, kUnit), pattern(kUnit, 6));
  // And it has no block that could be exported.
  std::array<char, 65> key = {};
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtIpcMemGetExportKey(data, kUnit, key.data(), key.size(), 1));
}

TEST_F(PoolAllocation, POOL_08_StreamsOfOtherContextsAndDestroyedStreams) {
  const aclrtContext own = runtime::current_context();
  const TestPool pool;
  TestStream stream;
  void* data = address(0x77);
  {
    const aclrtContext other = runtime::create_context();
    ASSERT_SUCCESS(aclrtSetCurrentContext(other));
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_CONTEXT,
                 aclrtMemPoolMallocAsync(&data, kUnit, pool.get(), stream.get()));
    ASSERT_SUCCESS(aclrtSetCurrentContext(own));
    EXPECT_SUCCESS(aclrtDestroyContext(other));
  }
  const aclrtStream destroyed = stream.get();
  stream.destroy();
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE,
               aclrtMemPoolMallocAsync(&data, kUnit, pool.get(), destroyed));
  EXPECT_EQ(data, address(0x77));
  EXPECT_EQ(pool.reserved(), 0u);
  runtime::on_new_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL,
                 aclrtMemPoolMallocAsync(&data, kUnit, pool.get(), destroyed));
  });
}

TEST_F(PoolAllocation, POOL_08_DestroyedPools) {
  const TestStream stream;
  TestPool pool;
  const aclrtMemPool destroyed = pool.get();
  pool.destroy();
  void* data = address(0x77);
  for (void* const unknown :
       {destroyed, address(0x1234), static_cast<void*>(&data), static_cast<void*>(stream.get())}) {
    EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR,
                 aclrtMemPoolMallocAsync(&data, kUnit, unknown, stream.get()));
  }
  EXPECT_EQ(data, address(0x77));
}

TEST_F(PoolAllocation, POOL_08_ExhaustedPools) {
  const TestStream stream;
  const TestPool pool(8 * kMiB);
  void* const first = pool.allocate(6 * kMiB, stream.get());
  const MemoryFigures before = memory_figures();
  void* data = address(0x77);
  for (const size_t size : {4 * kMiB, 64 * kGiB, std::numeric_limits<size_t>::max()}) {
    EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR,
                 aclrtMemPoolMallocAsync(&data, size, pool.get(), stream.get()));
  }
  EXPECT_EQ(data, address(0x77));
  EXPECT_EQ(pool.used(), 6 * kMiB);
  EXPECT_TRUE(memory_figures() == before);
  (void)pool.allocate(kUnit, stream.get());
  EXPECT_SUCCESS(aclrtMemPoolFreeAsync(first, stream.get()));
  (void)pool.allocate(4 * kMiB, stream.get());
}

TEST_F(PoolAllocation, POOL_08_FreeMemoryOfOtherStreamsIsNotInTheWay) {
  const TestStream one;
  const TestStream other;
  const TestPool pool(8 * kMiB);
  (void)pool.allocate_and_free(8 * kMiB, one.get());
  // Not reused, which takes an attribute, but given back to the device first.
  (void)pool.allocate(6 * kMiB, other.get());
  EXPECT_EQ(pool.reserved(), 8 * kMiB);
}

TEST_F(PoolAllocation, POOL_08_ADeviceWithoutMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"}, {"UNDERSTUDY_MEMORY", "1G"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const TestStream stream;
  const TestPool pool;
  const size_t huge = free_bytes(ACL_HBM_MEM_HUGE);
  void* block = nullptr;
  ASSERT_SUCCESS(aclrtMalloc(&block, huge - 16 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY));
  const size_t left = free_bytes(ACL_HBM_MEM_HUGE);
  const MemoryFigures before = memory_figures();
  void* data = address(0x77);
  EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR,
               aclrtMemPoolMallocAsync(&data, left + kUnit, pool.get(), stream.get()));
  EXPECT_EQ(data, address(0x77));
  EXPECT_TRUE(memory_figures() == before);
  EXPECT_EQ(pool.reserved(), 0u);
  EXPECT_EQ(pool.reserved_high(), 0u);
  // What the pool keeps free is given back before it says no.
  (void)pool.allocate_and_free(left - kUnit, stream.get());
  EXPECT_NE(pool.allocate(left, stream.get()), nullptr);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), 0u);
}

TEST_F(PoolAllocation, POOL_09_FreeRefusesNull) {
  const TestStream stream;
  const TestPool pool;
  void* const data = pool.allocate(kUnit, stream.get());
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolFreeAsync(nullptr, stream.get()));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemPoolFreeAsync(nullptr, nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR, aclrtMemPoolFreeAsync(data, nullptr));
  EXPECT_EQ(pool.used(), kUnit);
}

TEST_F(PoolAllocation, POOL_10_FreesRunInTheOrderOfTheStream) {
  const size_t before = free_bytes();
  const TestStream stream;
  const TestStream other;
  const TestPool pool;
  pool.allow(ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC);
  void* const data = pool.allocate(kUnit, stream.get());
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtMemsetAsync(data, kUnit, 1, kUnit, stream.get()));
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, stream.get()));
    EXPECT_EQ(pool.used(), 0u);
    // The task in front of it has yet to run, so no other stream gets the memory.
    EXPECT_NE(pool.allocate(kUnit, other.get()), data);
    EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool.get(), 0));
    EXPECT_EQ(pool.reserved(), 2 * kUnit);
  }
  pool.keep(kUnit);
  EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
  // The physical memory stays with the pool.
  EXPECT_EQ(pool.reserved(), 2 * kUnit);
  EXPECT_EQ(free_bytes(), before - 2 * kUnit);
  EXPECT_EQ(pool.allocate(kUnit, other.get()), data);
}

TEST_F(PoolAllocation, POOL_10_AStreamMayFreeWhatAnotherAllocated) {
  const TestStream one;
  const TestStream other;
  const TestPool pool;
  void* const data = pool.allocate(kUnit, one.get());
  EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, other.get()));
  EXPECT_EQ(pool.allocate(kUnit, other.get()), data);
}

TEST_F(PoolAllocation, POOL_11_OrdinaryMemoryIsFreedInStreamOrder) {
  const TestStream stream;
  const size_t before = free_bytes();
  for (const size_t size : {size_t{512}, 6 * kMiB}) {
    SCOPED_TRACE(size);
    void* data = nullptr;
    ASSERT_SUCCESS(aclrtMalloc(&data, size, ACL_MEM_MALLOC_HUGE_FIRST));
    const size_t allocated = free_bytes();
    EXPECT_LT(allocated, before);
    {
      Gate gate(stream.get());
      EXPECT_SUCCESS(aclrtMemsetAsync(data, size, 7, size, stream.get()));
      EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, stream.get()));
      EXPECT_EQ(free_bytes(), allocated);
    }
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
    EXPECT_EQ(free_bytes(), before);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolFreeAsync(data, stream.get()));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(data));
  }
}

TEST_F(PoolAllocation, POOL_11_AFreeThatIsDroppedFreesAllTheSame) {
  const size_t before = free_bytes();
  TestStream stream;
  void* data = nullptr;
  ASSERT_SUCCESS(aclrtMalloc(&data, 6 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  {
    const EventGate gate(stream.get());
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, stream.get()));
    EXPECT_SUCCESS(aclrtStreamAbort(stream.get()));
  }
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(PoolAllocation, POOL_11_UnknownAddressesAreRefused) {
  const TestStream stream;
  const TestPool pool;
  void* const data = pool.allocate(4 * kMiB, stream.get());
  void* const freed = pool.allocate_and_free(kUnit, stream.get());
  void* ordinary = nullptr;
  ASSERT_SUCCESS(aclrtMalloc(&ordinary, 4 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  const uint64_t reserved = pool.reserved();
  std::vector<uint8_t> host(16);
  for (void* const unknown : {at(data, 1), at(data, kUnit), at(data, 32 * kMiB), freed,
                              at(ordinary, 64), static_cast<void*>(host.data()), address(64)}) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolFreeAsync(unknown, stream.get()));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(unknown));
  }
  EXPECT_EQ(pool.used(), 4 * kMiB);
  EXPECT_EQ(pool.reserved(), reserved);
  EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, stream.get()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolFreeAsync(data, stream.get()));
  EXPECT_SUCCESS(aclrtFree(ordinary));
}

TEST_F(PoolAllocation, POOL_11_WhatWasFreedCannotBeNamedAnyMore) {
  const TestStream stream;
  const TestPool pool;
  void* const data = pool.allocate(kUnit, stream.get());
  copy_in(data, pattern(16, 1));
  EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, stream.get()));
  std::vector<uint8_t> bytes(16);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(bytes.data(), 16, data, 16, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(data, 16, 0, 16));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemsetAsync(data, kUnit, 1, kUnit, stream.get()));
  void* base = address(0x77);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemGetAddressRange(data, &base, nullptr));
}

TEST_F(PoolAllocation, FREE_07_MemoryGoesBackToItsPoolAtOnce) {
  const size_t before = free_bytes();
  const TestStream stream;
  const TestStream other;
  const TestPool pool;
  void* const data = pool.allocate(kUnit, stream.get());
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtFree(data));
    EXPECT_EQ(pool.used(), 0u);
    EXPECT_EQ(pool.reserved(), kUnit);
    EXPECT_EQ(free_bytes(), before - kUnit);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(data));
    // Whatever the stream has yet to do, any stream can have it.
    EXPECT_EQ(pool.allocate(kUnit, other.get()), data);
    EXPECT_SUCCESS(aclrtFree(data));
    EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool.get(), 0));
    EXPECT_EQ(free_bytes(), before);
  }
  void* const again = pool.allocate(kUnit, stream.get());
  EXPECT_SUCCESS(aclrtFreeWithDevSync(again));
  EXPECT_EQ(pool.used(), 0u);
  // On a thread without a context, too (FREE-04).
  void* const last = pool.allocate(kUnit, stream.get());
  runtime::on_new_thread([&] { EXPECT_SUCCESS(aclrtFree(last)); });
  EXPECT_EQ(pool.used(), 0u);
}

}  // namespace
}  // namespace understudy_test::pool
