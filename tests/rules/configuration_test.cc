// SPDX-License-Identifier: Apache-2.0
//
// The configuration keys (DESIGN, section 8) as variables: every good value is taken, every wrong
// one is refused by the first call that needs it. Configuration is read once per process.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

std::string variable_of(std::string key) {
  std::transform(key.begin(), key.end(), key.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return "UNDERSTUDY_" + key;
}

// A text may name a key by its own spelling or by its variable's.
bool names_key(const std::string& text, const std::string& key) {
  return text.find(key) != std::string::npos || text.find(variable_of(key)) != std::string::npos;
}

// A key, a value for it and the values that a refusal must offer instead.
struct Setting {
  std::string name;
  std::string key;
  std::string value;
  std::vector<std::string> allowed = {};
};
std::ostream& operator<<(std::ostream& stream, const Setting& setting) {
  return stream << setting.name;
}

void expect_refusal(aclError code, const char* function, const Setting& setting) {
  const std::string text = recent_error();
  EXPECT_EQ(code, ACL_ERROR_INVALID_PARAM);
  EXPECT_NE(text.find(function), std::string::npos) << text;
  EXPECT_TRUE(names_key(text, setting.key)) << text;
  EXPECT_NE(text.find(setting.value), std::string::npos) << text;
  for (const std::string& allowed : setting.allowed) {
    EXPECT_NE(text.find(allowed), std::string::npos) << allowed << " is not offered: " << text;
  }
}

class WrongValue : public testing::TestWithParam<Setting> {};

TEST_P(WrongValue, IsRefusedByInit) {
  US_FRESH_PROCESS({variable_of(GetParam().key), GetParam().value});
  expect_refusal(aclInit(nullptr), "aclInit", GetParam());
  expect_refusal(aclInit(nullptr), "aclInit", GetParam());
  EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalize());
}

TEST_P(WrongValue, IsRefusedByTheFirstCallWithoutInit) {
  US_FRESH_PROCESS({variable_of(GetParam().key), GetParam().value});
  uint32_t count = 77;
  expect_refusal(aclrtGetDeviceCount(&count), "aclrtGetDeviceCount", GetParam());
  EXPECT_EQ(count, 77u);
}

