// SPDX-License-Identifier: Apache-2.0
//
// Copies and streams: aclrtMemcpy does not wait for queued work, and aclrtMemcpyAsync copies
// between two devices, mapped memory included.
// Covers: ACOPY-14, ACOPY-17, COPY-10, PEER-07, RESV-19.
#include <cstdint>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

using MemcpyAndStreams = HostMemoryTest;

TEST_F(MemcpyAndStreams, COPY_10_SynchronousCopyDoesNotWaitForQueuedWork) {
  const DeviceBlock device(kPage);
  const DeviceBlock other(kPage);
  const HostBlock locked(kPage);
  std::vector<uint8_t> heap(kPage);
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    copy_in(device.data(), pattern(kPage, 51));
    Gate gate(stream);
    EXPECT_SUCCESS(aclrtMemsetAsync(device.data(), kPage, 0x52, kPage, stream));
    for (void* const target : {static_cast<void*>(heap.data()), locked.data(), other.data()}) {
      EXPECT_SUCCESS(while_held(gate, [&] {
        return aclrtMemcpy(target, kPage, device.data(), kPage, ACL_MEMCPY_DEFAULT);
      }));
    }
    EXPECT_TRUE(heap == pattern(kPage, 51));
    EXPECT_TRUE(holds(locked.data(), pattern(kPage, 51)));
    EXPECT_TRUE(copy_out(other.data(), kPage) == pattern(kPage, 51));

    // The queued set comes after this copy, although it was called before.
    EXPECT_SUCCESS(while_held(gate, [&] {
      return aclrtMemcpy(device.data(), kPage, heap.data(), kPage, ACL_MEMCPY_HOST_TO_DEVICE);
    }));
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
    gate.open();
    EXPECT_SUCCESS(finish(stream));
    EXPECT_TRUE(copy_out(device.data(), kPage) == std::vector<uint8_t>(kPage, 0x52));
  }
}

// ---- Between two devices ----

aclrtPhysicalMemProp on_device(uint32_t device) {
  return block_property(ACL_MEM_P2P_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, device);
}

void enable_both_ways() {
  for (const int32_t device : {0, 1}) {
    ASSERT_SUCCESS(aclrtSetDevice(device));
    EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1 - device, 0));
  }
}
void disable_both_ways() {
  for (const int32_t device : {0, 1}) {
    ASSERT_SUCCESS(aclrtSetDevice(device));
    EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(1 - device));
  }
}

// Bytes of the whole block go there and back on streams of either device.
void expect_copied_both_ways(void* near, void* far, size_t size) {
  for (const int32_t device : {0, 1}) {
    SCOPED_TRACE(testing::Message() << "stream of device " << device);
    ASSERT_SUCCESS(aclrtSetDevice(device));
    const TestStream stream;
    for (const aclrtMemcpyKind kind : {ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_MEMCPY_DEFAULT}) {
      for (const bool there : {true, false}) {
        SCOPED_TRACE(testing::Message() << "kind " << kind << (there ? ", there" : ", back"));
        void* const from = there ? near : far;
        void* const to = there ? far : near;
        copy_in(from, pattern(size, 53));
        copy_in(to, pattern(size, 54));
        Gate gate(stream.get());
        EXPECT_SUCCESS(while_held(
            gate, [&] { return aclrtMemcpyAsync(to, size, from, size, kind, stream.get()); }));
        EXPECT_TRUE(copy_out(to, size) == pattern(size, 54)) << "copied before its turn";
        gate.open();
        EXPECT_SUCCESS(finish(stream.get()));
        EXPECT_TRUE(copy_out(to, size) == pattern(size, 53));
        EXPECT_TRUE(copy_out(from, size) == pattern(size, 53));
      }
    }
  }
}

class CopyBetweenDevices : public testing::Test {
 protected:
  void SetUp() override { enable_both_ways(); }
  void TearDown() override {
    disable_both_ways();
    for (const int32_t device : {0, 1}) EXPECT_SUCCESS(aclrtResetDeviceForce(device));
  }
};

// No other call may do it: the synchronous one is refused unless it is switched on.
TEST_F(CopyBetweenDevices, ACOPY_14_RESV_19_PEER_07_MappedMemoryIsCopied) {
  const LiveMapping near(kGranule, on_device(0));
  const LiveMapping far(kGranule, on_device(1));
  expect_copied_both_ways(near.data(), far.data(), kGranule);
}

TEST_F(CopyBetweenDevices, ACOPY_14_RESV_19_PartsOfMappedMemoryAreCopied) {
  void* const range = reserve(2 * kGranule);
  const aclrtDrvMemHandle blocks[] = {create_block(kGranule, on_device(0)),
                                      create_block(kGranule, on_device(0))};
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_SUCCESS(aclrtMapMem(at(range, i * kGranule), kGranule, 0, blocks[i], 0));
  }
  const LiveMapping far(kGranule, on_device(1));
  expect_copied_both_ways(at(range, kGranule - 3), far.at(5), kPage + 1);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_SUCCESS(aclrtUnmapMem(at(range, i * kGranule)));
    EXPECT_SUCCESS(aclrtFreePhysical(blocks[i]));
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_F(CopyBetweenDevices, PEER_07_AllocatedMemoryIsCopied) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const DeviceBlock near(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST_P2P);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  const DeviceBlock far(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST_P2P);
  expect_copied_both_ways(near.data(), far.data(), 3 * kMiB);
}

TEST_F(CopyBetweenDevices, ACOPY_14_PEER_07_AllocatedAndMappedMemoryMix) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const DeviceBlock near(kPage, ACL_MEM_MALLOC_NORMAL_ONLY_P2P);
  const LiveMapping far(kGranule, on_device(1));
  expect_copied_both_ways(near.data(), far.data(), kPage);
}

TEST_F(CopyBetweenDevices, ACOPY_17_PEER_07_ConditionFormCopiesToo) {
  const LiveMapping near(kGranule, on_device(0));
  const LiveMapping far(kGranule, on_device(1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  copy_in(near.data(), pattern(kPage, 55));
  const TestStream stream;
  EXPECT_SUCCESS(aclrtMemcpyAsyncWithCondition(far.data(), kPage, near.data(), kPage,
                                               ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(far.data(), kPage) == pattern(kPage, 55));
}

TEST(CopyBetweenDevicesOfA3, ACOPY_14_RESV_19_NoPeerAccessIsNeeded) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceSession first(0);
  const DeviceSession second(1);
  const LiveMapping near(kGranule, on_device(0));
  const LiveMapping far(kGranule, on_device(1));
  expect_copied_both_ways(near.data(), far.data(), kPage);
}

}  // namespace
}  // namespace understudy_test
