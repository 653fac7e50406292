// SPDX-License-Identifier: Apache-2.0
//
// aclrtMallocHostWithCfg: its arguments and what each attribute means.
// Covers: HOST-03, HOST-12, HOST-13, HOST-14, HOST-15, HOST-16, HOST-17.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

class HostConfigured : public HostMemoryTest {};

void expect_configuration_refused(aclError code, aclrtMallocConfig* config) {
  const MemoryFigures before = memory_figures();
  void* data = host_sentinel();
  EXPECT_FAILS(code, aclrtMallocHostWithCfg(&data, kGranule, config));
  EXPECT_EQ(data, host_sentinel());
  EXPECT_EQ(memory_figures(), before);
}

void expect_attributes_refused(aclError code,
                               std::initializer_list<aclrtMallocAttribute> attributes) {
  HostConfiguration configuration(attributes);
  expect_configuration_refused(code, configuration.get());
}

// What HOST-04 and HOST-11 promise of any block.
void expect_good_host_block(const HostBlock& block) {
  EXPECT_EQ(number(block.data()) % 64, 0u);
  expect_at_host(block.at(block.size() - 1));
  expect_address_range(block.at(block.size() - 1), block.data(), block.size());
  store(block.data(), pattern(block.size(), 6));
  EXPECT_TRUE(holds(block.data(), pattern(block.size(), 6)));
}

void expect_attributes_accepted(std::initializer_list<aclrtMallocAttribute> attributes) {
  HostConfiguration configuration(attributes);
  for (const size_t size : {size_t{100}, kGranule}) {
    SCOPED_TRACE(size);
    const HostBlock block(allocate_host_with(size, configuration.get()), size);
    expect_good_host_block(block);
  }
}

TEST_F(HostConfigured, HOST_12_NullOutputAndSizeZeroAreRefusedFirst) {
  aclrtMallocConfig without_attributes = {nullptr, 0};
  for (aclrtMallocConfig* config :
       {static_cast<aclrtMallocConfig*>(nullptr), &without_attributes}) {
    void* data = host_sentinel();
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHostWithCfg(nullptr, kPage, config));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocHostWithCfg(&data, 0, config));
    EXPECT_EQ(data, host_sentinel());
  }
}

TEST_F(HostConfigured, HOST_03_HOST_13_ThreadWithoutContextIsRefused) {
  on_bare_thread([] {
    void* data = host_sentinel();
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMallocHostWithCfg(&data, kPage, nullptr));
    EXPECT_EQ(data, host_sentinel());
  });
}

TEST_F(HostConfigured, HOST_13_NoConfigurationIsLikeMallocHost) {
  for (const size_t size : {size_t{1}, kPage + 1, 3 * kMiB}) {
    SCOPED_TRACE(size);
    const HostBlock block(allocate_host_with(size, nullptr), size);
    expect_good_host_block(block);
    EXPECT_SUCCESS(aclrtMemset(block.data(), size, 0xAB, size));
    EXPECT_TRUE(holds(block.data(), std::vector<uint8_t>(size, 0xAB)));
  }
}

TEST_F(HostConfigured, HOST_14_ConfigurationWithoutAttributeListIsRefused) {
  for (const size_t count : {size_t{0}, size_t{1}, SIZE_MAX}) {
    SCOPED_TRACE(count);
    aclrtMallocConfig config = {nullptr, count};
    expect_configuration_refused(ACL_ERROR_RT_PARAM_INVALID, &config);
  }
}

TEST_F(HostConfigured, HOST_14_EmptyAttributeListIsLikeNone) {
  aclrtMallocAttribute not_looked_at = host_attribute(ACL_RT_MEM_ATTR_DEVICE_ID, 99);
  aclrtMallocConfig config = {&not_looked_at, 0};
  const HostBlock block(allocate_host_with(kPage, &config), kPage);
  expect_good_host_block(block);
}

TEST_F(HostConfigured, HOST_15_EveryModuleIdIsAccepted) {
  for (const uint32_t module : {0u, 1u, 33u, 255u, 256u, 65535u}) {
    SCOPED_TRACE(module);
    expect_attributes_accepted({host_attribute(ACL_RT_MEM_ATTR_MODULE_ID, module)});
  }
}

TEST_F(HostConfigured, HOST_15_ModuleIdCountsNoDeviceMemory) {
  const MemoryFigures before = memory_figures();
  HostConfiguration configuration = {host_attribute(ACL_RT_MEM_ATTR_MODULE_ID, 7)};
  const HostBlock block(allocate_host_with(kGranule, configuration.get()), kGranule);
  EXPECT_EQ(memory_figures(), before);
}

// Registers a whole block and says what the device calls it.
void* device_address_of(const HostBlock& block) {
  void* device_address = nullptr;
  EXPECT_SUCCESS(
      aclrtHostRegister(block.data(), block.size(), ACL_HOST_REGISTER_MAPPED, &device_address));
  return device_address;
}

