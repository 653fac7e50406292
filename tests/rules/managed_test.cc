// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemAllocManaged: its checks, one address for CPU and devices, what it costs, and its end.
// Covers: DEV-11, FREE-02, FREE-03, FREE-05, GEN-09, HOST-19, INFO-09, INIT-12, IPC-05, MANAGED-01,
// MANAGED-02, MANAGED-03, MANAGED-04, MANAGED-05, MANAGED-22, PTR-05, PTR-06, PTR-07, PTR-09,
// RESV-12.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl_understudy.h"
#include "rules/managed_objects.h"

namespace understudy_test {
namespace {

using ManagedMemory = HostMemoryTest;

TEST_F(ManagedMemory, MANAGED_01_NullAndOtherFlagsAreRefusedFirst) {
  void* data = untouched_address();
  const auto refuse = [&] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemAllocManaged(nullptr, kGranule, kGlobal));
    for (const uint32_t flag : {0u, 2u, 3u, 0x101u, UINT32_MAX}) {
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemAllocManaged(&data, kGranule, flag));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemAllocManaged(&data, 0, flag));
    }
  };
  refuse();
  on_bare_thread(refuse);
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMemAllocManaged(&data, kGranule, kGlobal));
  });
  EXPECT_EQ(data, untouched_address());
}

TEST_F(ManagedMemory, MANAGED_02_NoBytesAreRefusedByTheInnerLayer) {
  void* data = untouched_address();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemAllocManaged(&data, 0, kGlobal));
  EXPECT_EQ(data, untouched_address());
}

class ManagedOnProduct : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, ManagedOnProduct,
                         testing::Values("a2", "a3", "inf", "trn", "200i", "200i-rc", "950",
                                         "ipv350"),
                         host_product_name);

TEST_P(ManagedOnProduct, MANAGED_03_NotEveryProductHasIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "4G"});
  const bool has_it = GetParam() == "a2" || GetParam() == "a3";
  const ContextSession session;
  void* data = untouched_address();
  if (has_it) {
    EXPECT_SUCCESS(aclrtMemAllocManaged(&data, 1, kGlobal));
    EXPECT_SUCCESS(aclrtFree(data));
    return;
  }
  constexpr aclError kNo = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  EXPECT_FAILS(kNo, aclrtMemAllocManaged(&data, 1, kGlobal));
  EXPECT_EQ(data, untouched_address());
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  const DeviceBlock block(64);
  const void* start = block.data();
  size_t size = kGranule;
  int32_t value = 77;
  void* values[] = {&value};
  size_t value_size = sizeof value;
  auto attribute = ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
  aclrtMemManagedLocation where = on_device(0);
  size_t index = 0;
  EXPECT_FAILS(kNo, aclrtMemManagedAdvise(start, size, ACL_MEM_ADVISE_SET_READ_MOSTLY, where));
  EXPECT_FAILS(kNo, aclrtMemManagedGetAttr(attribute, start, size, &value, value_size));
  EXPECT_FAILS(kNo, aclrtMemManagedGetAttrs(&attribute, 1, start, size, values, &value_size));
  EXPECT_FAILS(kNo, aclrtMemManagedPrefetchAsync(start, size, where, 0, stream));
  EXPECT_FAILS(kNo,
               aclrtMemManagedPrefetchBatchAsync(&start, &size, 1, &where, &index, 1, 0, stream));
  EXPECT_EQ(value, 77);
  EXPECT_SUCCESS(aclrtDestroyStream(stream));
}

// ---- One address ----

