// SPDX-License-Identifier: Apache-2.0
//
// What only the software NPU can tell: what of the process is alive, and on which server it is.
#include <cstdlib>
#include <cstring>

#include "acl/acl_understudy.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

aclUnderstudyObjects objects() {
  aclUnderstudyObjects found;
  memset(&found, 0xEE, sizeof found);
  EXPECT_SUCCESS(aclUnderstudyCountObjects(&found));
  for (const uint64_t word : found.reserved) EXPECT_EQ(word, 0U);
  return found;
}

using OwnFunctions = DeviceTest;

TEST_F(OwnFunctions, NullIsRefused) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclUnderstudyCountObjects(nullptr));
}

TEST_F(OwnFunctions, WithoutChecksNoPlacesAreKnown) {
  const auto count = [](const auto*, void* visits) { ++*static_cast<unsigned*>(visits); };
  unsigned visits = 0;
  void* block = nullptr;
  ASSERT_SUCCESS(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_EQ(aclUnderstudyWantsPlaces(), 0);
  EXPECT_EQ(aclUnderstudyMark(), 0U);
  EXPECT_SUCCESS(aclUnderstudyVisitGrowth(0, count, &visits));
  EXPECT_SUCCESS(aclUnderstudyTakeFindings(count, &visits));
  EXPECT_EQ(visits, 0U);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclUnderstudyVisitGrowth(0, nullptr, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclUnderstudyTakeFindings(nullptr, nullptr));
  EXPECT_SUCCESS(aclrtFree(block));
}

TEST_F(OwnFunctions, AllocationsOfAnySizeAreCounted) {
  for (const size_t size : {size_t{64}, 64 * kKiB, 3 * kMiB}) {
    const aclUnderstudyObjects before = objects();
    void* block = nullptr;
    ASSERT_SUCCESS(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_EQ(objects().allocations, before.allocations + 1);
    EXPECT_GE(objects().deviceBytes, before.deviceBytes + size);
    EXPECT_SUCCESS(aclrtFree(block));
    EXPECT_EQ(objects().allocations, before.allocations);
    EXPECT_EQ(objects().deviceBytes, before.deviceBytes);
  }
}

TEST_F(OwnFunctions, HostAllocationsOfAnySizeAreCounted) {
  for (const size_t size : {size_t{64}, 3 * kMiB}) {
    const aclUnderstudyObjects before = objects();
    void* block = nullptr;
    ASSERT_SUCCESS(aclrtMallocHost(&block, size));
    EXPECT_EQ(objects().hostAllocations, before.hostAllocations + 1);
    EXPECT_EQ(objects().deviceBytes, before.deviceBytes);
    EXPECT_SUCCESS(aclrtFreeHost(block));
    EXPECT_EQ(objects().hostAllocations, before.hostAllocations);
  }
}

TEST_F(OwnFunctions, HandlesReservationsAndMappingsAreCounted) {
  const aclUnderstudyObjects before = objects();
  void* const range = reserve(4 * kMiB);
  EXPECT_EQ(objects().reservations, before.reservations + 1);
  const aclrtDrvMemHandle block = create_block(2 * kMiB);
  EXPECT_EQ(objects().physicalHandles, before.physicalHandles + 1);
  EXPECT_EQ(objects().deviceBytes, before.deviceBytes + 2 * kMiB);
  ASSERT_SUCCESS(aclrtMapMem(range, 2 * kMiB, 0, block, 0));
  EXPECT_EQ(objects().mappings, before.mappings + 1);
  // Without its handle the block lives on in its mapping.
  ASSERT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_EQ(objects().physicalHandles, before.physicalHandles);
  EXPECT_EQ(objects().deviceBytes, before.deviceBytes + 2 * kMiB);
  ASSERT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_EQ(objects().mappings, before.mappings);
  EXPECT_EQ(objects().deviceBytes, before.deviceBytes);
  ASSERT_SUCCESS(aclrtReleaseMemAddress(range));
  EXPECT_EQ(objects().reservations, before.reservations);
}

TEST_F(OwnFunctions, ARetainedHandleIsOneMore) {
  void* const range = reserve(2 * kMiB);
  const aclrtDrvMemHandle block = create_block(2 * kMiB);
  ASSERT_SUCCESS(aclrtMapMem(range, 2 * kMiB, 0, block, 0));
  const uint64_t before = objects().physicalHandles;
  aclrtDrvMemHandle again = nullptr;
  ASSERT_SUCCESS(aclrtMemRetainAllocationHandle(range, &again));
  EXPECT_EQ(objects().physicalHandles, before + 1);
  EXPECT_SUCCESS(aclrtFreePhysical(again));
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  EXPECT_EQ(objects().physicalHandles, before - 1);
}

TEST_F(OwnFunctions, StreamsEventsAndNotifiesAreCountedUntilTheyEnd) {
  const aclUnderstudyObjects before = objects();
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  aclrtEvent event_of_new_kind = nullptr;
  aclrtNotify notify = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&stream));
  ASSERT_SUCCESS(aclrtCreateEvent(&event));
  ASSERT_SUCCESS(aclrtCreateEventExWithFlag(&event_of_new_kind, ACL_EVENT_SYNC));
  ASSERT_SUCCESS(aclrtCreateNotify(&notify, 0));
  const aclUnderstudyObjects during = objects();
  EXPECT_EQ(during.streams, before.streams + 1);
  EXPECT_EQ(during.events, before.events + 2);
  EXPECT_EQ(during.notifies, before.notifies + 1);
  ASSERT_SUCCESS(aclrtDestroyStream(stream));
  ASSERT_SUCCESS(aclrtDestroyEvent(event));
  ASSERT_SUCCESS(aclrtDestroyEvent(event_of_new_kind));
  ASSERT_SUCCESS(aclrtDestroyNotify(notify));
  const aclUnderstudyObjects after = objects();
  EXPECT_EQ(after.streams, before.streams);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.notifies, before.notifies);
}

