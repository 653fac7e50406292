// SPDX-License-Identifier: Apache-2.0
//
// aclrtGetMemUsageInfo, and what aclrtMalloc does to the figures of aclrtGetMemInfo.
// Covers: INFO-05, INFO-08, INFO-09, INFO-10, INFO-11, INFO-12, INFO-13.
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

// Peaks last as long as the process, so most tests start with a process of their own.
using MemoryUsage = DeviceTest;

constexpr size_t kUntouchedCount = 0x5EA7ED;

// Entries filled with a mark that no answer has.
struct UsageEntries {
  explicit UsageEntries(size_t count) : entries(count) {
    memset(static_cast<void*>(entries.data()), 0x5a, count * sizeof(aclrtMemUsageInfo));
  }
  bool untouched(size_t from = 0) const {
    const UsageEntries fresh(entries.size());
    return memcmp(entries.data() + from, fresh.entries.data() + from,
                  (entries.size() - from) * sizeof(aclrtMemUsageInfo)) == 0;
  }
  std::vector<aclrtMemUsageInfo> entries;
};

// A block of a module, freed at the end of its scope.
class ModuleBlock {
 public:
  ModuleBlock(uint16_t module, size_t size) {
    aclrtMallocAttribute attribute;
    memset(&attribute, 0, sizeof attribute);
    attribute.attr = ACL_RT_MEM_ATTR_MODULE_ID;
    attribute.value.moduleId = module;
    aclrtMallocConfig configuration = {&attribute, 1};
    EXPECT_SUCCESS(aclrtMallocWithCfg(&data_, size, ACL_MEM_MALLOC_HUGE_ONLY, &configuration));
  }
  ~ModuleBlock() { EXPECT_SUCCESS(aclrtFree(data_)); }
  ModuleBlock(const ModuleBlock&) = delete;
  ModuleBlock& operator=(const ModuleBlock&) = delete;

 private:
  void* data_ = nullptr;
};

TEST_F(MemoryUsage, INFO_10_NullOutputIsRefused) {
  const DeviceBlock block(kMiB);
  UsageEntries usage(2);
  size_t count = kUntouchedCount;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemUsageInfo(0, nullptr, 2, &count));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemUsageInfo(0, usage.entries.data(), 2, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemUsageInfo(99, nullptr, 0, nullptr));
  EXPECT_EQ(count, kUntouchedCount);
  EXPECT_TRUE(usage.untouched());
}

TEST_F(MemoryUsage, INFO_11_INFO_12_NoRoomIsRefusedWithNoEntries) {
  const DeviceBlock block(kMiB);
  UsageEntries usage(2);
  size_t count = kUntouchedCount;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtGetMemUsageInfo(0, usage.entries.data(), 0, &count));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(usage.untouched());
}

TEST_F(MemoryUsage, INFO_11_INFO_12_UnknownDeviceIsRefusedWithNoEntries) {
  for (const int32_t device : {-1, 8, 99, INT32_MAX, INT32_MIN}) {
    SCOPED_TRACE(device);
    UsageEntries usage(2);
    size_t count = kUntouchedCount;
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID,
                 aclrtGetMemUsageInfo(device, usage.entries.data(), 2, &count));
    EXPECT_EQ(count, 0u);
    EXPECT_TRUE(usage.untouched());
  }
}

TEST_F(MemoryUsage, INFO_12_FreshProcessUsesNothing) {
  US_FRESH_PROCESS();
  UsageEntries usage(4);
  size_t count = kUntouchedCount;
  EXPECT_SUCCESS(aclrtGetMemUsageInfo(0, usage.entries.data(), 4, &count));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(usage.untouched());
}

TEST_F(MemoryUsage, INFO_12_CountIsTheSmallerOfRoomAndModules) {
  US_FRESH_PROCESS();
  const ModuleBlock first(1, 2 * kMiB);
  const ModuleBlock second(2, 4 * kMiB);
  const ModuleBlock third(3, 6 * kMiB);
  for (const size_t room : {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{50}}) {
    SCOPED_TRACE(room);
    UsageEntries usage(50);
    size_t count = kUntouchedCount;
    EXPECT_SUCCESS(aclrtGetMemUsageInfo(0, usage.entries.data(), room, &count));
    ASSERT_EQ(count, std::min(room, size_t{3}));
    EXPECT_TRUE(usage.untouched(count)) << "entries beyond the count were written";
    EXPECT_STREQ(usage.entries[0].name, "MODULE_3");
  }
}