TEST_F(ManagedMemory, MANAGED_04_CpuAndDeviceSeeOneAnothersWrites) {
  constexpr size_t kSize = 3 * kGranule;
  const ManagedBlock block(kSize);
  const DeviceBlock device(kSize);
  const TestStream stream;
  // The CPU first, at places that no device has touched.
  std::fill_n(block.bytes(), kSize, uint8_t{3});
  EXPECT_TRUE(copy_out(block.data(), kSize) == std::vector<uint8_t>(kSize, 3));
  EXPECT_SUCCESS(aclrtMemcpyAsync(device.data(), kSize, block.data(), kSize,
                                  ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(device.data(), kSize) == std::vector<uint8_t>(kSize, 3));
  // Then the device, then the CPU again.
  copy_in(device.data(), pattern(kSize, 8));
  EXPECT_SUCCESS(aclrtMemcpyAsync(block.data(), kSize, device.data(), kSize,
                                  ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(holds(block.data(), pattern(kSize, 8)));
  block.bytes()[kGranule + 5] = 99;
  EXPECT_EQ(copy_out(block.at(kGranule + 5), 1)[0], 99);
}

TEST_F(ManagedMemory, MANAGED_04_EveryByteUpToTheNextTwoMebibytesIsThere) {
  for (const size_t size : {size_t{1}, kGranule - 1, kGranule, kGranule + 1}) {
    const ManagedBlock block(size);
    const size_t whole = rounded_up(size, kGranule);
    EXPECT_EQ(number(block.data()) % kGranule, 0u);
    block.bytes()[0] = 1;
    block.bytes()[whole - 1] = 2;
    EXPECT_EQ(copy_out(block.at(whole - 1), 1)[0], 2);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(block.data(), whole + 1, 0, whole + 1));
    EXPECT_EQ(block.bytes()[0], 1);
    void* base = nullptr;
    size_t found = 0;
    EXPECT_SUCCESS(aclrtMemGetAddressRange(block.at(whole - 1), &base, &found));
    EXPECT_EQ(base, block.data());
    EXPECT_EQ(found, whole);
  }
}

TEST_F(ManagedMemory, MANAGED_04_EveryDeviceUsesIt) {
  const ManagedBlock block(kGranule);
  {
    const DeviceSession other(1);
    const TestStream stream;
    EXPECT_SUCCESS(aclrtMemsetAsync(block.data(), kPage, 6, kPage, stream.get()));
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_TRUE(holds(block.data(), std::vector<uint8_t>(kPage, 6)));
    block.bytes()[0] = 7;
    const DeviceBlock on_other(kPage);
    EXPECT_SUCCESS(
        aclrtMemcpy(on_other.data(), kPage, block.data(), kPage, ACL_MEMCPY_DEVICE_TO_DEVICE));
    EXPECT_EQ(copy_out(on_other.data(), 1)[0], 7);
  }
  EXPECT_SUCCESS(aclrtSetDevice(0));
}

TEST_F(ManagedMemory, MANAGED_04_AStoreOfTheCpuReleasesAStreamThatWaitsForIt) {
  const ManagedBlock block;
  const TestStream stream;
  auto* const word = static_cast<volatile uint64_t*>(block.data());
  EXPECT_SUCCESS(aclrtValueWait(block.data(), 5, ACL_STREAM_WAIT_VALUE_GEQ, stream.get()));
  EXPECT_SUCCESS(aclrtValueWrite(block.at(8), 6, 0, stream.get()));
  expect_held(stream.get());
  *word = 5;
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(word[1], 6u);
}

TEST_F(ManagedMemory, MANAGED_05_RESV_12_AddressesAreNobodyElses) {
  const ManagedBlock first(kGranule);
  const ManagedBlock second(5 * kGranule);
  const DeviceBlock device(kGranule);
  void* const reserved = reserve(kGiB);
  const struct {
    uint64_t begin, end;
  } ranges[] = {{number(first.data()), number(first.at(kGranule))},
                {number(second.data()), number(second.at(5 * kGranule))},
                {number(device.data()), number(device.at(kGranule))},
                {number(reserved), number(at(reserved, kGiB))}};
  for (const auto& one : ranges) {
    for (const auto& other : ranges) {
      if (&one != &other) {
        EXPECT_TRUE(one.end <= other.begin || other.end <= one.begin);
      }
    }
  }
  const aclrtDrvMemHandle handle = create_block(kGranule);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMapMem(first.data(), kGranule, 0, handle, 0));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(first.data()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(first.data()));
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

// ---- What it is ----

TEST_F(ManagedMemory, PTR_05_PTR_06_PTR_07_TheTypeIsManaged) {
  const ManagedBlock block(2 * kGranule);
  const auto look = [&] {
    for (const size_t offset : {size_t{0}, size_t{1}, kGranule, 2 * kGranule - 1}) {
      const aclrtPtrAttributes found = pointer_attributes(block.at(offset));
      EXPECT_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_MANAGED);
      EXPECT_EQ(found.pageSize, kHugePage);
    }
  };
  look();
  on_bare_thread(look);
}

TEST_F(ManagedMemory, HOST_19_IPC_05_ItIsNeitherHostMemoryNorShared) {
  const ManagedBlock block;
  std::array<char, 65> key{};
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(block.data()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtIpcMemGetExportKey(block.data(), kGranule, key.data(), key.size(), 0));
  EXPECT_NE(aclrtHostRegisterV2(block.data(), kGranule, ACL_HOST_REG_PINNED), ACL_SUCCESS);
  (void)recent_error();
  block.bytes()[0] = 1;
}

TEST_F(ManagedMemory, INFO_09_NoDeviceIsCharged) {
  const MemoryFigures before = memory_figures();
  const ManagedBlock block(64 * kMiB);
  EXPECT_SUCCESS(aclrtMemset(block.data(), 64 * kMiB, 1, 64 * kMiB));
  EXPECT_EQ(memory_figures(), before);
}

uint64_t taken_from_host() {
  aclUnderstudyBacking backing;
  EXPECT_SUCCESS(aclUnderstudyGetBacking(0, &backing));
  return backing.processTotal;
}

TEST(ManagedMemoryCost, MANAGED_04_OnlyWhatIsTouchedCosts) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "64M"});
  const DeviceSession session;
  const uint64_t before = taken_from_host();
  const ManagedBlock block(8 * kGiB);
  EXPECT_EQ(taken_from_host(), before);
  EXPECT_SUCCESS(aclrtMemset(block.at(kGiB - 8), 16, 1, 16));
  EXPECT_EQ(taken_from_host(), before + 2 * kGranule);
  EXPECT_SUCCESS(aclrtMemset(block.at(kGiB), 16, 2, 16));
  EXPECT_EQ(taken_from_host(), before + 2 * kGranule);
  // Reading costs nothing; a device cannot write more than the host has.
  EXPECT_TRUE(copy_out(block.at(2 * kGiB), 64 * kKiB) == std::vector<uint8_t>(64 * kKiB, 0));
  EXPECT_EQ(taken_from_host(), before + 2 * kGranule);
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMemset(block.data(), 8 * kGiB, 1, 128 * kMiB));
  EXPECT_EQ(block.bytes()[kGiB], 2);
}