TEST_P(WrongValue, CrashesNoOtherCall) {
  US_FRESH_PROCESS({variable_of(GetParam().key), GetParam().value});
  expect_refusal(aclrtSetDevice(0), "aclrtSetDevice", GetParam());
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_NE(aclrtMallocPhysical(&handle, kBlockSize, &property, 0), ACL_SUCCESS);
  EXPECT_EQ(handle, nullptr);
  aclrtContext context = nullptr;
  EXPECT_NE(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  EXPECT_NE(aclrtSynchronizeDevice(), ACL_SUCCESS);
  size_t free = 0;
  size_t total = 0;
  EXPECT_NE(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetSocName(), nullptr);
  (void)aclrtResetDeviceForce(0);
  (void)aclFinalize();
}

const std::vector<Setting> kWrongValues = {
    {"product", "product", "a4", {"a2", "a3", "inf", "trn", "200i", "200i-rc", "950", "ipv350"}},
    {"soc_of_another_family", "soc", "Ascend310P3", {"Ascend910B1", "Ascend910B4-1"}},
    {"soc_with_the_legacy_name", "soc", "Ascend910B", {"Ascend910B1", "Ascend910B4-1"}},
    {"devices_zero", "devices", "0", {"1"}},
    {"devices_negative", "devices", "-1", {"1"}},
    {"devices_word", "devices", "eight", {"1"}},
    {"devices_with_rest", "devices", "8x", {"1"}},
    {"devices_overflowing", "devices", "99999999999999999999", {"1"}},
    {"memory_zero", "memory", "0", {"64G"}},
    {"memory_negative", "memory", "-1G", {"64G"}},
    {"memory_unknown_unit", "memory", "64Q", {"64G"}},
    {"memory_word", "memory", "lots", {"64G"}},
    {"memory_overflowing", "memory", "99999999999999999999G", {"64G"}},
    {"memory_overflowing_by_its_unit", "memory", "99999999999G", {"64G"}},
    {"normal_memory_word", "normal_memory", "lots", {"1/16"}},
    {"normal_memory_above_memory", "normal_memory", "65G"},
    {"normal_memory_above_one", "normal_memory", "3/2"},
    {"normal_memory_divided_by_zero", "normal_memory", "1/0"},
    {"idle_usage_word", "idle_usage", "some", {"0", "3G"}},
    {"idle_usage_negative", "idle_usage", "-1G", {"0", "3G"}},
    {"idle_usage_of_all_memory", "idle_usage", "64G", {"below", "memory"}},
    {"idle_usage_above_memory", "idle_usage", "16T", {"below", "memory"}},
    {"idle_usage_overflowing", "idle_usage", "99999999999G", {"below", "memory"}},
    {"slice_unknown", "slice", "half", {"none", "vir05_1c_16g", "vir10_3c_32g"}},
    {"slice_of_another_soc", "slice", "vir12_3c_32g", {"none", "vir05_1c_16g", "vir10_3c_32g"}},
    {"driver_unknown", "driver", "1.0", {"newest", "26.0.RC1", "25.5.0"}},
    {"driver_in_small_letters", "driver", "26.0.rc1", {"newest", "26.0.RC1", "25.5.0"}},
    {"size_alignment", "size_alignment", "maybe", {"reject", "round_up"}},
    {"attr_set", "attr_set", "maybe", {"full", "legacy"}},
    {"reserve_flag", "reserve_flag", "maybe", {"ignore", "match"}},
    {"expect_ptr", "expect_ptr", "maybe", {"hint", "null_only"}},
    {"device_binding", "device_binding", "maybe", {"while_mapped", "for_life"}},
    {"sync_d2d", "sync_d2d", "maybe", {"reject", "allow"}},
    {"host_access", "host_access", "maybe", {"deny", "allow"}},
    {"host_lock", "host_lock", "maybe", {"best_effort", "strict"}},
    {"backing", "backing", "tape", {"auto", "hugetlb", "thp", "small"}},
    {"commit", "commit", "maybe", {"lazy", "eager"}},
    {"host_budget", "host_budget", "some", {"auto", "none"}},
    {"poison", "poison", "maybe", {"off", "on"}},
    {"host_p2p_memory", "host_p2p_memory", "auto", {"none", "8G"}},
    {"host_p2p_memory_above_the_most", "host_p2p_memory", "17T", {"none", "16T"}},
    {"features_unknown",
     "features",
     "+warp_drive",
     {"retain_handle", "map_no_access", "p2p_huge1g", "host_p2p_huge1g"}},
    {"features_without_sign", "features", "retain_handle"},
};

INSTANTIATE_TEST_SUITE_P(Configuration, WrongValue, testing::ValuesIn(kWrongValues),
                         case_name<Setting>);

class GoodValue : public testing::TestWithParam<Setting> {};

TEST_P(GoodValue, IsTaken) {
  US_FRESH_PROCESS({variable_of(GetParam().key), GetParam().value});
  EXPECT_SUCCESS(aclInit(nullptr));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MappedBlock block = map_new_block();
  copy_in(block.address, pattern(64 * kKiB));
  EXPECT_EQ(copy_out(block.address, 64 * kKiB), pattern(64 * kKiB));
  drop(block);
  EXPECT_SUCCESS(aclFinalize());
}

// `hugetlb` is left out: without a pool of huge pages it is an error.
const std::vector<Setting> kGoodValues = {
    {"product_a2", "product", "a2"},
    {"product_a3", "product", "a3"},
    {"product_inf", "product", "inf"},
    {"product_trn", "product", "trn"},
    {"product_200i", "product", "200i"},
    {"product_950", "product", "950"},
    {"soc", "soc", "Ascend910B1"},
    {"devices_one", "devices", "1"},
    {"devices_many", "devices", "16"},
    {"memory", "memory", "512M"},
    {"normal_memory_size", "normal_memory", "1G"},
    {"normal_memory_part", "normal_memory", "1/16"},
    {"idle_usage_none", "idle_usage", "0"},
    {"idle_usage_size", "idle_usage", "3349M"},
    {"idle_usage_almost_all", "idle_usage", "59G"},
    {"slice_none", "slice", "none"},
    {"slice", "slice", "vir05_1c_16g"},
    {"driver_newest", "driver", "newest"},
    {"driver_by_name", "driver", "26.0.RC1"},
    {"driver_older", "driver", "25.0.RC1"},
    {"size_alignment_reject", "size_alignment", "reject"},
    {"size_alignment_round_up", "size_alignment", "round_up"},
    {"attr_set_full", "attr_set", "full"},
    {"attr_set_legacy", "attr_set", "legacy"},
    {"reserve_flag_ignore", "reserve_flag", "ignore"},
    {"expect_ptr_hint", "expect_ptr", "hint"},
    {"expect_ptr_null_only", "expect_ptr", "null_only"},
    {"device_binding_while_mapped", "device_binding", "while_mapped"},
    {"device_binding_for_life", "device_binding", "for_life"},
    {"sync_d2d_reject", "sync_d2d", "reject"},
    {"sync_d2d_allow", "sync_d2d", "allow"},
    {"host_access_deny", "host_access", "deny"},
    {"host_access_allow", "host_access", "allow"},
    {"host_lock_best_effort", "host_lock", "best_effort"},
    {"host_lock_strict", "host_lock", "strict"},
    {"backing_auto", "backing", "auto"},
    {"backing_thp", "backing", "thp"},
    {"backing_small", "backing", "small"},
    {"commit_lazy", "commit", "lazy"},
    {"commit_eager", "commit", "eager"},
    {"host_budget_auto", "host_budget", "auto"},
    {"host_budget_size", "host_budget", "1G"},
    {"host_budget_none", "host_budget", "none"},
    {"host_p2p_memory_size", "host_p2p_memory", "1G"},
    {"host_p2p_memory_most", "host_p2p_memory", "16T"},
    {"host_p2p_memory_none", "host_p2p_memory", "none"},
    {"poison_off", "poison", "off"},
    {"poison_on", "poison", "on"},
    {"features_minus", "features", "-retain_handle"},
    {"features_list", "features", "-retain_handle,-map_no_access,+p2p_huge1g"},
};

INSTANTIATE_TEST_SUITE_P(Configuration, GoodValue, testing::ValuesIn(kGoodValues),
                         case_name<Setting>);

TEST(Configuration, SizeAlignmentRoundUpTakesOddSizes) {
  US_FRESH_PROCESS({"UNDERSTUDY_SIZE_ALIGNMENT", "round_up"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const size_t before = free_bytes();
  const aclrtDrvMemHandle block = create_block(3 * kMiB);
  EXPECT_EQ(free_bytes(), before - 4 * kMiB);
  EXPECT_SUCCESS(aclrtFreePhysical(block));
}

TEST(Configuration, AttrSetLegacyKnowsTwoAttributes) {
  US_FRESH_PROCESS({"UNDERSTUDY_ATTR_SET", "legacy"});
  const aclrtPhysicalMemProp property = block_property(ACL_MEM_HUGE);
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocPhysical(&handle, kBlockSize, &property, 0));
  EXPECT_SUCCESS(aclrtFreePhysical(create_block(kBlockSize, block_property(ACL_HBM_MEM_NORMAL))));
}

TEST(Configuration, ReserveFlagMatchTellsPageTypesApart) {
  US_FRESH_PROCESS({"UNDERSTUDY_RESERVE_FLAG", "match"});
  const aclrtDrvMemHandle block = create_block(kBlockSize);
  void* common = reserve(kBlockSize, 0);
  void* huge = reserve(kBlockSize, 1);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMapMem(common, kBlockSize, 0, block, 0));
  EXPECT_SUCCESS(aclrtMapMem(huge, kBlockSize, 0, block, 0));
  EXPECT_SUCCESS(aclrtUnmapMem(huge));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(common));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(huge));
}

