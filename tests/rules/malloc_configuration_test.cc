// SPDX-License-Identifier: Apache-2.0
//
// The attributes that aclrtMallocWithCfg and aclrtMallocForTaskScheduler take.
// Covers: MALLOC-20, MALLOC-21, MALLOC-22, MALLOC-23, MALLOC-24, MALLOC-25, MALLOC-26, MALLOC-27,
// MALLOC-28, MALLOC-29.
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

// A function with a configuration, as a test parameter.
struct ConfiguredMalloc {
  const char* name;
  aclError (*call)(void** data, size_t size, aclrtMemMallocPolicy policy,
                   aclrtMallocConfig* configuration);

  friend std::ostream& operator<<(std::ostream& out, const ConfiguredMalloc& function) {
    return out << function.name;
  }
};

constexpr ConfiguredMalloc kConfiguredMallocs[] = {
    {"aclrtMallocWithCfg", aclrtMallocWithCfg},
    {"aclrtMallocForTaskScheduler", aclrtMallocForTaskScheduler},
};

aclrtMallocAttribute attribute_of(int64_t type, uint32_t value) {
  aclrtMallocAttribute attribute;
  memset(&attribute, 0, sizeof attribute);
  attribute.attr = enum_value<aclrtMallocAttrType>(type);
  attribute.value.deviceId = value;
  return attribute;
}
aclrtMallocAttribute module_attribute(uint16_t module) {
  aclrtMallocAttribute attribute = attribute_of(ACL_RT_MEM_ATTR_MODULE_ID, 0);
  attribute.value.moduleId = module;
  return attribute;
}
aclrtMallocAttribute device_attribute(uint32_t device) {
  return attribute_of(ACL_RT_MEM_ATTR_DEVICE_ID, device);
}

using Attributes = std::vector<aclrtMallocAttribute>;

class MallocConfiguration : public DeviceTest,
                            public testing::WithParamInterface<ConfiguredMalloc> {
 protected:
  static aclError allocate(void** data, size_t size, Attributes attributes) {
    aclrtMallocConfig configuration = {attributes.data(), attributes.size()};
    return GetParam().call(data, size, ACL_MEM_MALLOC_HUGE_FIRST, &configuration);
  }

  static void expect_accepted(const Attributes& attributes, uint32_t device = 0) {
    const MemoryFigures before = memory_figures();
    void* data = nullptr;
    EXPECT_SUCCESS(allocate(&data, 5000, attributes));
    expect_device_memory(data, device);
    copy_in(data, pattern(5000, 6));
    EXPECT_EQ(copy_out(data, 5000), pattern(5000, 6));
    EXPECT_SUCCESS(aclrtFree(data));
    EXPECT_EQ(memory_figures(), before);
  }

  static void expect_refused(aclError code, const Attributes& attributes) {
    const MemoryFigures before = memory_figures();
    void* data = untouched_address();
    (void)recent_error();
    EXPECT_TRUE(fails_with(code, allocate(&data, 5000, attributes), GetParam().name));
    EXPECT_EQ(data, untouched_address());
    EXPECT_EQ(memory_figures(), before);
  }

  // A block that is freed at the end of its scope.
  struct Tagged {
    Tagged(size_t size, const Attributes& attributes) {
      EXPECT_SUCCESS(allocate(&data, size, attributes));
    }
    ~Tagged() { EXPECT_SUCCESS(aclrtFree(data)); }
    Tagged(const Tagged&) = delete;
    Tagged& operator=(const Tagged&) = delete;
    void* data = nullptr;
  };
};
INSTANTIATE_TEST_SUITE_P(, MallocConfiguration, testing::ValuesIn(kConfiguredMallocs),
                         [](const testing::TestParamInfo<ConfiguredMalloc>& parameter) {
                           return std::string(parameter.param.name);
                         });

TEST_P(MallocConfiguration, MALLOC_20_MALLOC_29_NullConfigurationMeansNoAttributes) {
  const MemoryFigures before = memory_figures();
  const size_t huge = free_bytes(ACL_HBM_MEM_HUGE);
  void* data = nullptr;
  ASSERT_SUCCESS(GetParam().call(&data, 2 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY, nullptr));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge - 2 * kMiB);
  expect_device_memory(data, 0);
  EXPECT_SUCCESS(aclrtFree(data));
  EXPECT_EQ(memory_figures(), before);
}