TEST(ManagedMemoryCost, FREE_05_WhatWasTakenFromTheHostGoesBack) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "64M"});
  const DeviceSession session;
  const uint64_t before = taken_from_host();
  for (int i = 0; i < 8; ++i) {
    const ManagedBlock block(32 * kMiB);
    EXPECT_SUCCESS(aclrtMemset(block.data(), 32 * kMiB, 1, 32 * kMiB));
    EXPECT_EQ(taken_from_host(), before + 32 * kMiB);
  }
  EXPECT_EQ(taken_from_host(), before);
}

TEST(ManagedMemoryCost, MANAGED_04_EagerCommitTakesItAllAtOnce) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "64M"}, {"UNDERSTUDY_COMMIT", "eager"});
  const DeviceSession session;
  const uint64_t before = taken_from_host();
  {
    const ManagedBlock block(32 * kMiB);
    EXPECT_EQ(taken_from_host(), before + 32 * kMiB);
    void* data = untouched_address();
    EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMemAllocManaged(&data, 64 * kMiB, kGlobal));
    EXPECT_EQ(data, untouched_address());
  }
  EXPECT_EQ(taken_from_host(), before);
}

TEST_F(ManagedMemory, MANAGED_22_ThreeTebibytesAreTheMost) {
  constexpr size_t kMost = 3 * kTiB;
  void* data = untouched_address();
  for (const size_t size : {kMost + 1, kMost + kGranule, 4 * kTiB, SIZE_MAX / 2, SIZE_MAX}) {
    EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMemAllocManaged(&data, size, kGlobal));
  }
  EXPECT_EQ(data, untouched_address());
  const aclError code = aclrtMemAllocManaged(&data, 2 * kTiB, kGlobal);
  if (code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT) {
    GTEST_SKIP() << "this host has no 2 TiB of addresses";
  }
  ASSERT_SUCCESS(code);
  void* second = nullptr;
  ASSERT_SUCCESS(aclrtMemAllocManaged(&second, kTiB, kGlobal));
  static_cast<uint8_t*>(data)[2 * kTiB - 1] = 4;
  EXPECT_EQ(copy_out(at(data, 2 * kTiB - 1), 1)[0], 4);
  void* third = untouched_address();
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMemAllocManaged(&third, 1, kGlobal));
  EXPECT_EQ(third, untouched_address());
  EXPECT_SUCCESS(aclrtFree(second));
  EXPECT_SUCCESS(aclrtMemAllocManaged(&third, 1, kGlobal));
  EXPECT_SUCCESS(aclrtFree(third));
  EXPECT_SUCCESS(aclrtFree(data));
}

// ---- Its end ----

TEST_F(ManagedMemory, FREE_02_PTR_09_AfterTheFreeNothingIsThere) {
  ManagedBlock block(2 * kGranule);
  void* const start = block.release();
  *static_cast<uint8_t*>(start) = 1;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(at(start, kGranule)));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(at(start, 1)));
  on_bare_thread([&] { EXPECT_SUCCESS(aclrtFree(start)); });
  EXPECT_FALSE(cpu_can_read(start));
  expect_no_known_memory(start);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(start));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(start, 1, 1, 1));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemManagedAdvise(start, kGranule, ACL_MEM_ADVISE_SET_READ_MOSTLY, nowhere()));
  ManagedBlock other;
  EXPECT_SUCCESS(aclrtFreeWithDevSync(other.release()));
}

