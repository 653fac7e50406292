// SPDX-License-Identifier: Apache-2.0
//
// What products.md says of each product, and the keys that change it: SoC, device count, memory.
#include <cstdlib>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

struct Product {
  std::string name;
  std::string key;
  // Full names, or beginnings where products.md leaves digits open.
  std::vector<std::string> soc_names;
  int64_t architecture;
  size_t least_memory;
  size_t most_memory;
};
std::ostream& operator<<(std::ostream& stream, const Product& product) {
  return stream << product.name;
}

bool is_soc_of(const Product& product, const std::string& soc) {
  for (const std::string& known : product.soc_names) {
    const bool open = known.ends_with('_');
    if (open ? soc.starts_with(known) && soc.size() > known.size() : soc == known) return true;
  }
  return false;
}

class EachProduct : public testing::TestWithParam<Product> {};

TEST_P(EachProduct, HasItsDevicesNameAndMemory) {
  const Product& product = GetParam();
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", product.key});
  EXPECT_EQ(device_count(), 8u);
  const char* soc = aclrtGetSocName();
  ASSERT_NE(soc, nullptr);
  EXPECT_TRUE(is_soc_of(product, soc)) << soc;
  int64_t architecture = -1;
  EXPECT_SUCCESS(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, &architecture));
  EXPECT_EQ(architecture, product.architecture);
  const size_t total = total_memory();
  EXPECT_GE(total, product.least_memory);
  EXPECT_LE(total, product.most_memory);
}

// A figure that is no multiple of a page loses at most a part of one of each kind.
constexpr size_t kPagePart = 2 * kMiB + 4 * kKiB;
constexpr size_t kInferenceMemory = 24'000'000'000;

const std::vector<Product> kProducts = {
    {"a3",
     "a3",
     {"Ascend910_9362", "Ascend910_9363", "Ascend910_9372", "Ascend910_9381", "Ascend910_9382",
      "Ascend910_9391", "Ascend910_9392"},
     2201,
     32 * kGiB,
     64 * kGiB},
    {"a2", "a2", {"Ascend910B3"}, 2201, 64 * kGiB, 64 * kGiB},
    {"inf",
     "inf",
     {"Ascend310P1", "Ascend310P3", "Ascend310P5", "Ascend310P7"},
     2002,
     kInferenceMemory - kPagePart,
     kInferenceMemory},
    {"trn",
     "trn",
     {"Ascend910A", "Ascend910ProA", "Ascend910ProB", "Ascend910PremiumA", "Ascend910B"},
     1001,
     32 * kGiB,
     32 * kGiB},
    {"atlas_200i",
     "200i",
     {"Ascend310B1", "Ascend310B2", "Ascend310B3", "Ascend310B4"},
     3002,
     8 * kGiB,
     32 * kGiB},
    {"atlas_200i_rc",
     "200i-rc",
     {"Ascend310B1", "Ascend310B2", "Ascend310B3", "Ascend310B4"},
     3002,
     4 * kGiB,
     16 * kGiB},
    {"ascend_950", "950", {"Ascend950PR_", "Ascend950DT_"}, 3510, 96 * kGiB, 144 * kGiB},
    // products.md states no figure.
    {"ipv350", "ipv350", {"Ascend035", "Ascend035A", "Ascend035B"}, 3505, 1, SIZE_MAX},
};

INSTANTIATE_TEST_SUITE_P(Configuration, EachProduct, testing::ValuesIn(kProducts),
                         case_name<Product>);

// A SoC of a product, with its memory where products.md states it.
struct Soc {
  std::string name;
  std::string product;
  std::string soc;
  std::optional<size_t> memory;
};
std::ostream& operator<<(std::ostream& stream, const Soc& soc) { return stream << soc.name; }

class EachSoc : public testing::TestWithParam<Soc> {};

TEST_P(EachSoc, CanBeChosenAndBringsItsMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_SOC", GetParam().soc});
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_STREQ(aclrtGetSocName(), GetParam().soc.c_str());
  if (GetParam().memory) {
    EXPECT_EQ(total_memory(), *GetParam().memory);
  }
  EXPECT_SUCCESS(aclFinalize());
}

std::vector<Soc> every_soc() {
  std::vector<Soc> socs = {{"Ascend910B1", "a2", "Ascend910B1", 64 * kGiB},
                           {"Ascend910B2", "a2", "Ascend910B2", 64 * kGiB},
                           {"Ascend910B2C", "a2", "Ascend910B2C", std::nullopt},
                           {"Ascend910B3", "a2", "Ascend910B3", 64 * kGiB},
                           {"Ascend910B4", "a2", "Ascend910B4", 32 * kGiB},
                           {"Ascend910B4_1", "a2", "Ascend910B4-1", std::nullopt},
                           {"Ascend910B_legacy", "trn", "Ascend910B", 32 * kGiB}};
  for (const char* soc : {"Ascend910_9362", "Ascend910_9372", "Ascend910_9381", "Ascend910_9382",
                          "Ascend910_9391", "Ascend910_9392"}) {
    socs.push_back({soc, "a3", soc, 64 * kGiB});
  }
  socs.push_back({"Ascend910_9363", "a3", "Ascend910_9363", 32 * kGiB});
  for (const char* soc : {"Ascend310P1", "Ascend310P3", "Ascend310P5", "Ascend310P7"}) {
    socs.push_back({soc, "inf", soc, std::nullopt});
  }
  for (const char* soc : {"Ascend910A", "Ascend910ProA", "Ascend910ProB", "Ascend910PremiumA"}) {
    socs.push_back({soc, "trn", soc, 32 * kGiB});
  }
  for (const char* soc : {"Ascend310B1", "Ascend310B2", "Ascend310B3", "Ascend310B4"}) {
    socs.push_back({soc, "200i", soc, std::nullopt});
    socs.push_back({std::string(soc) + "_rc", "200i-rc", soc, std::nullopt});
  }
  for (const char* soc : {"Ascend035", "Ascend035A", "Ascend035B"}) {
    socs.push_back({soc, "ipv350", soc, std::nullopt});
  }
  return socs;
}

