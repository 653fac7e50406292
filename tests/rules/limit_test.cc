// SPDX-License-Identifier: Apache-2.0
//
// Sizes that kernels get: aclrtDeviceSetLimit, aclrtDeviceGetLimit and the keys of aclInit. There
// is one value per process, so every test has its own. Covers: LIMIT-01.
// Covers: LIMIT-01, LIMIT-02, LIMIT-03, LIMIT-04, LIMIT-05, LIMIT-06, LIMIT-07, LIMIT-08, LIMIT-09.
#include <string>

#include "rules/product_objects.h"
#include "rules/temporary_file.h"

namespace understudy_test {
namespace {

using runtime::TemporaryFile;

constexpr aclrtDeviceLimit kThreadStack = ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE;
constexpr aclrtDeviceLimit kDivergenceStack = ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE;
constexpr aclrtDeviceLimit kCoreStack = ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE;
constexpr aclrtDeviceLimit kCoreOutput = ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE;
constexpr aclrtDeviceLimit kThreadOutput = ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE;
constexpr aclrtDeviceLimit kEveryLimit[] = {kThreadStack, kDivergenceStack, kCoreStack, kCoreOutput,
                                            kThreadOutput};

size_t limit_of(aclrtDeviceLimit limit) {
  size_t value = 77;
  EXPECT_SUCCESS(aclrtDeviceGetLimit(limit, &value));
  return value;
}

// What is read back after the limit was set.
size_t stored(aclrtDeviceLimit limit, size_t value) {
  EXPECT_SUCCESS(aclrtDeviceSetLimit(limit, value));
  return limit_of(limit);
}

void expect_refused(aclrtDeviceLimit limit, size_t value) {
  SCOPED_TRACE(testing::Message() << "limit " << limit << ", value " << value);
  const size_t before = limit_of(limit);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtDeviceSetLimit(limit, value));
  EXPECT_EQ(limit_of(limit), before);
}

class DeviceLimit : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, DeviceLimit, every_product(), product_name);

TEST_P(DeviceLimit, LIMIT_01_LIMIT_02_ArgumentsComeBeforeTheProductAndItsRow) {
  US_ON_PRODUCT();
  for (const aclrtDeviceLimit limit : kEveryLimit) {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetLimit(limit, nullptr));
  }
  size_t value = 77;
  const aclError unknown =
      is_modern() ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  for (const int64_t number : {-1, 5, 6, 100, 0x7FFFFFFF}) {
    SCOPED_TRACE(number);
    const auto limit = enum_value<aclrtDeviceLimit>(number);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetLimit(limit, nullptr));
    EXPECT_FAILS(unknown, aclrtDeviceGetLimit(limit, &value));
    EXPECT_FAILS(unknown, aclrtDeviceSetLimit(limit, 32768));
  }
  EXPECT_EQ(value, 77u);
}

TEST_P(DeviceLimit, LIMIT_02_LIMIT_05_EachProductHasItsRowsAndDefaults) {
  US_ON_PRODUCT();
  const size_t defaults[] = {36864, 1024, 32768, 32768, 2097152};
  for (const aclrtDeviceLimit limit : kEveryLimit) {
    SCOPED_TRACE(limit);
    const bool has =
        GetParam() == "950" || (is_modern() && (limit == kCoreStack || limit == kCoreOutput));
    size_t value = 77;
    EXPECT_SUPPORTED(has, aclrtDeviceGetLimit(limit, &value));
    EXPECT_EQ(value, has ? defaults[limit] : 77u);
    EXPECT_SUPPORTED(has, aclrtDeviceSetLimit(limit, 2 * kMiB / (limit == kCoreStack ? 64 : 1)));
  }
}

TEST(DeviceLimitOf950, LIMIT_03_LIMIT_06_ValuesAreRoundedUpAsTheTableSays) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  EXPECT_EQ(stored(kThreadStack, 256), 8192u);
  EXPECT_EQ(stored(kThreadStack, 257), 384u * 32);
  EXPECT_EQ(stored(kThreadStack, 0), 0u);
  EXPECT_EQ(stored(kThreadStack, SIZE_MAX), SIZE_MAX) << "any value is accepted";
  EXPECT_EQ(stored(kDivergenceStack, 512), 512u);
  EXPECT_EQ(stored(kDivergenceStack, 513), 640u);
  EXPECT_EQ(stored(kDivergenceStack, SIZE_MAX), SIZE_MAX / 128 * 128);
  for (const size_t small : {size_t{0}, size_t{1}, size_t{32767}, size_t{32768}}) {
    EXPECT_EQ(stored(kCoreStack, small), 32768u);
  }
  EXPECT_EQ(stored(kCoreStack, 32769), 49152u);
  EXPECT_EQ(stored(kCoreStack, 131072), 131072u);
  EXPECT_EQ(stored(kCoreOutput, 1024), 1024u);
  EXPECT_EQ(stored(kCoreOutput, 1025), 1032u);
  EXPECT_EQ(stored(kCoreOutput, 67108864), 67108864u);
  EXPECT_EQ(stored(kThreadOutput, 1048577), 1048584u);
  EXPECT_EQ(stored(kThreadOutput, 67108864), 67108864u);
}

TEST(DeviceLimitOf950, LIMIT_03_ValuesOutsideTheRangeChangeNothing) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  EXPECT_EQ(stored(kCoreStack, 65536), 65536u);
  for (const size_t value : {size_t{131073}, size_t{196608}, SIZE_MAX}) {
    expect_refused(kCoreStack, value);
  }
  for (const size_t value : {size_t{0}, size_t{1023}, size_t{67108865}, SIZE_MAX}) {
    expect_refused(kCoreOutput, value);
  }
  for (const size_t value : {size_t{0}, size_t{1048575}, size_t{67108865}, SIZE_MAX}) {
    expect_refused(kThreadOutput, value);
  }
}

