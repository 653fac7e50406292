// SPDX-License-Identifier: Apache-2.0
//
// aclrtHostRegister, aclrtHostUnregister and aclrtHostMemMapCapabilities.
// Covers: GEN-09, HREG-01, HREG-02, HREG-03, HREG-04, HREG-05, HREG-06, HREG-07, HREG-08, HREG-09,
// HREG-10, HREG-16, HREG-18, HREG-20, HREG-21, HREG-22, HREG-23, HREG-24, PTR-08.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

class HostRegister : public HostMemoryTest {};

void* register_mapped(void* start, size_t size) {
  void* device_address = nullptr;
  EXPECT_SUCCESS(aclrtHostRegister(start, size, ACL_HOST_REGISTER_MAPPED, &device_address));
  EXPECT_NE(device_address, nullptr);
  return device_address;
}

void expect_register_refused(aclError code, void* start, uint64_t size, int64_t type = 0) {
  SCOPED_TRACE(start);
  const MemoryFigures before = memory_figures();
  void* device_address = host_sentinel();
  EXPECT_FAILS(code, aclrtHostRegister(start, size, enum_value<aclrtHostRegisterType>(type),
                                       &device_address));
  EXPECT_EQ(device_address, host_sentinel());
  EXPECT_EQ(memory_figures(), before);
}

void expect_device_pointer(void* start, void* expected) {
  void* device_address = host_sentinel();
  EXPECT_SUCCESS(aclrtHostGetDevicePointer(start, &device_address, 0));
  EXPECT_EQ(device_address, expected);
}

void expect_not_registered(void* start) {
  SCOPED_TRACE(start);
  EXPECT_FAILS(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, aclrtHostUnregister(start));
}

TEST_F(HostRegister, HREG_01_NullAndSizeZeroAreRefused) {
  const OwnMemory memory(kPage);
  void* device_address = host_sentinel();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtHostRegister(nullptr, kPage, ACL_HOST_REGISTER_MAPPED, &device_address));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtHostRegister(memory.data(), kPage, ACL_HOST_REGISTER_MAPPED, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtHostRegister(memory.data(), 0, ACL_HOST_REGISTER_MAPPED, &device_address));
  EXPECT_EQ(device_address, host_sentinel());
  expect_not_registered(memory.data());
  expect_unknown_place(memory.data());
}

TEST_F(HostRegister, HREG_01_OuterChecksComeBeforeTypeAndContext) {
  const OwnMemory memory(kPage);
  on_bare_thread([&] {
    void* device_address = host_sentinel();
    EXPECT_FAILS(
        ACL_ERROR_INVALID_PARAM,
        aclrtHostRegister(nullptr, kPage, enum_value<aclrtHostRegisterType>(1), &device_address));
    EXPECT_FAILS(
        ACL_ERROR_INVALID_PARAM,
        aclrtHostRegister(memory.data(), 0, enum_value<aclrtHostRegisterType>(1), &device_address));
    EXPECT_EQ(device_address, host_sentinel());
  });
}

TEST_F(HostRegister, HREG_02_HREG_04_EveryTypeButMappedIsNotSupported) {
  const OwnMemory memory(kPage);
  for (const int64_t type : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{0x10}, int64_t{0x14},
                             int64_t{0x10000000}, int64_t{-1}, int64_t{ACL_HOST_REGISTER_IOMEMORY},
                             int64_t{ACL_HOST_REGISTER_READONLY}, int64_t{0x0C}}) {
    SCOPED_TRACE(type);
    expect_register_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, memory.data(), kPage, type);
    expect_not_registered(memory.data());
    expect_unknown_place(memory.data());
  }
}

TEST_F(HostRegister, HREG_03_HREG_18_RangeGetsADeviceAddress) {
  for (const size_t size : {kPage, 5 * kPage, kGranule, 3 * kMiB}) {
    SCOPED_TRACE(size);
    const OwnMemory memory(size);
    store(memory.data(), pattern(size, 2));
    const MemoryFigures before = memory_figures();
    void* const device_address = register_mapped(memory.data(), size);
    EXPECT_EQ(memory_figures(), before);
    expect_device_pointer(memory.data(), device_address);
    expect_at_host(memory.data());
    EXPECT_TRUE(holds(memory.data(), pattern(size, 2)));
    EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  }
}

