// SPDX-License-Identifier: Apache-2.0
//
// The key slice: devices that are parts of one, by the templates that are published for each SoC.
#include <ostream>
#include <string>
#include <vector>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

constexpr size_t kInferenceMemory = 24'000'000'000;
// What does not fill a page of the pool it is in is lost.
constexpr size_t kPagePart = 4 * kKiB;

struct Template {
  std::string name;
  std::string product;
  std::string soc;
  std::string slice;
  size_t memory;
  int64_t ai_cores;
  int64_t ai_cpus;
};
std::ostream& operator<<(std::ostream& stream, const Template& slice) {
  return stream << slice.name;
}

std::vector<Template> every_template() {
  std::vector<Template> all;
  const auto add = [&all](const std::string& product, const std::string& soc,
                          const std::string& slice, size_t memory, int64_t cores, int64_t cpus) {
    all.push_back({product + "_" + std::to_string(all.size()) + "_" + slice, product, soc, slice,
                   memory, cores, cpus});
  };
  for (const char* soc : {"Ascend910B1", "Ascend910B2", "Ascend910B2C"}) {
    add("a2", soc, "vir03_1c_8g", 8 * kGiB, 3, 1);
    add("a2", soc, "vir06_1c_16g", 16 * kGiB, 6, 1);
    add("a2", soc, "vir12_3c_32g", 32 * kGiB, 12, 3);
  }
  add("a2", "Ascend910B3", "vir05_1c_16g", 16 * kGiB, 5, 1);
  add("a2", "Ascend910B3", "vir10_3c_32g", 32 * kGiB, 10, 3);
  add("a2", "Ascend910B4", "vir05_1c_8g", 8 * kGiB, 5, 1);
  add("a2", "Ascend910B4", "vir10_3c_16g", 16 * kGiB, 10, 3);
  add("a2", "Ascend910B4", "vir10_3c_16g_nm", 16 * kGiB, 10, 3);
  add("a2", "Ascend910B4", "vir10_4c_16g_m", 16 * kGiB, 10, 4);
  add("a3", "Ascend910_9392", "vir06_1c_16g", 16 * kGiB, 6, 1);
  add("a3", "Ascend910_9392", "vir12_3c_32g", 32 * kGiB, 12, 3);
  add("a3", "Ascend910_9372", "vir05_1c_16g", 16 * kGiB, 5, 1);
  add("a3", "Ascend910_9372", "vir10_3c_32g", 32 * kGiB, 10, 3);
  add("inf", "Ascend310P3", "vir01", kInferenceMemory / 8, 1, 1);
  add("inf", "Ascend310P3", "vir02", kInferenceMemory / 4, 2, 2);
  add("inf", "Ascend310P3", "vir02_1c", kInferenceMemory / 4, 2, 1);
  add("inf", "Ascend310P3", "vir04", kInferenceMemory / 2, 4, 4);
  add("inf", "Ascend310P3", "vir04_3c", kInferenceMemory / 2, 4, 3);
  add("inf", "Ascend310P3", "vir04_3c_ndvpp", kInferenceMemory / 2, 4, 3);
  add("inf", "Ascend310P3", "vir04_4c_dvpp", kInferenceMemory / 2, 4, 4);
  add("trn", "Ascend910A", "vir02", 2 * kGiB, 2, 1);
  add("trn", "Ascend910A", "vir04", 4 * kGiB, 4, 1);
  add("trn", "Ascend910A", "vir08", 8 * kGiB, 8, 3);
  add("trn", "Ascend910A", "vir16", 16 * kGiB, 16, 7);
  return all;
}

int64_t device_figure(aclrtDevAttr attribute) {
  int64_t value = -1;
  EXPECT_SUCCESS(aclrtGetDeviceInfo(0, attribute, &value));
  return value;
}

class EachTemplate : public testing::TestWithParam<Template> {};
INSTANTIATE_TEST_SUITE_P(Slice, EachTemplate, testing::ValuesIn(every_template()),
                         case_name<Template>);

