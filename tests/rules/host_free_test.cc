// SPDX-License-Identifier: Apache-2.0
//
// aclrtFreeHost and aclrtFreeHostWithDevSync: what they take, what they refuse, what outlives a
// device.
// Covers: HOST-08, HOST-18, HOST-19, HOST-20, HOST-21, HOST-22, HOST-23.
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

// Both calls obey the same rules about addresses.
struct FreeHostCall {
  const char* name;
  decltype(&aclrtFreeHost) call;

  friend std::ostream& operator<<(std::ostream& out, const FreeHostCall& free_call) {
    return out << free_call.name;
  }
};

class HostFree : public HostMemoryTest, public testing::WithParamInterface<FreeHostCall> {
 protected:
  static aclError free_host(void* data) { return GetParam().call(data); }

  static void expect_refused(aclError code, void* data) {
    SCOPED_TRACE(data);
    (void)recent_error();
    EXPECT_TRUE(fails_with(code, free_host(data), GetParam().name));
  }
};

INSTANTIATE_TEST_SUITE_P(Calls, HostFree,
                         testing::Values(FreeHostCall{"aclrtFreeHost", aclrtFreeHost},
                                         FreeHostCall{"aclrtFreeHostWithDevSync",
                                                      aclrtFreeHostWithDevSync}),
                         [](const auto& call) { return std::string(call.param.name); });

TEST_P(HostFree, HOST_18_HOST_23_NullIsRefused) {
  expect_refused(ACL_ERROR_INVALID_PARAM, nullptr);
  on_bare_thread([] { expect_refused(ACL_ERROR_INVALID_PARAM, nullptr); });
}

TEST_P(HostFree, HOST_19_DeviceAddressIsRefusedAndKeepsItsBytes) {
  const MallocedMemory allocated(kGranule);
  const LiveMapping mapped;
  copy_in(allocated.data(), pattern(kPage, 1));
  copy_in(mapped.data(), pattern(kPage, 2));
  const MemoryFigures before = memory_figures();
  for (void* device_address : {allocated.data(), allocated.at(kPage), mapped.data()}) {
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, device_address);
  }
  EXPECT_EQ(memory_figures(), before);
  EXPECT_TRUE(copy_out(allocated.data(), kPage) == pattern(kPage, 1));
  EXPECT_TRUE(copy_out(mapped.data(), kPage) == pattern(kPage, 2));
}

TEST_P(HostFree, HOST_20_UnknownAddressesAreRefused) {
  int on_stack = 0;
  const auto on_heap = std::make_unique<char[]>(kPage);
  const OwnMemory own(kPage);
  for (void* unknown : {static_cast<void*>(&on_stack), static_cast<void*>(on_heap.get()),
                        own.data(), address(1), address(UINT64_MAX), host_sentinel()}) {
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, unknown);
  }
  EXPECT_TRUE(cpu_can_write(own.data()));
}

TEST_P(HostFree, HOST_20_InteriorAddressesAreRefusedAndTheBlockLives) {
  for (const size_t size : {2 * kPage, 3 * kMiB}) {
    const HostBlock block(size);
    store(block.data(), pattern(size, 4));
    for (const size_t offset : {size_t{1}, size_t{64}, kPage, size - 1}) {
      expect_refused(ACL_ERROR_RT_PARAM_INVALID, block.at(offset));
    }
    EXPECT_TRUE(holds(block.data(), pattern(size, 4)));
    expect_address_range(block.data(), block.data(), size);
  }
}

TEST_P(HostFree, HOST_20_SecondFreeIsRefusedAndNeighboursLive) {
  for (const size_t size : {size_t{100}, kPage, 3 * kMiB}) {
    SCOPED_TRACE(size);
    const HostBlock before(size);
    HostBlock block(size);
    const HostBlock after(size);
    store(before.data(), pattern(size, 1));
    store(after.data(), pattern(size, 3));
    void* const data = block.give_up();
    EXPECT_SUCCESS(free_host(data));
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, data);
    EXPECT_TRUE(holds(before.data(), pattern(size, 1)));
    EXPECT_TRUE(holds(after.data(), pattern(size, 3)));
  }
}