TEST_F(HostRegister, HREG_03_LiveRangesHaveDeviceAddressesOfTheirOwn) {
  constexpr size_t kSize = 4 * kPage;
  std::vector<std::unique_ptr<OwnMemory>> memories;
  std::vector<uint64_t> device_addresses;
  for (int i = 0; i < 8; ++i) {
    memories.push_back(std::make_unique<OwnMemory>(kSize));
    const uint64_t mine = number(register_mapped(memories.back()->data(), kSize));
    for (const uint64_t other : device_addresses) {
      EXPECT_TRUE(mine + kSize <= other || other + kSize <= mine) << mine << " and " << other;
    }
    device_addresses.push_back(mine);
  }
  for (size_t i = 0; i < memories.size(); ++i) {
    expect_device_pointer(memories[i]->data(), address(device_addresses[i]));
    EXPECT_SUCCESS(aclrtHostUnregister(memories[i]->data()));
  }
}

TEST_F(HostRegister, HREG_03_SizeNeedNotBeWholePages) {
  const OwnMemory memory(3 * kPage);
  for (const size_t size : {size_t{1}, size_t{100}, kPage + 1, 2 * kPage - 1}) {
    SCOPED_TRACE(size);
    register_mapped(memory.data(), size);
    expect_at_host(memory.at(size - 1));
    EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  }
}

TEST_F(HostRegister, HREG_03_RangeBeyondTheAddressSpaceIsRefused) {
  const OwnMemory memory(kPage);
  void* device_address = host_sentinel();
  EXPECT_NE(aclrtHostRegister(memory.data(), UINT64_MAX, ACL_HOST_REGISTER_MAPPED, &device_address),
            ACL_SUCCESS);
  EXPECT_EQ(device_address, host_sentinel());
  expect_not_registered(memory.data());
}

TEST_F(HostRegister, HREG_05_StartMustBeAWholePage) {
  const OwnMemory memory(4 * kPage);
  for (const size_t offset : {size_t{1}, size_t{64}, kPage / 2, kPage - 1, kPage + 1}) {
    SCOPED_TRACE(offset);
    expect_register_refused(ACL_ERROR_RT_PARAM_INVALID, memory.at(offset), kPage);
    expect_not_registered(memory.at(offset));
    expect_unknown_place(memory.at(offset));
  }
}

TEST_F(HostRegister, HREG_06_OverlapWithARegisteredRangeIsRefused) {
  const OwnMemory memory(8 * kPage);
  void* const start = memory.at(2 * kPage);
  constexpr size_t kSize = 3 * kPage + 1;  // takes four pages
  void* const device_address = register_mapped(start, kSize);
  const struct {
    size_t first_page;
    size_t pages;
  } overlaps[] = {{2, 4}, {2, 1}, {2, 6}, {3, 1}, {5, 1}, {5, 2}, {1, 2}, {0, 8}};
  for (const auto& overlap : overlaps) {
    SCOPED_TRACE(overlap.first_page);
    expect_register_refused(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                            memory.at(overlap.first_page * kPage), overlap.pages * kPage);
    expect_device_pointer(start, device_address);
  }
  expect_unknown_place(memory.data());
  expect_unknown_place(memory.at(6 * kPage));

  register_mapped(memory.data(), 2 * kPage);
  register_mapped(memory.at(6 * kPage), 2 * kPage);
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  EXPECT_SUCCESS(aclrtHostUnregister(start));
  EXPECT_SUCCESS(aclrtHostUnregister(memory.at(6 * kPage)));
}

TEST_F(HostRegister, HREG_07_ThreadWithoutContextIsRefused) {
  const OwnMemory memory(kPage);
  on_bare_thread([&] {
    void* device_address = host_sentinel();
    EXPECT_FAILS(
        ACL_ERROR_RT_CONTEXT_NULL,
        aclrtHostRegister(memory.data(), kPage, ACL_HOST_REGISTER_MAPPED, &device_address));
    EXPECT_EQ(device_address, host_sentinel());
  });
  expect_not_registered(memory.data());
}

TEST_F(HostRegister, HREG_08_MemoryOfMallocHostIsRegistered) {
  const HostBlock block(kGranule);
  store(block.data(), pattern(kGranule, 4));
  void* const device_address = register_mapped(block.data(), kGranule);
  expect_device_pointer(block.data(), device_address);
  expect_register_refused(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, block.data(), kGranule);
  expect_at_host(block.data());
  EXPECT_TRUE(holds(block.data(), pattern(kGranule, 4)));
  EXPECT_SUCCESS(aclrtHostUnregister(block.data()));
  expect_at_host(block.data());
  EXPECT_TRUE(holds(block.data(), pattern(kGranule, 4)));
}

TEST_F(HostRegister, GEN_09_DeviceMemoryIsNoHostMemory) {
  const MallocedMemory block(kGranule);
  copy_in(block.data(), pattern(kPage, 5));
  void* device_address = host_sentinel();
  EXPECT_NE(aclrtHostRegister(block.data(), kGranule, ACL_HOST_REGISTER_MAPPED, &device_address),
            ACL_SUCCESS);
  EXPECT_EQ(device_address, host_sentinel());
  expect_at_device(block.data(), 0, kGranule);
  EXPECT_TRUE(copy_out(block.data(), kPage) == pattern(kPage, 5));
}

