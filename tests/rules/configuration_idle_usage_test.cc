// SPDX-License-Identifier: Apache-2.0
//
// The key idle_usage: what a device shows as used before any program has taken memory.
#include <string>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

struct Figures {
  size_t free = 0;
  size_t total = 0;
  friend bool operator==(const Figures&, const Figures&) = default;
};

void PrintTo(const Figures& figures, std::ostream* out) {
  *out << "free " << figures.free << " of " << figures.total;
}

Figures figures_of(aclrtMemAttr attribute) {
  Figures figures;
  EXPECT_SUCCESS(aclrtGetMemInfo(attribute, &figures.free, &figures.total));
  return figures;
}

TEST(IdleUsage, NothingIsUsedUnlessItIsSet) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "16G"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(figures_of(ACL_HBM_MEM), (Figures{16 * kGiB, 16 * kGiB}));
}

TEST(IdleUsage, LowersWhatIsFreeAndNoTotal) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "16G"}, {"UNDERSTUDY_IDLE_USAGE", "3349M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  for (int32_t device = 0; device < static_cast<int32_t>(device_count()); ++device) {
    SCOPED_TRACE(device);
    ASSERT_SUCCESS(aclrtSetDevice(device));
    EXPECT_EQ(figures_of(ACL_HBM_MEM), (Figures{16 * kGiB - 3349 * kMiB, 16 * kGiB}));
    EXPECT_EQ(figures_of(ACL_HBM_MEM_HUGE), (Figures{15 * kGiB - 3348 * kMiB, 15 * kGiB}));
    EXPECT_EQ(figures_of(ACL_HBM_MEM_NORMAL), (Figures{kGiB - kMiB, kGiB}));
    EXPECT_EQ(figures_of(ACL_HBM_MEM_HUGE1G), (Figures{11 * kGiB, 15 * kGiB}));
    EXPECT_SUCCESS(aclrtResetDeviceForce(device));
  }
  int64_t total = 0;
  EXPECT_SUCCESS(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &total));
  EXPECT_EQ(total, static_cast<int64_t>(16 * kGiB));
}

TEST(IdleUsage, IsRoundedUpToPages) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"}, {"UNDERSTUDY_IDLE_USAGE", "1"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(figures_of(ACL_HBM_MEM), (Figures{kGiB - 4 * kKiB, kGiB}));
}

TEST(IdleUsage, EverythingCalledFreeCanBeHadAndNothingMore) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "64M"}, {"UNDERSTUDY_IDLE_USAGE", "10M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), 50 * kMiB);
  const aclrtDrvMemHandle most = create_block(48 * kMiB);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), 2 * kMiB);
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
               aclrtMallocPhysical(&handle, 4 * kMiB, &property, 0));
  EXPECT_EQ(handle, nullptr);
  void* last = nullptr;
  EXPECT_SUCCESS(aclrtMallocAlign32(&last, 2 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), 0u);
  void* more = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
               aclrtMalloc(&more, 2 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY));
  EXPECT_SUCCESS(aclrtFree(last));
  EXPECT_SUCCESS(aclrtFreePhysical(most));
  EXPECT_EQ(figures_of(ACL_HBM_MEM), (Figures{54 * kMiB, 64 * kMiB}));
}

TEST(IdleUsage, IsNamedWhereMemoryRunsOut) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "64M"}, {"UNDERSTUDY_IDLE_USAGE", "10M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtDrvMemHandle held = create_block(8 * kMiB);
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_EQ(aclrtMallocPhysical(&handle, 44 * kMiB, &property, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
  const std::string text = recent_error();
  EXPECT_NE(text.find("42 MiB of 60 MiB in huge pages left, and 10 MiB are in use when it is idle; "
                      "this process holds the most, 8 MiB"),
            std::string::npos)
      << text;
  EXPECT_SUCCESS(aclrtFreePhysical(held));
}

// Modules are parts of programs, and the device's own system is none.
TEST(IdleUsage, IsNoModulesUsage) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "64M"}, {"UNDERSTUDY_IDLE_USAGE", "10M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  aclrtMemUsageInfo entry{};
  size_t modules = 77;
  EXPECT_SUCCESS(aclrtGetMemUsageInfo(0, &entry, 1, &modules));
  EXPECT_EQ(modules, 0u);
}

TEST(IdleUsage, OfASliceIsMeasuredByTheSlice) {
  US_FRESH_PROCESS({"UNDERSTUDY_SLICE", "vir05_1c_16g"}, {"UNDERSTUDY_IDLE_USAGE", "20G"});
  uint32_t count = 0;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceCount(&count));
}

TEST(IdleUsage, TheSentenceOfTooMuchNamesTheMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"}, {"UNDERSTUDY_IDLE_USAGE", "1G"});
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(recent_error(),
            "aclInit: configuration key idle_usage has the value \"1G\" (memory is 1 GiB); "
            "allowed: 0, or a size below that of memory, such as 3G\n");
}

}  // namespace
}  // namespace understudy_test::runtime