TEST(Configuration, ExpectPtrNullOnlyTakesNoWish) {
  US_FRESH_PROCESS({"UNDERSTUDY_EXPECT_PTR", "null_only"});
  void* range = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtReserveMemAddress(&range, kBlockSize, 0, address(20 * kTiB), 0));
  EXPECT_EQ(range, nullptr);
}

TEST(Configuration, DeviceBindingForLifeRemembersTheFirstDevice) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICE_BINDING", "for_life"});
  const MappedBlock block = map_new_block(0);
  EXPECT_SUCCESS(aclrtUnmapMem(block.address));
  const aclrtDrvMemHandle other =
      create_block(kBlockSize, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMapMem(block.address, kBlockSize, 0, other, 0));
  EXPECT_SUCCESS(aclrtMapMem(block.address, kBlockSize, 0, block.handle, 0));
  EXPECT_SUCCESS(aclrtFreePhysical(other));
  drop(block);
}

TEST(Configuration, HostAccessAllowMapsDeviceMemoryForTheCpu) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_ACCESS", "allow"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MappedBlock block = map_new_block();
  copy_in(block.address, pattern(4 * kKiB));
  EXPECT_TRUE(cpu_can_write(block.address));
  EXPECT_EQ(memcmp(block.address, pattern(4 * kKiB).data(), 4 * kKiB), 0);
  drop(block);
}

TEST(Configuration, HostAccessIsDeniedByDefault) {
  US_FRESH_PROCESS();
  const MappedBlock block = map_new_block();
  EXPECT_FALSE(cpu_can_read(block.address));
  EXPECT_FALSE(cpu_can_write(block.address));
  drop(block);
}

TEST(Configuration, PoisonFillsFreshMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_POISON", "on"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MappedBlock block = map_new_block();
  EXPECT_NE(copy_out(block.address, 4 * kKiB), std::vector<uint8_t>(4 * kKiB, 0));
  drop(block);
}

TEST(Configuration, HostBudgetStopsCommitsWithAnErrorCode) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "16M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MappedBlock block = map_new_block(0, 64 * kMiB);
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
               aclrtMemset(block.address, block.size, 1, block.size));
  drop(block);
}

TEST(Configuration, EagerCommitMeetsTheHostBudgetAtCreation) {
  US_FRESH_PROCESS({"UNDERSTUDY_COMMIT", "eager"}, {"UNDERSTUDY_HOST_BUDGET", "16M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MemoryFigures before = memory_figures();
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
               aclrtMallocPhysical(&handle, 64 * kMiB, &property, 0));
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(memory_figures(), before);
}

}  // namespace
}  // namespace understudy_test::runtime