// Outside the contract: any answer will do, as long as the process lives and nothing else changes.
TEST_F(HostRegister, HREG_09_PTR_08_AskingForTheDeviceAddressIsHarmless) {
  const OwnMemory memory(kGranule);
  const Bystander bystander;
  store(memory.data(), pattern(kGranule, 6));
  void* const device_address = register_mapped(memory.data(), kGranule);
  std::vector<uint8_t> bytes(kPage);
  (void)aclrtMemcpy(bytes.data(), kPage, device_address, kPage, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtPtrAttributes attributes;
  (void)aclrtPointerGetAttributes(device_address, &attributes);
  bystander.expect_unchanged();
  EXPECT_TRUE(holds(memory.data(), pattern(kGranule, 6)));
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
}

TEST_F(HostRegister, HREG_03_RegisteredMemoryIsCopiedByItsHostAddress) {
  const OwnMemory memory(2 * kPage);
  store(memory.data(), pattern(2 * kPage, 7));
  register_mapped(memory.data(), 2 * kPage);
  const MallocedMemory block(2 * kPage);
  EXPECT_SUCCESS(
      aclrtMemcpy(block.data(), 2 * kPage, memory.data(), 2 * kPage, ACL_MEMCPY_HOST_TO_DEVICE));
  memset(memory.data(), 0, 2 * kPage);
  EXPECT_SUCCESS(
      aclrtMemcpy(memory.data(), 2 * kPage, block.data(), 2 * kPage, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_TRUE(holds(memory.data(), pattern(2 * kPage, 7)));
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
}

// ---- aclrtHostUnregister ----

TEST_F(HostRegister, HREG_20_UnregisterOfNullIsRefused) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostUnregister(nullptr));
}

TEST_F(HostRegister, HREG_21_WhatIsNotRegisteredIsRefused) {
  int on_stack = 0;
  const OwnMemory memory(kPage);
  const HostBlock block(kGranule);
  const MallocedMemory device_memory(kGranule);
  for (void* unregistered : {static_cast<void*>(&on_stack), memory.data(), block.data(),
                             device_memory.data(), address(1), host_sentinel()}) {
    expect_not_registered(unregistered);
  }
  expect_at_host(block.data());
  expect_at_device(device_memory.data(), 0, kGranule);
}

TEST_F(HostRegister, HREG_21_OnlyTheBaseUnregisters) {
  const OwnMemory memory(3 * kPage);
  void* const device_address = register_mapped(memory.data(), 3 * kPage);
  for (const size_t offset : {size_t{1}, kPage, 2 * kPage, 3 * kPage - 1}) {
    expect_not_registered(memory.at(offset));
    expect_device_pointer(memory.data(), device_address);
  }
  if (device_address != memory.data()) expect_not_registered(device_address);
  expect_device_pointer(memory.data(), device_address);
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  expect_not_registered(memory.data());
}

TEST_F(HostRegister, HREG_22_MemoryStaysAndIsRegisteredAgain) {
  const OwnMemory memory(2 * kPage);
  store(memory.data(), pattern(2 * kPage, 8));
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    register_mapped(memory.data(), 2 * kPage);
    expect_at_host(memory.at(kPage));
    EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
    expect_unknown_place(memory.at(kPage));
    void* device_address = host_sentinel();
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtHostGetDevicePointer(memory.data(), &device_address, 0));
    EXPECT_EQ(device_address, host_sentinel());
    EXPECT_TRUE(cpu_can_write(memory.data()));
    EXPECT_TRUE(holds(memory.data(), pattern(2 * kPage, 8)));
  }
}

TEST_F(HostRegister, HREG_21_RegistrationOutlivesTheDevice) {
  const OwnMemory memory(kPage);
  store(memory.data(), pattern(kPage, 9));
  register_mapped(memory.data(), kPage);
  ASSERT_SUCCESS(aclrtResetDeviceForce(0));
  expect_at_host(memory.data());
  ASSERT_SUCCESS(aclrtSetDevice(0));
  expect_register_refused(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, memory.data(), kPage);
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  EXPECT_TRUE(holds(memory.data(), pattern(kPage, 9)));
}

// ---- aclrtHostMemMapCapabilities ----

constexpr auto kNoAnswer = static_cast<aclrtHostMemMapCapability>(77);

void expect_capability_refused(aclError code, uint32_t device, int64_t engine) {
  SCOPED_TRACE(engine);
  aclrtHostMemMapCapability capability = kNoAnswer;
  EXPECT_FAILS(code,
               aclrtHostMemMapCapabilities(device, enum_value<aclrtHacType>(engine), &capability));
  EXPECT_EQ(capability, kNoAnswer);
}