void expect_one_address_on_both_sides() {
  HostConfiguration configuration = {host_attribute(ACL_RT_MEM_ATTR_VA_FLAG, 1)};
  for (const size_t size : {kPage, kGranule, 3 * kMiB}) {
    SCOPED_TRACE(size);
    const HostBlock block(allocate_host_with(size, configuration.get()), size);
    expect_good_host_block(block);
    EXPECT_EQ(device_address_of(block), block.data());
    EXPECT_TRUE(holds(block.data(), pattern(size, 6)));
    EXPECT_SUCCESS(aclrtHostUnregister(block.data()));
  }
}

TEST_F(HostConfigured, HOST_16_OneAddressOnHostAndDevice) { expect_one_address_on_both_sides(); }

TEST_F(HostConfigured, HOST_16_OneAddressAlsoThroughRegisterV2) {
  HostConfiguration configuration = {host_attribute(ACL_RT_MEM_ATTR_VA_FLAG, 1)};
  const HostBlock block(allocate_host_with(kGranule, configuration.get()), kGranule);
  ASSERT_SUCCESS(aclrtHostRegisterV2(block.data(), kGranule, ACL_HOST_REG_MAPPED));
  void* device_address = nullptr;
  EXPECT_SUCCESS(aclrtHostGetDevicePointer(block.data(), &device_address, 0));
  EXPECT_EQ(device_address, block.data());
  EXPECT_SUCCESS(aclrtHostUnregister(block.data()));
}

TEST_F(HostConfigured, HOST_16_FlagZeroIsLikeNoAttribute) {
  expect_attributes_accepted({host_attribute(ACL_RT_MEM_ATTR_VA_FLAG, 0)});
}

TEST_F(HostConfigured, HOST_15_HOST_16_AttributesMayBeCombined) {
  HostConfiguration configuration = {host_attribute(ACL_RT_MEM_ATTR_MODULE_ID, 300),
                                     host_attribute(ACL_RT_MEM_ATTR_VA_FLAG, 1)};
  const HostBlock block(allocate_host_with(kGranule, configuration.get()), kGranule);
  EXPECT_EQ(device_address_of(block), block.data());
  EXPECT_SUCCESS(aclrtHostUnregister(block.data()));
}

TEST_F(HostConfigured, HOST_16_OtherFlagValuesAreRefused) {
  for (const uint32_t flag : {2u, 3u, 0x100u, 0xFFFFFFFFu}) {
    SCOPED_TRACE(flag);
    expect_attributes_refused(ACL_ERROR_RT_PARAM_INVALID,
                              {host_attribute(ACL_RT_MEM_ATTR_VA_FLAG, flag)});
  }
}

class HostConfiguredWithOneAddress : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, HostConfiguredWithOneAddress, testing::Values("a3", "950"),
                         host_product_name);

TEST_P(HostConfiguredWithOneAddress, HOST_16_OneAddressOnHostAndDevice) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  expect_one_address_on_both_sides();
}

class HostConfiguredWithTwoAddresses : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, HostConfiguredWithTwoAddresses,
                         testing::Values("inf", "trn", "200i", "200i-rc"), host_product_name);

TEST_P(HostConfiguredWithTwoAddresses, HOST_16_OneAddressIsNotSupported) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  expect_attributes_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                            {host_attribute(ACL_RT_MEM_ATTR_VA_FLAG, 1)});
}

TEST_F(HostConfigured, HOST_17_OtherAttributesAreRefused) {
  for (const int64_t type : {int64_t{ACL_RT_MEM_ATTR_RSV}, int64_t{ACL_RT_MEM_ATTR_DEVICE_ID},
                             int64_t{4}, int64_t{99}, int64_t{INT32_MAX}, int64_t{-1}}) {
    SCOPED_TRACE(type);
    // 0 is the current device: naming it is refused all the same.
    expect_attributes_refused(ACL_ERROR_RT_PARAM_INVALID,
                              {host_attribute(enum_value<aclrtMallocAttrType>(type), 0)});
  }
}

TEST_F(HostConfigured, HOST_17_OneBadAttributeAmongGoodOnesIsEnough) {
  const aclrtMallocAttribute good = host_attribute(ACL_RT_MEM_ATTR_MODULE_ID, 33);
  const aclrtMallocAttribute bad = host_attribute(ACL_RT_MEM_ATTR_DEVICE_ID, 0);
  expect_attributes_refused(ACL_ERROR_RT_PARAM_INVALID, {good, bad});
  expect_attributes_refused(ACL_ERROR_RT_PARAM_INVALID, {bad, good});
  expect_attributes_refused(ACL_ERROR_RT_PARAM_INVALID, {good, bad, good});
}

}  // namespace
}  // namespace understudy_test