TEST_F(MemoryUsage, INFO_13_EntriesAreOrderedByCurrentSize) {
  US_FRESH_PROCESS();
  std::deque<ModuleBlock> blocks;
  const size_t pages[] = {3, 9, 1, 7, 5};
  for (size_t i = 0; i < 5; ++i) {
    blocks.emplace_back(static_cast<uint16_t>(40 + i), pages[i] * kHugePage);
  }
  const auto names = [] {
    std::vector<std::string> found;
    for (const aclrtMemUsageInfo& entry : memory_usage()) found.emplace_back(entry.name);
    return found;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"MODULE_41", "MODULE_43", "MODULE_44", "MODULE_40",
                                               "MODULE_42"}));
  // The peak of a module that shrinks does not keep its rank.
  blocks.pop_front();
  blocks.pop_front();
  const std::vector<std::string> after = names();
  ASSERT_EQ(after.size(), 5u);
  EXPECT_EQ(std::vector<std::string>(after.begin(), after.begin() + 3),
            (std::vector<std::string>{"MODULE_43", "MODULE_44", "MODULE_42"}));
}

TEST_F(MemoryUsage, INFO_13_NameEndsWithinItsFieldForEveryModule) {
  US_FRESH_PROCESS();
  std::deque<ModuleBlock> blocks;
  for (uint16_t module = 0; module <= 255; ++module) blocks.emplace_back(module, kHugePage);
  const std::vector<aclrtMemUsageInfo> usage = memory_usage();
  ASSERT_EQ(usage.size(), 256u);
  for (const aclrtMemUsageInfo& entry : usage) {
    const size_t length = strnlen(entry.name, sizeof entry.name);
    EXPECT_GT(length, 0u);
    EXPECT_LE(length, 31u);
    EXPECT_EQ(entry.curMemSize, kHugePage);
    EXPECT_EQ(entry.memPeakSize, kHugePage);
  }
  EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{kHugePage, kHugePage}));
  EXPECT_EQ(usage_of_module("MODULE_255"), (ModuleUsage{kHugePage, kHugePage}));
}

TEST_F(MemoryUsage, INFO_13_CurrentAndPeakCountPageRoundedBytes) {
  US_FRESH_PROCESS();
  {
    const DeviceBlock normal(5000);
    EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{8 * kKiB, 8 * kKiB}));
    const DeviceBlock huge(2 * kMiB);
    EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{4 * kMiB + 8 * kKiB, 4 * kMiB + 8 * kKiB}));
    {
      const DeviceBlock giant(1, ACL_MEM_MALLOC_HUGE1G_ONLY);
      EXPECT_EQ(usage_of_module("APP").current, kGiB + 4 * kMiB + 8 * kKiB);
    }
    EXPECT_EQ(usage_of_module("APP"),
              (ModuleUsage{4 * kMiB + 8 * kKiB, kGiB + 4 * kMiB + 8 * kKiB}));
  }
  EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{0, kGiB + 4 * kMiB + 8 * kKiB}));
  const DeviceBlock less(3 * kMiB);
  EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{4 * kMiB, kGiB + 4 * kMiB + 8 * kKiB}));
}

TEST_F(MemoryUsage, INFO_13_PhysicalBlocksCountAsTheApplication) {
  US_FRESH_PROCESS();
  const aclrtDrvMemHandle block = create_block(6 * kMiB);
  EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{6 * kMiB, 6 * kMiB}));
  const DeviceBlock other(3 * kMiB);
  EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{10 * kMiB, 10 * kMiB}));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_EQ(usage_of_module("APP"), (ModuleUsage{4 * kMiB, 10 * kMiB}));
}

TEST_F(MemoryUsage, INFO_13_EachDeviceHasItsOwnEntries) {
  US_FRESH_PROCESS();
  const DeviceBlock on_0(3 * kMiB);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  const DeviceBlock on_1(9 * kMiB);
  for (const int32_t current : {0, 1}) {
    ASSERT_SUCCESS(aclrtSetDevice(current));
    EXPECT_EQ(usage_of_module("APP", 0), (ModuleUsage{4 * kMiB, 4 * kMiB}));
    EXPECT_EQ(usage_of_module("APP", 1), (ModuleUsage{10 * kMiB, 10 * kMiB}));
  }
}