INSTANTIATE_TEST_SUITE_P(Configuration, EachSoc, testing::ValuesIn(every_soc()), case_name<Soc>);

// A size as it is written, and in bytes.
struct Size {
  std::string name;
  std::string text;
  size_t bytes;
};
std::ostream& operator<<(std::ostream& stream, const Size& size) { return stream << size.name; }

class EachSize : public testing::TestWithParam<Size> {};

TEST_P(EachSize, IsTheMemoryOfADevice) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", GetParam().text});
  const size_t bytes = GetParam().bytes;
  EXPECT_EQ(total_memory(), bytes);
  EXPECT_EQ(total_memory(ACL_HBM_MEM_NORMAL), bytes / 16);
  EXPECT_EQ(total_memory(ACL_HBM_MEM_HUGE), bytes - bytes / 16);
  int64_t figure = -1;
  EXPECT_SUCCESS(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &figure));
  EXPECT_EQ(figure, static_cast<int64_t>(bytes));
}

TEST_P(EachSize, CanBeAllocatedToTheLastHugePage) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", GetParam().text});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtDrvMemHandle everything = create_block(free_bytes(ACL_HBM_MEM_HUGE));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), 0u);
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle more = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
               aclrtMallocPhysical(&more, kBlockSize, &property, 0));
  EXPECT_EQ(more, nullptr);
  EXPECT_SUCCESS(aclrtFreePhysical(everything));
}

INSTANTIATE_TEST_SUITE_P(Configuration, EachSize,
                         testing::Values(Size{"gibibytes", "64G", 64 * kGiB},
                                         Size{"mebibytes", "512M", 512 * kMiB},
                                         Size{"bytes", "1073741824", kGiB}),
                         case_name<Size>);

TEST(Configuration, NormalMemoryIsASizeTakenFromTheMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "16G"}, {"UNDERSTUDY_NORMAL_MEMORY", "3G"});
  EXPECT_EQ(total_memory(), 16 * kGiB);
  EXPECT_EQ(total_memory(ACL_HBM_MEM_NORMAL), 3 * kGiB);
  EXPECT_EQ(total_memory(ACL_HBM_MEM_HUGE), 13 * kGiB);
}

TEST(Configuration, NormalMemoryIsAPartOfTheMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "16G"}, {"UNDERSTUDY_NORMAL_MEMORY", "1/4"});
  EXPECT_EQ(total_memory(), 16 * kGiB);
  EXPECT_EQ(total_memory(ACL_HBM_MEM_NORMAL), 4 * kGiB);
  EXPECT_EQ(total_memory(ACL_HBM_MEM_HUGE), 12 * kGiB);
}

TEST(Configuration, MemoryComesBeforeTheFigureOfTheSoc) {
  US_FRESH_PROCESS({"UNDERSTUDY_SOC", "Ascend910B4"}, {"UNDERSTUDY_MEMORY", "48G"});
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B4");
  EXPECT_EQ(total_memory(), 48 * kGiB);
}

TEST(Configuration, DevicesIsTheirCount) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "3"});
  EXPECT_EQ(device_count(), 3u);
  EXPECT_SUCCESS(aclrtSetDevice(2));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(3));
}

TEST(Configuration, VisibleDevicesChooseAmongTheDevices) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "4"}, {"ASCEND_RT_VISIBLE_DEVICES", "1,3,5"});
  EXPECT_EQ(device_count(), 2u);
  int32_t logic = -1;
  EXPECT_SUCCESS(aclrtGetLogicDevIdByUserDevId(0, &logic));
  EXPECT_EQ(logic, 1);
  EXPECT_SUCCESS(aclrtGetLogicDevIdByUserDevId(1, &logic));
  EXPECT_EQ(logic, 3);
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(2));
}

TEST(Configuration, WithoutAnyKeyItIsAnAtlasA2) {
  US_FRESH_PROCESS();
  ASSERT_EQ(getenv("UNDERSTUDY_PRODUCT"), nullptr) << "run the tests without UNDERSTUDY_PRODUCT";
  EXPECT_EQ(device_count(), 8u);
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B3");
  EXPECT_EQ(total_memory(), 64 * kGiB);
  EXPECT_EQ(total_memory(ACL_HBM_MEM_NORMAL), 4 * kGiB);
  EXPECT_EQ(total_memory(ACL_HBM_MEM_HUGE), 60 * kGiB);
}

}  // namespace
}  // namespace understudy_test::runtime
