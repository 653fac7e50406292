// SPDX-License-Identifier: Apache-2.0
//
// Which free memory of a pool an allocation gets. Covers: POOL-12 to POOL-14.
// Covers: POOL-12, POOL-13, POOL-14.
#include <cstdint>
#include <vector>

#include "rules/pool_objects.h"

namespace understudy_test::pool {
namespace {

constexpr auto kFollowEvents = ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES;
constexpr auto kOpportunistic = ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC;
constexpr auto kInternal = ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES;

using PoolReuse = DeviceTest;

void wait_on(aclrtStream stream, aclrtEvent event, aclrtStream recorded_on) {
  EXPECT_SUCCESS(aclrtRecordEvent(event, recorded_on));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(stream, event));
}

TEST_F(PoolReuse, POOL_12_TheFreeBlockClosestInSizeIsTaken) {
  const TestStream stream;
  const TestPool pool;
  // Blocks of 8, 4 and 6 MiB with used ones between them, which keep them apart.
  std::vector<void*> blocks;
  for (const size_t size : {8 * kMiB, 4 * kMiB, 6 * kMiB}) {
    blocks.push_back(pool.allocate(size, stream.get()));
    (void)pool.allocate(kUnit, stream.get());
  }
  for (void* const block : blocks) EXPECT_SUCCESS(aclrtMemPoolFreeAsync(block, stream.get()));
  const uint64_t reserved = pool.reserved();
  EXPECT_EQ(pool.allocate(5 * kMiB, stream.get()), blocks[2]);
  EXPECT_EQ(pool.allocate(3 * kMiB, stream.get()), blocks[1]);
  // A larger one is cut, and what is left of it is closest then.
  EXPECT_EQ(pool.allocate(kUnit, stream.get()), blocks[0]);
  EXPECT_EQ(pool.allocate(6 * kMiB, stream.get()), at(blocks[0], kUnit));
  EXPECT_EQ(pool.reserved(), reserved);
}

TEST_F(PoolReuse, POOL_12_NeighboursAreJoined) {
  const TestStream stream;
  const TestPool pool(8 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool.allocate(kUnit, stream.get()));
  for (const int i : {2, 0, 3, 1}) {
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(blocks[static_cast<size_t>(i)], stream.get()));
  }
  const uint64_t reserved = pool.reserved();
  (void)pool.allocate(8 * kMiB, stream.get());
  EXPECT_EQ(pool.reserved(), reserved);
}

TEST_F(PoolReuse, POOL_13_TheSameStreamReusesAtOnce) {
  const TestStream stream;
  const TestPool pool;
  void* host = nullptr;
  ASSERT_SUCCESS(aclrtMallocHost(&host, 2 * kUnit));
  {
    Gate gate(stream.get());
    // Two lives of the same memory, of different sizes, before a task of either has run.
    void* const first = pool.allocate(2 * kUnit, stream.get());
    EXPECT_SUCCESS(aclrtMemsetAsync(first, 2 * kUnit, 1, 2 * kUnit, stream.get()));
    EXPECT_SUCCESS(aclrtMemcpyAsync(host, kUnit, at(first, kUnit), kUnit, ACL_MEMCPY_DEVICE_TO_HOST,
                                    stream.get()));
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(first, stream.get()));
    void* const second = pool.allocate(kUnit, stream.get());
    EXPECT_EQ(second, first);
    EXPECT_SUCCESS(aclrtMemsetAsync(second, kUnit, 2, kUnit, stream.get()));
    EXPECT_SUCCESS(aclrtMemcpyAsync(at(host, kUnit), kUnit, second, kUnit,
                                    ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(second, stream.get()));
  }
  EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
  EXPECT_EQ(static_cast<uint8_t*>(host)[kUnit - 1], 1);
  EXPECT_EQ(static_cast<uint8_t*>(host)[2 * kUnit - 1], 2);
  EXPECT_SUCCESS(aclrtFreeHost(host));
}

TEST_F(PoolReuse, POOL_14_WithoutAnAttributeStreamsDoNotShare) {
  const TestStream one;
  const TestStream other;
  const TestEvent event;
  const TestPool pool;
  pool.keep(64 * kMiB);
  void* const data = pool.allocate_and_free(kUnit, one.get());
  wait_on(other.get(), event.get(), one.get());
  EXPECT_SUCCESS(aclrtSynchronizeStream(one.get()));
  EXPECT_NE(pool.allocate(kUnit, other.get()), data);
  EXPECT_EQ(pool.allocate(kUnit, one.get()), data);
}

TEST_F(PoolReuse, POOL_14_AStreamThatEndedLeavesItsMemoryToAll) {
  TestStream one;
  const TestStream other;
  const TestPool pool;
  void* const data = pool.allocate_and_free(kUnit, one.get());
  one.destroy();
  EXPECT_EQ(pool.allocate(kUnit, other.get()), data);
}