TEST_P(EachTemplate, HasItsPartOfTheMemoryAndOfTheCores) {
  const Template& slice = GetParam();
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", slice.product}, {"UNDERSTUDY_SOC", slice.soc},
                   {"UNDERSTUDY_SLICE", slice.slice});
  EXPECT_EQ(device_count(), 8u);
  EXPECT_STREQ(aclrtGetSocName(), slice.soc.c_str());
  const size_t total = total_memory();
  EXPECT_LE(total, slice.memory);
  EXPECT_GE(total, slice.memory - kPagePart);
  EXPECT_EQ(device_figure(ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE), static_cast<int64_t>(slice.memory));
  EXPECT_EQ(device_figure(ACL_DEV_ATTR_AICORE_CORE_NUM), slice.ai_cores);
  EXPECT_EQ(device_figure(ACL_DEV_ATTR_CUBE_CORE_NUM), slice.ai_cores);
  EXPECT_EQ(device_figure(ACL_DEV_ATTR_AICPU_CORE_NUM), slice.ai_cpus);
  int64_t capability = -1;
  EXPECT_SUCCESS(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &capability));
  EXPECT_EQ(capability, slice.ai_cores);
  EXPECT_SUCCESS(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &capability));
  EXPECT_EQ(capability, device_figure(ACL_DEV_ATTR_VECTOR_CORE_NUM));
}

TEST_P(EachTemplate, SharesNoMemory) {
  const Template& slice = GetParam();
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", slice.product}, {"UNDERSTUDY_SOC", slice.soc},
                   {"UNDERSTUDY_SLICE", slice.slice});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MappedBlock block = map_new_block();
  uint64_t token = 77;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemExportToShareableHandle(block.handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &token));
  EXPECT_EQ(token, 77u);
  copy_in(block.address, pattern(64 * kKiB));
  EXPECT_EQ(copy_out(block.address, 64 * kKiB), pattern(64 * kKiB));
  drop(block);
}

TEST(Slice, IsFullWhenItsMemoryIsTaken) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "trn"}, {"UNDERSTUDY_SLICE", "vir02"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), 128 * kMiB);
  const size_t huge = 2 * kGiB - 128 * kMiB;
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge);
  const aclrtDrvMemHandle everything = create_block(huge);
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle more = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
               aclrtMallocPhysical(&more, kBlockSize, &property, 0));
  EXPECT_EQ(more, nullptr);
  EXPECT_SUCCESS(aclrtFreePhysical(everything));
}

TEST(Slice, MemoryComesBeforeThatOfTheTemplate) {
  US_FRESH_PROCESS({"UNDERSTUDY_SLICE", "vir10_3c_32g"}, {"UNDERSTUDY_MEMORY", "1G"});
  EXPECT_EQ(total_memory(), kGiB);
  EXPECT_EQ(device_figure(ACL_DEV_ATTR_AICORE_CORE_NUM), 10);
  EXPECT_EQ(device_figure(ACL_DEV_ATTR_VECTOR_CORE_NUM), 20);
}

TEST(Slice, LimitsWhatAThreadCanAskOfTheCores) {
  US_FRESH_PROCESS({"UNDERSTUDY_SLICE", "vir05_1c_16g"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  uint32_t cores = 0;
  EXPECT_SUCCESS(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &cores));
  EXPECT_EQ(cores, 5u);
  EXPECT_SUCCESS(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &cores));
  EXPECT_EQ(cores, 10u);
}

TEST(Slice, FeaturesCanLetItShare) {
  US_FRESH_PROCESS({"UNDERSTUDY_SLICE", "vir05_1c_16g"},
                   {"UNDERSTUDY_FEATURES", "-virtual_instance"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MappedBlock block = map_new_block();
  uint64_t token = 0;
  EXPECT_SUCCESS(
      aclrtMemExportToShareableHandle(block.handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &token));
  drop(block);
}

TEST(Slice, ASocWithoutTemplatesSaysSo) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i"}, {"UNDERSTUDY_SLICE", "vir01"});
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(recent_error(),
            "aclInit: configuration key slice has the value \"vir01\" (soc is Ascend310B1); "
            "allowed: none\n");
}

TEST(Slice, AWrongOneIsAnsweredWithThoseOfTheSoc) {
  US_FRESH_PROCESS({"UNDERSTUDY_SOC", "Ascend910B2"}, {"UNDERSTUDY_SLICE", "vir05_1c_16g"});
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(recent_error(),
            "aclInit: configuration key slice has the value \"vir05_1c_16g\" (soc is Ascend910B2); "
            "allowed: none, vir03_1c_8g, vir06_1c_16g, vir12_3c_32g\n");
}

}  // namespace
}  // namespace understudy_test::runtime