TEST_F(HostRegister, HREG_23_BadArgumentsOfTheCapabilityQuery) {
  uint32_t count = 0;
  ASSERT_SUCCESS(aclrtGetDeviceCount(&count));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_STARS, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtHostMemMapCapabilities(count, enum_value<aclrtHacType>(10), nullptr));
  for (const int64_t engine : {int64_t{10}, int64_t{11}, int64_t{INT32_MAX}, int64_t{-1}}) {
    expect_capability_refused(ACL_ERROR_RT_PARAM_INVALID, 0, engine);
  }
  for (const uint32_t device : {count, count + 1, UINT32_MAX}) {
    expect_capability_refused(ACL_ERROR_RT_INVALID_DEVICEID, device, ACL_RT_HAC_TYPE_SDMA);
  }
}

TEST_F(HostRegister, HREG_23_CapabilityQueryNeedsAContext) {
  on_bare_thread([] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_STARS, nullptr));
    expect_capability_refused(ACL_ERROR_RT_CONTEXT_NULL, 0, ACL_RT_HAC_TYPE_STARS);
  });
}

// The engines 0 to 9, one digit each.
std::string capabilities_of(uint32_t device) {
  std::string answers;
  for (int engine = 0; engine <= 9; ++engine) {
    aclrtHostMemMapCapability capability = kNoAnswer;
    EXPECT_SUCCESS(
        aclrtHostMemMapCapabilities(device, enum_value<aclrtHacType>(engine), &capability));
    answers += std::to_string(static_cast<int>(capability));
  }
  return answers;
}

TEST_F(HostRegister, HREG_24_EnginesThatReachHostMemory) {
  EXPECT_EQ(capabilities_of(0), "1111111000");
  EXPECT_EQ(capabilities_of(7), "1111111000");
}

struct ProductEngines {
  const char* product;
  const char* engines;
};

class HostRegisterEngines : public testing::TestWithParam<ProductEngines> {};

INSTANTIATE_TEST_SUITE_P(
    Products, HostRegisterEngines,
    testing::Values(ProductEngines{"a3", "1111111000"}, ProductEngines{"950", "1111111011"},
                    ProductEngines{"inf", "0000000000"}, ProductEngines{"trn", "0000000000"},
                    ProductEngines{"200i", "0000000000"}, ProductEngines{"200i-rc", "0000000000"}),
    [](const auto& item) {
      return host_product_name(testing::TestParamInfo<std::string>(item.param.product, 0));
    });

TEST_P(HostRegisterEngines, HREG_24_EnginesThatReachHostMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  const DeviceSession session;
  EXPECT_EQ(capabilities_of(0), GetParam().engines);
}

TEST(HostRegisterOnIpv350, HREG_23_CapabilityQueryIsNotSupported) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"});
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_STARS, nullptr));
  expect_capability_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, 0, ACL_RT_HAC_TYPE_STARS);
}

// ---- Products ----

class HostRegisterOnProduct : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, HostRegisterOnProduct, testing::Values("a3", "950"),
                         host_product_name);

TEST_P(HostRegisterOnProduct, HREG_03_HREG_08_RangeGetsADeviceAddress) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  const OwnMemory memory(kPage);
  const HostBlock block(kGranule);
  for (void* start : {memory.data(), block.data()}) {
    expect_device_pointer(start, register_mapped(start, kPage));
    expect_at_host(start);
    EXPECT_SUCCESS(aclrtHostUnregister(start));
  }
}

class HostRegisterMissing : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, HostRegisterMissing,
                         testing::Values("inf", "trn", "200i", "200i-rc", "ipv350"),
                         host_product_name);

TEST_P(HostRegisterMissing, HREG_01_HREG_10_HREG_16_HREG_20_NotSupportedAfterTheOuterChecks) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const OwnMemory memory(kPage);
  void* const start = memory.data();
  void* device_address = host_sentinel();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtHostRegister(nullptr, kPage, ACL_HOST_REGISTER_MAPPED, &device_address));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostRegisterV2(nullptr, kPage, ACL_HOST_REG_MAPPED));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostGetDevicePointer(nullptr, &device_address, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostUnregister(nullptr));

  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtHostRegister(start, kPage, ACL_HOST_REGISTER_MAPPED, &device_address));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtHostRegisterV2(start, kPage, ACL_HOST_REG_MAPPED));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtHostRegisterV2(start, kPage, ACL_HOST_REG_PINNED));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtHostGetDevicePointer(start, &device_address, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtHostUnregister(start));
  EXPECT_EQ(device_address, host_sentinel());
}

}  // namespace
}  // namespace understudy_test