TEST_F(ManagedMemory, FREE_03_GEN_09_MemoryOfACopyUnderWayIsNotTakenFromIt) {
  constexpr size_t kSize = 64 * kMiB;
  const TestStream stream;
  const DeviceBlock device(kSize);
  EXPECT_SUCCESS(aclrtMemset(device.data(), kSize, 1, kSize));
  for (int i = 0; i < 10; ++i) {
    ManagedBlock block(kSize);
    EXPECT_SUCCESS(aclrtMemcpyAsync(block.data(), kSize, device.data(), kSize,
                                    ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
    block.free();  // too early: the copy ends well or is told so, and the process lives
    (void)finish(stream.get());
    (void)recent_error();
  }
}

TEST(ManagedMemoryEnd, DEV_11_AResetOfItsDeviceEndsIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "256M"});
  EXPECT_SUCCESS(aclrtSetDevice(1));
  void* of_one = nullptr;
  EXPECT_SUCCESS(aclrtMemAllocManaged(&of_one, kGranule, kGlobal));
  *static_cast<uint8_t*>(of_one) = 5;
  EXPECT_SUCCESS(aclrtSetDevice(0));
  const uint64_t before = taken_from_host();
  void* of_zero = nullptr;
  EXPECT_SUCCESS(aclrtMemAllocManaged(&of_zero, 8 * kMiB, kGlobal));
  EXPECT_SUCCESS(aclrtMemset(of_zero, 8 * kMiB, 1, 8 * kMiB));
  EXPECT_SUCCESS(aclrtResetDevice(0));
  EXPECT_FALSE(cpu_can_read(of_zero));
  EXPECT_EQ(taken_from_host(), before);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(of_zero));
  EXPECT_EQ(*static_cast<uint8_t*>(of_one), 5);
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
  EXPECT_FALSE(cpu_can_read(of_one));
  aclUnderstudyObjects objects{};
  EXPECT_SUCCESS(aclUnderstudyCountObjects(&objects));
  EXPECT_EQ(objects.allocations, 0u);
}

TEST(ManagedMemoryEnd, INIT_12_FinalizeEndsItToo) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "256M"});
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclrtSetDevice(0));
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMemAllocManaged(&data, kGranule, kGlobal));
  *static_cast<uint8_t*>(data) = 5;
  EXPECT_SUCCESS(aclFinalize());
  EXPECT_FALSE(cpu_can_read(data));
  aclUnderstudyObjects objects{};
  EXPECT_SUCCESS(aclUnderstudyCountObjects(&objects));
  EXPECT_EQ(objects.allocations, 0u);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(data));
}

TEST_F(ManagedMemory, GEN_09_AForkChildHasNoneOfItAndMayMakeItsOwn) {
  const ManagedBlock block;
  std::fill_n(block.bytes(), kPage, uint8_t{5});
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    if (cpu_can_read(block.data())) wrong |= 1;
    if (aclrtFree(block.data()) == ACL_SUCCESS) wrong |= 2;
    void* own = nullptr;
    if (aclrtSetDevice(0) != ACL_SUCCESS ||
        aclrtMemAllocManaged(&own, kGranule, kGlobal) != ACL_SUCCESS) {
      wrong |= 4;
    } else {
      *static_cast<uint8_t*>(own) = 9;
      uint8_t byte = 0;
      if (aclrtMemcpy(&byte, 1, own, 1, ACL_MEMCPY_DEFAULT) != ACL_SUCCESS || byte != 9) wrong |= 8;
    }
    _exit(wrong);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(holds(block.data(), std::vector<uint8_t>(kPage, 5)));
}

TEST_F(ManagedMemory, MANAGED_04_ManyThreadsAllocateUseAndFree) {
  std::vector<std::thread> threads;
  for (uint8_t number = 0; number < 4; ++number) {
    threads.emplace_back([number] {
      EXPECT_SUCCESS(aclrtSetDevice(0));
      for (size_t i = 0; i < 50; ++i) {
        const ManagedBlock block(kGranule * (1 + i % 3));
        block.bytes()[kGranule - 1] = number;
        EXPECT_SUCCESS(aclrtMemset(block.data(), kPage, number + 10, kPage));
        EXPECT_EQ(block.bytes()[7], number + 10);
        EXPECT_EQ(copy_out(block.at(kGranule - 1), 1)[0], number);
        EXPECT_SUCCESS(aclrtMemManagedAdvise(block.data(), kGranule,
                                             ACL_MEM_ADVISE_SET_PREFERRED_LOCATION, on_device(0)));
        EXPECT_EQ(preferred(block.data(), kGranule), 0);
      }
      EXPECT_SUCCESS(aclrtResetDevice(0));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace understudy_test