TEST_P(HostFree, HOST_08_HOST_22_FreesBlocksOfBothAllocations) {
  HostConfiguration configuration = {host_attribute(ACL_RT_MEM_ATTR_MODULE_ID, 3)};
  HostConfiguration one_address = {host_attribute(ACL_RT_MEM_ATTR_VA_FLAG, 1)};
  for (const size_t size : {size_t{1}, kPage, 3 * kMiB}) {
    SCOPED_TRACE(size);
    for (void* data : {allocate_host(size), allocate_host_with(size, nullptr),
                       allocate_host_with(size, configuration.get()),
                       allocate_host_with(size, one_address.get())}) {
      expect_at_host(data);
      EXPECT_SUCCESS(free_host(data));
      expect_unknown_place(data);
      expect_no_address_range(data);
    }
  }
}

TEST_P(HostFree, HOST_21_HOST_23_FreedMemoryIsThereForTheNextBlock) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "32M"});
  constexpr size_t kSize = 8 * kMiB;
  for (int round = 0; round < 64; ++round) EXPECT_SUCCESS(free_host(allocate_host(kSize)));
}

TEST_P(HostFree, HOST_08_RegisteredBlockIsKeptUntilItIsUnregistered) {
  HostBlock block(kGranule);
  store(block.data(), pattern(kGranule, 7));
  void* device_address = nullptr;
  ASSERT_SUCCESS(
      aclrtHostRegister(block.data(), kGranule, ACL_HOST_REGISTER_MAPPED, &device_address));
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, block.data());
  EXPECT_TRUE(holds(block.data(), pattern(kGranule, 7)));
  void* again = nullptr;
  EXPECT_SUCCESS(aclrtHostGetDevicePointer(block.data(), &again, 0));
  EXPECT_EQ(again, device_address);

  EXPECT_SUCCESS(aclrtHostUnregister(block.data()));
  EXPECT_SUCCESS(free_host(block.give_up()));
}

class HostFreeThreads : public HostMemoryTest {};

TEST_F(HostFreeThreads, HOST_21_ThreadWithoutContextFrees) {
  HostBlock small(100);
  HostBlock large(3 * kMiB);
  on_bare_thread([&] {
    for (HostBlock* block : {&small, &large}) {
      void* const data = block->give_up();
      EXPECT_SUCCESS(aclrtFreeHost(data));
      expect_unknown_place(data);
    }
  });
}

// Waiting for the current device fails where there is none: that code comes back.
TEST_F(HostFreeThreads, HOST_23_FailedWaitIsReturnedAndNothingIsFreed) {
  const HostBlock block(2 * kPage);
  store(block.data(), pattern(2 * kPage, 4));
  on_bare_thread(
      [&] { EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtFreeHostWithDevSync(block.data())); });
  EXPECT_TRUE(holds(block.data(), pattern(2 * kPage, 4)));
  expect_at_host(block.data());
}

TEST_F(HostFreeThreads, HOST_08_BlocksOutliveTheDeviceOfTheirBirth) {
  HostBlock freed_without_device(2 * kPage);
  const HostBlock freed_after_return(3 * kMiB);
  store(freed_without_device.data(), pattern(2 * kPage, 1));
  store(freed_after_return.data(), pattern(3 * kMiB, 2));
  ASSERT_SUCCESS(aclrtResetDeviceForce(0));
  EXPECT_TRUE(holds(freed_without_device.data(), pattern(2 * kPage, 1)));
  expect_at_host(freed_without_device.data());
  EXPECT_SUCCESS(aclrtFreeHost(freed_without_device.give_up()));

  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_TRUE(holds(freed_after_return.data(), pattern(3 * kMiB, 2)));
  EXPECT_EQ(copy_out(freed_after_return.data(), kPage), pattern(kPage, 2));
}

}  // namespace
}  // namespace understudy_test
