// SPDX-License-Identifier: Apache-2.0
//
// Allocation and release while streams have work: what returns at once, and the two functions that
// wait first.
// Covers: FREE-03, FREE-08, FREE-09, HOST-07, HOST-21, HOST-23, MALLOC-09.
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

using AllocationAndStreams = HostMemoryTest;

TEST_F(AllocationAndStreams, MALLOC_09_FREE_03_DeviceMemoryComesAndGoesWithoutAWait) {
  const MemoryFigures before = memory_figures();
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    Gate gate(stream);
    for (const DeviceMalloc& function : kDeviceMallocs) {
      for (const size_t size : {size_t{100}, 3 * kMiB}) {
        SCOPED_TRACE(testing::Message() << function.name << " of " << size << " bytes");
        void* data = nullptr;
        EXPECT_SUCCESS(while_held(
            gate, [&] { return function.call(&data, size, ACL_MEM_MALLOC_HUGE_FIRST); }));
        EXPECT_NE(memory_figures(), before);
        EXPECT_SUCCESS(while_held(gate, [&] { return aclrtFree(data); }));
        EXPECT_EQ(memory_figures(), before);
      }
    }
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
  }
}

TEST_F(AllocationAndStreams, MALLOC_09_RefusalDoesNotWaitEither) {
  const TestStream stream;
  Gate gate(stream.get());
  void* data = untouched_address();
  EXPECT_EQ(
      while_held(gate, [&] { return aclrtMalloc(&data, 100 * kTiB, ACL_MEM_MALLOC_HUGE_ONLY); }),
      ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(data, untouched_address());
}

TEST_F(AllocationAndStreams, HOST_07_HOST_21_HostMemoryComesAndGoesWithoutAWait) {
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    Gate gate(stream);
    for (const size_t size : {size_t{100}, 3 * kMiB}) {
      SCOPED_TRACE(size);
      void* data = nullptr;
      EXPECT_SUCCESS(while_held(gate, [&] { return aclrtMallocHost(&data, size); }));
      expect_at_host(data);
      EXPECT_SUCCESS(while_held(gate, [&] { return aclrtFreeHost(data); }));
      expect_unknown_place(data);
      EXPECT_SUCCESS(
          while_held(gate, [&] { return aclrtMallocHostWithCfg(&data, size, nullptr); }));
      EXPECT_SUCCESS(while_held(gate, [&] { return aclrtFreeHost(data); }));
    }
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
  }
}

// ---- The two functions that wait ----

struct WaitingFree {
  const char* name;
  aclError (*allocate)(void** data, size_t size);
  aclError (*free)(void* data);

  friend std::ostream& operator<<(std::ostream& out, const WaitingFree& function) {
    return out << function.name;
  }
};

aclError allocate_on_device(void** data, size_t size) {
  return aclrtMalloc(data, size, ACL_MEM_MALLOC_HUGE_FIRST);
}

class FreeWithDevSync : public HostMemoryTest, public testing::WithParamInterface<WaitingFree> {
 protected:
  static void* allocate(size_t size) {
    void* data = nullptr;
    EXPECT_SUCCESS(GetParam().allocate(&data, size));
    return data;
  }
};
INSTANTIATE_TEST_SUITE_P(, FreeWithDevSync,
                         testing::Values(WaitingFree{"aclrtFreeWithDevSync", allocate_on_device,
                                                     aclrtFreeWithDevSync},
                                         WaitingFree{"aclrtFreeHostWithDevSync", aclrtMallocHost,
                                                     aclrtFreeHostWithDevSync}),
                         [](const testing::TestParamInfo<WaitingFree>& parameter) {
                           return std::string(parameter.param.name);
                         });

constexpr size_t kLarge = 8 * kMiB;

// Work of whichever stream still finds the memory, and is done on return.
TEST_P(FreeWithDevSync, FREE_09_HOST_23_QueuedWorkIsDoneFirst) {
  const DeviceBlock target(kLarge);
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    void* const memory = allocate(kLarge);
    copy_in(memory, pattern(kLarge, 60));
    copy_in(target.data(), pattern(kLarge, 61));
    Gate gate(stream);
    EXPECT_SUCCESS(aclrtMemsetAsync(target.data(), kLarge, 1, kLarge, stream));
    EXPECT_SUCCESS(
        aclrtMemcpyAsync(target.data(), kLarge, memory, kLarge, ACL_MEMCPY_DEFAULT, stream));
    EXPECT_SUCCESS(while_opening(gate, [&] { return GetParam().free(memory); }));
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
    EXPECT_TRUE(copy_out(target.data(), kLarge) == pattern(kLarge, 60));
    expect_unknown_place(memory);
    EXPECT_SUCCESS(finish(stream));
  }
}

// The memory need not be what the work uses.
TEST_P(FreeWithDevSync, FREE_09_HOST_23_OtherWorkOfTheContextIsAwaitedToo) {
  const DeviceBlock target(kLarge);
  void* const memory = allocate(kPage);
  const TestStream first;
  const TestStream second;
  {
    Gate gate(first.get());
    for (const int32_t value : {1, 2, 3}) {
      EXPECT_SUCCESS(aclrtMemsetAsync(target.data(), kLarge, value, kLarge, first.get()));
    }
    EXPECT_SUCCESS(while_opening(gate, [&] { return GetParam().free(memory); }));
    EXPECT_EQ(stream_status(first.get()), ACL_STREAM_STATUS_COMPLETE);
    EXPECT_EQ(stream_status(second.get()), ACL_STREAM_STATUS_COMPLETE);
  }
  EXPECT_TRUE(copy_out(target.at(kLarge - kPage), kPage) == std::vector<uint8_t>(kPage, 3));
}

TEST_P(FreeWithDevSync, FREE_09_HOST_23_FailedWaitIsReturnedAndTheMemoryStays) {
  const DeviceBlock small(kPage, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
  void* const memory = allocate(kPage);
  copy_in(memory, pattern(kPage, 62));
  const TestStream stream;
  const MemoryFigures before = memory_figures();
  EXPECT_SUCCESS(aclrtMemsetAsync(small.data(), 2 * kPage, 1, 2 * kPage, stream.get()));
  (void)recent_error();
  EXPECT_TRUE(fails_with(ACL_ERROR_RT_SYS_DMA, GetParam().free(memory), GetParam().name));
  EXPECT_EQ(memory_figures(), before);
  EXPECT_NE(where_is(memory).location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  EXPECT_TRUE(copy_out(memory, kPage) == pattern(kPage, 62));

  // The error has been returned once, so the next wait is a good one.
  EXPECT_SUCCESS(GetParam().free(memory));
  expect_unknown_place(memory);
}

TEST_P(FreeWithDevSync, FREE_08_HOST_23_NullIsRefusedWithoutAWait) {
  const TestStream stream;
  Gate gate(stream.get());
  EXPECT_EQ(while_held(gate, [&] { return GetParam().free(nullptr); }), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace understudy_test