TEST_F(OwnFunctions, WhatAResetEndsIsCountedNoMore) {
  const aclUnderstudyObjects before = objects();
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&stream));
  ASSERT_SUCCESS(aclrtCreateEvent(&event));
  ASSERT_SUCCESS(aclrtResetDeviceForce(0));
  EXPECT_EQ(objects().streams, before.streams);
  EXPECT_EQ(objects().events, before.events);
}

TEST_F(OwnFunctions, DefaultStreamsAreNotCounted) {
  const uint64_t before = objects().streams;
  aclrtContext context = nullptr;
  ASSERT_SUCCESS(aclrtCreateContext(&context, 0));
  EXPECT_EQ(objects().streams, before);
  ASSERT_SUCCESS(aclrtDestroyContext(context));
}

TEST_F(OwnFunctions, PoolsAreCounted) {
  const uint64_t before = objects().pools;
  aclrtMemPool pool = nullptr;
  aclrtMemPoolProps properties{};
  properties.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  properties.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  ASSERT_SUCCESS(aclrtMemPoolCreate(&pool, &properties));
  EXPECT_EQ(objects().pools, before + 1);
  ASSERT_SUCCESS(aclrtMemPoolDestroy(pool));
  EXPECT_EQ(objects().pools, before);
}

TEST(OwnFunctionsAtFirst, NothingIsStartedByAsking) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "no such product"});
  EXPECT_EQ(objects().reservations, 0U);
  EXPECT_EQ(aclUnderstudyRuntimeDirectory(), nullptr);
}

TEST(OwnFunctionsAtFirst, TheServerIsToldOnceThereIsOne) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "2"});
  EXPECT_EQ(aclUnderstudyRuntimeDirectory(), nullptr);
  uint32_t count = 0;
  ASSERT_SUCCESS(aclrtGetDeviceCount(&count));
  ASSERT_NE(aclUnderstudyRuntimeDirectory(), nullptr);
  EXPECT_STREQ(aclUnderstudyRuntimeDirectory(), getenv("UNDERSTUDY_RUNTIME_DIR"));
}

}  // namespace
}  // namespace understudy_test