TEST_F(PoolReuse, POOL_14_Opportunistic) {
  const TestStream one;
  const TestStream other;
  const TestPool pool;
  pool.keep(64 * kMiB);
  pool.allow(kOpportunistic);
  void* const data = pool.allocate(kUnit, one.get());
  void* held = nullptr;
  {
    Gate gate(one.get());
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, one.get()));
    held = pool.allocate(kUnit, other.get());
    EXPECT_NE(held, data);  // the free has not run
  }
  EXPECT_SUCCESS(aclrtSynchronizeStream(one.get()));
  EXPECT_EQ(pool.allocate(kUnit, other.get()), data);
}

TEST_F(PoolReuse, POOL_14_FollowsEvents) {
  const TestStream one;
  const TestStream other;
  const TestEvent early;
  const TestEvent late;
  const TestPool pool;
  pool.allow(kFollowEvents);
  void* const data = pool.allocate(kUnit, one.get());
  {
    Gate gate(one.get());
    // An event in front of the free orders nothing.
    wait_on(other.get(), early.get(), one.get());
    EXPECT_SUCCESS(aclrtMemsetAsync(data, kUnit, 1, kUnit, one.get()));
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, one.get()));
    EXPECT_NE(pool.allocate(kUnit, other.get()), data);
    // One behind it does, although the free has yet to run.
    wait_on(other.get(), late.get(), one.get());
    EXPECT_EQ(pool.allocate(kUnit, other.get()), data);
    EXPECT_SUCCESS(aclrtMemsetAsync(data, kUnit, 2, kUnit, other.get()));
  }
  EXPECT_SUCCESS(aclrtSynchronizeStream(other.get()));
  EXPECT_TRUE(holds(data, kUnit, 2));
}

TEST_F(PoolReuse, POOL_14_FollowsEventsOverOtherStreams) {
  const TestStream one;
  const TestStream between;
  const TestStream other;
  const TestEvent first;
  const TestEvent second;
  const TestEvent third;
  const TestPool pool;
  pool.allow(kFollowEvents);
  void* const data = pool.allocate(kUnit, one.get());
  {
    Gate gate(one.get());
    // What the stream between is told after its event was recorded does not count.
    EXPECT_SUCCESS(aclrtRecordEvent(first.get(), between.get()));
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, one.get()));
    wait_on(between.get(), second.get(), one.get());
    EXPECT_SUCCESS(aclrtStreamWaitEvent(other.get(), first.get()));
    EXPECT_NE(pool.allocate(kUnit, other.get()), data);
    wait_on(other.get(), third.get(), between.get());
    EXPECT_EQ(pool.allocate(kUnit, other.get()), data);
  }
}

TEST_F(PoolReuse, POOL_14_AnEventThatWasDroppedOrdersNothing) {
  const TestStream one;
  const TestStream other;
  const TestEvent event;
  const TestPool pool;
  pool.allow(kFollowEvents);
  void* const data = pool.allocate(kUnit, one.get());
  {
    Gate gate(one.get());
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, one.get()));
    wait_on(other.get(), event.get(), one.get());
    EXPECT_SUCCESS(aclrtStreamAbort(other.get()));
    EXPECT_NE(pool.allocate(kUnit, other.get()), data);
  }
}

TEST_F(PoolReuse, POOL_14_InternalDependencies) {
  const TestStream one;
  const TestStream other;
  const TestPool pool;
  pool.allow(kInternal);
  void* const data = pool.allocate(kUnit, one.get());
  void* host = nullptr;
  ASSERT_SUCCESS(aclrtMallocHost(&host, kUnit));
  {
    Gate gate(one.get());
    EXPECT_SUCCESS(aclrtMemsetAsync(data, kUnit, 1, kUnit, one.get()));
    EXPECT_SUCCESS(
        aclrtMemcpyAsync(host, kUnit, data, kUnit, ACL_MEMCPY_DEVICE_TO_HOST, one.get()));
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, one.get()));
    EXPECT_EQ(pool.allocate(kUnit, other.get()), data);
    EXPECT_SUCCESS(aclrtMemsetAsync(data, kUnit, 2, kUnit, other.get()));
    // The stream waits, although the program told it nothing of the kind.
    EXPECT_EQ(stream_status(other.get()), ACL_STREAM_STATUS_NOT_READY);
  }
  EXPECT_SUCCESS(aclrtSynchronizeStream(other.get()));
  EXPECT_EQ(static_cast<uint8_t*>(host)[kUnit - 1], 1);
  EXPECT_TRUE(holds(data, kUnit, 2));
  EXPECT_SUCCESS(aclrtFreeHost(host));
}

TEST_F(PoolReuse, POOL_14_NoWaitIsAddedWhereAnotherWayExists) {
  const TestStream one;
  const TestStream other;
  const TestPool pool;
  pool.allow(kInternal);
  void* const data = pool.allocate(kUnit, one.get());
  void* const larger = pool.allocate(2 * kUnit, other.get());
  {
    Gate gate(one.get());
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, one.get()));
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(larger, other.get()));
    EXPECT_EQ(pool.allocate(kUnit, other.get()), larger);
    EXPECT_EQ(stream_status(other.get()), ACL_STREAM_STATUS_COMPLETE);
  }
}

}  // namespace
}  // namespace understudy_test::pool