TEST_F(MemoryUsage, INFO_13_RefusedAllocationCountsNowhere) {
  US_FRESH_PROCESS();
  void* none = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMalloc(&none, kTiB, ACL_MEM_MALLOC_HUGE_ONLY));
  EXPECT_EQ(usage_of_module("APP"), ModuleUsage{});
}

class MemoryUsageWithoutIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, MemoryUsageWithoutIt, testing::Values("950", "ipv350"),
                         [](const testing::TestParamInfo<std::string>& parameter) {
                           return test_name_of_product(parameter.param);
                         });

TEST_P(MemoryUsageWithoutIt, INFO_10_INFO_11_ProductLacksTheFunction) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  UsageEntries usage(2);
  size_t count = kUntouchedCount;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemUsageInfo(0, nullptr, 2, &count));
  EXPECT_EQ(count, kUntouchedCount);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtGetMemUsageInfo(0, usage.entries.data(), 2, &count));
  EXPECT_TRUE(usage.untouched());
}

// ---- aclrtGetMemInfo beside aclrtMalloc ----

class MemoryInfoOfProduct : public testing::TestWithParam<AllocationProduct> {};
INSTANTIATE_TEST_SUITE_P(, MemoryInfoOfProduct, each_allocation_product(),
                         name_of_allocation_product);

size_t total_bytes(aclrtMemAttr kind) {
  size_t free = 0;
  size_t total = 0;
  EXPECT_SUCCESS(aclrtGetMemInfo(kind, &free, &total));
  return total;
}

TEST_P(MemoryInfoOfProduct, INFO_05_INFO_09_MallocLowersItsKindAndTheSum) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const size_t huge = free_bytes(ACL_HBM_MEM_HUGE);
  const size_t normal = free_bytes(ACL_HBM_MEM_NORMAL);
  const MemoryFigures before = memory_figures();
  {
    const DeviceBlock huge_block(4 * kMiB - 32, ACL_MEM_MALLOC_HUGE_ONLY);
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge - 4 * kMiB);
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), normal);
    EXPECT_EQ(free_bytes(ACL_HBM_MEM), huge + normal - 4 * kMiB);
    const DeviceBlock normal_block(10000, ACL_MEM_MALLOC_NORMAL_ONLY);
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge - 4 * kMiB);
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), normal - 12 * kKiB);
    EXPECT_EQ(free_bytes(ACL_HBM_MEM), huge + normal - 4 * kMiB - 12 * kKiB);
    EXPECT_EQ(total_bytes(ACL_HBM_MEM), 8 * kGiB);
    if (GetParam().ddr) {
      EXPECT_EQ(free_bytes(ACL_DDR_MEM), huge + normal - 4 * kMiB - 12 * kKiB);
      EXPECT_EQ(free_bytes(ACL_DDR_MEM_HUGE), huge - 4 * kMiB);
      EXPECT_EQ(free_bytes(ACL_DDR_MEM_NORMAL), normal - 12 * kKiB);
    }
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_P(MemoryInfoOfProduct, INFO_08_GiantFigureFollowsTheHugePool) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"},
                   {"UNDERSTUDY_NORMAL_MEMORY", "2G"});
  const ContextSession session;
  const DeviceBlock block(1, ACL_MEM_MALLOC_HUGE_ONLY);
  size_t free = 77;
  size_t total = 77;
  if (!GetParam().giant_pages) {
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtGetMemInfo(ACL_HBM_MEM_HUGE1G, &free, &total));
    EXPECT_EQ(free, 77u);
    EXPECT_EQ(total, 77u);
    return;
  }
  ASSERT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM_HUGE1G, &free, &total));
  EXPECT_EQ(free, 5 * kGiB);  // one huge page broke a giant one
  EXPECT_EQ(total, 6 * kGiB);
  const DeviceBlock giant(kGiB + 1, ACL_MEM_MALLOC_HUGE1G_ONLY);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE1G), 3 * kGiB);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), 4 * kGiB - kHugePage);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), 2 * kGiB);
}

}  // namespace
}  // namespace understudy_test