TEST_P(MallocConfiguration, MALLOC_21_MALLOC_29_PromisedAttributesThatAreMissingAreRefused) {
  const MemoryFigures before = memory_figures();
  for (const size_t count : {size_t{1}, size_t{4}, size_t{SIZE_MAX}}) {
    SCOPED_TRACE(count);
    aclrtMallocConfig configuration = {nullptr, count};
    void* data = untouched_address();
    (void)recent_error();
    EXPECT_TRUE(fails_with(ACL_ERROR_INVALID_PARAM,
                           GetParam().call(&data, 64, ACL_MEM_MALLOC_HUGE_FIRST, &configuration),
                           GetParam().name));
    EXPECT_EQ(data, untouched_address());
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_P(MallocConfiguration, MALLOC_22_MALLOC_29_EmptyConfigurationIsRefused) {
  const MemoryFigures before = memory_figures();
  aclrtMallocConfig configuration = {nullptr, 0};
  void* data = untouched_address();
  (void)recent_error();
  EXPECT_TRUE(fails_with(ACL_ERROR_RT_PARAM_INVALID,
                         GetParam().call(&data, 64, ACL_MEM_MALLOC_HUGE_FIRST, &configuration),
                         GetParam().name));
  EXPECT_EQ(data, untouched_address());
  EXPECT_EQ(memory_figures(), before);
}

// Three mistakes share one code; the text tells which of them was noticed.
TEST_P(MallocConfiguration, MALLOC_23_MALLOC_29_ChecksRunFromDevPtrOverAttrsToSize) {
  aclrtMallocConfig missing = {nullptr, 1};
  const auto complaint = [](void** data, size_t size, aclrtMallocConfig* configuration) {
    (void)recent_error();
    EXPECT_EQ(GetParam().call(data, size, ACL_MEM_MALLOC_HUGE_FIRST, configuration),
              ACL_ERROR_INVALID_PARAM);
    return recent_error();
  };
  void* data = untouched_address();
  const std::string all_wrong = complaint(nullptr, 0, &missing);
  EXPECT_NE(all_wrong.find("devPtr"), std::string::npos) << all_wrong;
  const std::string two_wrong = complaint(&data, 0, &missing);
  EXPECT_NE(two_wrong.find("attrs"), std::string::npos) << two_wrong;
  const std::string size_wrong = complaint(&data, 0, nullptr);
  EXPECT_NE(size_wrong.find("size"), std::string::npos) << size_wrong;
  EXPECT_EQ(data, untouched_address());
}

TEST_P(MallocConfiguration, MALLOC_23_MALLOC_29_SizeIsCheckedBeforeTheAttributesThemselves) {
  aclrtMallocConfig empty = {nullptr, 0};
  aclrtMallocAttribute unknown = attribute_of(99, 0);
  aclrtMallocConfig wrong = {&unknown, 1};
  for (aclrtMallocConfig* const configuration : {&empty, &wrong}) {
    void* data = untouched_address();
    (void)recent_error();
    EXPECT_TRUE(fails_with(ACL_ERROR_INVALID_PARAM,
                           GetParam().call(&data, 0, ACL_MEM_MALLOC_HUGE_FIRST, configuration),
                           GetParam().name));
    EXPECT_EQ(data, untouched_address());
  }
}

TEST_P(MallocConfiguration, MALLOC_24_MALLOC_29_ReservedAttributeIsIgnored) {
  expect_accepted({attribute_of(ACL_RT_MEM_ATTR_RSV, 0)});
  expect_accepted({attribute_of(ACL_RT_MEM_ATTR_RSV, UINT32_MAX)});
  expect_accepted({attribute_of(ACL_RT_MEM_ATTR_RSV, 99), device_attribute(0)});
}

TEST_P(MallocConfiguration, MALLOC_25_MALLOC_29_ModuleIdTagsTheBlock) {
  US_FRESH_PROCESS();
  for (const uint16_t module : {uint16_t{0}, uint16_t{7}, uint16_t{255}}) {
    const std::string name = "MODULE_" + std::to_string(module);
    SCOPED_TRACE(name);
    {
      const Tagged block(3 * kMiB, {module_attribute(module)});
      EXPECT_EQ(usage_of_module(name), (ModuleUsage{4 * kMiB, 4 * kMiB}));
      EXPECT_EQ(usage_of_module("APP"), ModuleUsage{});
    }
    EXPECT_EQ(usage_of_module(name), (ModuleUsage{0, 4 * kMiB}));
  }
}

TEST_P(MallocConfiguration, MALLOC_25_MALLOC_29_ModuleIdAbove255CountsAsTheApplication) {
  US_FRESH_PROCESS();
  for (const uint16_t module : {uint16_t{256}, uint16_t{1000}, uint16_t{UINT16_MAX}}) {
    const Tagged block(3 * kMiB, {module_attribute(module)});
    EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{4 * kMiB, 4 * kMiB})) << module;
  }
  EXPECT_EQ(memory_usage().size(), 1u);
}