TEST(DeviceLimitOfA2, LIMIT_03_TheStackOfACoreMayBeLarger) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  EXPECT_EQ(stored(kCoreStack, 131073), 147456u);
  EXPECT_EQ(stored(kCoreStack, 196608), 196608u);
  expect_refused(kCoreStack, 196609);
}

TEST(DeviceLimitOf950, LIMIT_04_TheTwoStacksOfThreadsAreNotBothZero) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  EXPECT_EQ(stored(kThreadStack, 0), 0u);
  expect_refused(kDivergenceStack, 0);
  EXPECT_EQ(stored(kThreadStack, 128), 4096u);
  EXPECT_EQ(stored(kDivergenceStack, 0), 0u);
  expect_refused(kThreadStack, 0);
}

TEST(DeviceLimitOfA2, LIMIT_05_LIMIT_06_OneValueServesAllThreadsAndDevices) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  EXPECT_EQ(stored(kCoreStack, 49152), 49152u) << "before any device is set";
  for (const int32_t device : {0, 1}) {
    ASSERT_SUCCESS(aclrtSetDevice(device));
    EXPECT_EQ(limit_of(kCoreStack), 49152u);
  }
  std::thread([] { EXPECT_EQ(stored(kCoreStack, 65536), 65536u); }).join();
  EXPECT_EQ(limit_of(kCoreStack), 65536u) << "the last one counts, at once";
}

TEST(DeviceLimitOfA2, LIMIT_07_MemoryFiguresStay) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MemoryFigures before = memory_figures();
  EXPECT_EQ(stored(kCoreStack, 196608), 196608u);
  EXPECT_EQ(memory_figures(), before);
  EXPECT_SUCCESS(aclrtResetDevice(0));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(memory_figures(), before);
  EXPECT_EQ(limit_of(kCoreStack), 196608u) << "a limit outlives the device";
}

TEST(DeviceLimitOf950, LIMIT_08_TheFileOfInitSetsAllFive) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  const TemporaryFile file(
      R"({"StackSize": {"simt_stack_size": 256, "simt_divergence_stack_size": "500",
          "aicore_stack_size": 40000},
          "simd_printf_fifo_size_per_core": "2048", "simt_printf_fifo_size": 1048576})");
  EXPECT_EQ(stored(kThreadStack, 1280), 1280u * 32) << "and what comes later counts";
  EXPECT_SUCCESS(aclInit(file.path().c_str()));
  EXPECT_EQ(limit_of(kThreadStack), 8192u);
  EXPECT_EQ(limit_of(kDivergenceStack), 512u);
  EXPECT_EQ(limit_of(kCoreStack), 49152u);
  EXPECT_EQ(limit_of(kCoreOutput), 2048u);
  EXPECT_EQ(limit_of(kThreadOutput), 1048576u);
  EXPECT_EQ(stored(kCoreOutput, 4096), 4096u);
  EXPECT_SUCCESS(aclFinalize());
  EXPECT_EQ(limit_of(kCoreOutput), 4096u);
}

TEST(DeviceLimitOf950, LIMIT_03_LIMIT_08_AFileWithABadValueSetsNoneAndFails) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  const char* const texts[] = {
      R"({"simd_printf_fifo_size_per_core": 2048, "simt_printf_fifo_size": 7})",
      R"({"simd_printf_fifo_size_per_core": 2048,
          "StackSize": {"simt_stack_size": 0, "simt_divergence_stack_size": 0}})",
      R"({"simd_printf_fifo_size_per_core": 2048, "simt_printf_fifo_size": -1})",
      R"({"simd_printf_fifo_size_per_core": 2048, "simt_printf_fifo_size": "many"})",
      R"({"simd_printf_fifo_size_per_core": 2048, "StackSize": 4096})"};
  for (const char* const text : texts) {
    SCOPED_TRACE(text);
    const TemporaryFile file(text);
    EXPECT_NE(aclInit(file.path().c_str()), ACL_SUCCESS);
    EXPECT_NE(recent_error().find("aclInit"), std::string::npos);
    EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalize());
    EXPECT_EQ(limit_of(kCoreOutput), 32768u);
  }
}

TEST(DeviceLimitOfA2, LIMIT_02_LIMIT_08_AKeyThatTheProductLacksIsRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  const TemporaryFile file(R"({"StackSize": {"simt_stack_size": 256}})");
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclInit(file.path().c_str()));
}

TEST(DeviceLimitOfInf, LIMIT_02_LIMIT_08_AKeyOfAMissingFunctionIsRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "inf"});
  const TemporaryFile file(R"({"StackSize": {"aicore_stack_size": 32768}})");
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclInit(file.path().c_str()));
}

TEST(DeviceLimitOfA2, LIMIT_09_WithoutDeviceZeroNoneIsSet) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"}, {"ASCEND_RT_VISIBLE_DEVICES", "1,2"});
  EXPECT_EQ(limit_of(kCoreStack), 32768u) << "reading is allowed";
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtDeviceSetLimit(kCoreStack, 49152));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtDeviceSetLimit(enum_value<aclrtDeviceLimit>(5), 49152));
  const TemporaryFile file(R"({"StackSize": {"aicore_stack_size": 49152}})");
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclInit(file.path().c_str()));
  EXPECT_EQ(limit_of(kCoreStack), 32768u);
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
}

}  // namespace
}  // namespace understudy_test