TEST_P(MallocConfiguration, MALLOC_25_MALLOC_29_UntaggedBlocksAndModule33AreTheApplication) {
  US_FRESH_PROCESS();
  const Tagged named(3 * kMiB, {module_attribute(33)});
  const Tagged other_attribute(3 * kMiB, {device_attribute(0)});
  EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{8 * kMiB, 8 * kMiB}));
}

TEST_P(MallocConfiguration, MALLOC_26_MALLOC_29_OnlyTheCurrentDeviceMayBeNamed) {
  expect_accepted({device_attribute(0)});
  for (const uint32_t device : {1u, 7u, 8u, 99u, UINT32_MAX}) {
    SCOPED_TRACE(device);
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, {device_attribute(device)});
  }
  ASSERT_SUCCESS(aclrtSetDevice(1));
  expect_accepted({device_attribute(1)}, 1);
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, {device_attribute(0)});
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
}

TEST_P(MallocConfiguration, MALLOC_27_MALLOC_29_AddressFlagAndUnknownAttributesAreRefused) {
  for (const uint32_t value : {0u, 1u, 2u}) {
    SCOPED_TRACE(value);
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, {attribute_of(ACL_RT_MEM_ATTR_VA_FLAG, value)});
  }
  for (const int64_t type :
       {int64_t{4}, int64_t{99}, int64_t{-1}, int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
    SCOPED_TRACE(type);
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, {attribute_of(type, 0)});
    expect_refused(ACL_ERROR_RT_PARAM_INVALID,
                   {module_attribute(7), attribute_of(type, 0), device_attribute(0)});
  }
}

TEST_P(MallocConfiguration, MALLOC_28_MALLOC_29_TheLastOfTwoDevicesCounts) {
  expect_accepted({device_attribute(1), device_attribute(0)});
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, {device_attribute(0), device_attribute(1)});
}

TEST_P(MallocConfiguration, MALLOC_28_MALLOC_29_TheLastOfSeveralModulesCounts) {
  US_FRESH_PROCESS();
  const Tagged block(3 * kMiB, {module_attribute(7), module_attribute(300), device_attribute(0),
                                module_attribute(9)});
  EXPECT_EQ(usage_of_module("MODULE_9"), (ModuleUsage{4 * kMiB, 4 * kMiB}));
  EXPECT_EQ(usage_of_module("MODULE_7"), ModuleUsage{});
  EXPECT_EQ(usage_of_module("APP"), ModuleUsage{});
}

TEST_P(MallocConfiguration, MALLOC_29_BlockIsOrdinaryDeviceMemory) {
  const DeviceBlock plain(3 * kMiB);
  Attributes attributes = {module_attribute(7)};
  aclrtMallocConfig configuration = {attributes.data(), attributes.size()};
  void* data = nullptr;
  ASSERT_SUCCESS(GetParam().call(&data, 3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, &configuration));
  expect_device_memory(data, 0);
  copy_in(data, pattern(kNormalPage, 8));
  EXPECT_SUCCESS(
      aclrtMemcpy(plain.data(), kNormalPage, data, kNormalPage, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_EQ(copy_out(plain.data(), kNormalPage), pattern(kNormalPage, 8));
  EXPECT_SUCCESS(aclrtMemset(data, 3 * kMiB, 0x31, 3 * kMiB));
  EXPECT_TRUE(copy_out(data, 3 * kMiB) == std::vector<uint8_t>(3 * kMiB, 0x31));
  EXPECT_SUCCESS(aclrtFreeWithDevSync(data));
  expect_no_known_memory(data);
}

}  // namespace
}  // namespace understudy_test
