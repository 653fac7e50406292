// SPDX-License-Identifier: Apache-2.0
//
// What holds for every virtual memory call: outputs after a failure, no need of aclInit or of a
// device, and the sequence of the documentation.
// Covers: VGEN-01, VGEN-02, VGEN-08, VGEN-11.
#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using VirtualMemory = DeviceTest;

TEST_F(VirtualMemory, VGEN_01_FailedAllocationLeavesTheHandle) {
  aclrtPhysicalMemProp reserve_field = block_property();
  reserve_field.reserve = 1;
  // One failure of each stage: outer layer, inner layer, feature, state, resources.
  expect_block_refused(ACL_ERROR_INVALID_PARAM, 0, block_property());
  expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage, reserve_field);
  expect_block_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kHugePage,
                       block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, 1));
  expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage + 1, block_property());
  expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, size_t{1} << 60, block_property());
}

TEST_F(VirtualMemory, VGEN_01_FailedReservationLeavesTheAddress) {
  expect_reserve_refused(ACL_ERROR_INVALID_PARAM, 0, 0, nullptr, 0);
  expect_reserve_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage, 1, nullptr, 0);
  expect_reserve_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage, 0, address(kHugePage), 0);
  expect_reserve_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, size_t{1} << 60, 0, nullptr, 0);

  void* range = untouched();
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtReserveMemAddressNoUCMemory(&range, kGiB, 0, address(kNoUcWindowStart), 0));
  EXPECT_EQ(range, untouched());
}

TEST_F(VirtualMemory, VGEN_01_FailedQueriesLeaveTheirOutputs) {
  const MappedBlock mapped;
  void* inside = at(mapped.start(), kHugePage / 2);

  size_t granularity = kUntouchedSize;
  aclrtPhysicalMemProp property = block_property(ACL_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_HOST);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                                &granularity));
  EXPECT_EQ(granularity, kUntouchedSize);

  uint64_t flag = kUntouchedSize;
  aclrtMemLocation location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemGetAccess(inside, &location, &flag));
  EXPECT_EQ(flag, kUntouchedSize);

  aclrtDrvMemHandle handle = untouched();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemRetainAllocationHandle(inside, &handle));
  EXPECT_EQ(handle, untouched());

  const aclrtPhysicalMemProp before =
      block_property(ACL_DDR_MEM_P2P_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA, 77);
  property = before;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemGetAllocationPropertiesFromHandle(untouched(), &property));
  EXPECT_TRUE(same_property(property, before));
}

TEST_F(VirtualMemory, VGEN_01_FailedRangeQueryLeavesTheSize) {
  const Range empty(kHugePage);
  size_t size = kUntouchedSize;
  void* base = untouched();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemGetAddressRange(nullptr, &base, &size));
  EXPECT_EQ(base, untouched());
  EXPECT_EQ(size, kUntouchedSize);
  // What happens to the base of a failed look-up is RANGE-09.
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemGetAddressRange(empty.start(), &base, &size));
  EXPECT_EQ(size, kUntouchedSize);
}

// ---- Every call, on a product that has them all ----

void use_blocks_and_properties() {
  aclrtPhysicalMemProp property = block_property();
  size_t granularity = 0;
  EXPECT_SUCCESS(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                                  &granularity));
  aclrtPhysicalMemProp numa = block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA);
  EXPECT_SUCCESS(
      aclrtMemGetAllocationGranularity(&numa, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity));
  const Block host(kHugePage, block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST));
  const Block device(kHugePage, property);
  EXPECT_SUCCESS(aclrtMemGetAllocationPropertiesFromHandle(device.handle(), &property));
}

void use_mappings() {
  const MappedBlock mapped;
  void* base = nullptr;
  size_t size = 0;
  EXPECT_SUCCESS(aclrtMemGetAddressRange(mapped.start(), &base, &size));
  EXPECT_EQ(base, mapped.start());
  EXPECT_EQ(size, kHugePage);

  aclrtDrvMemHandle retained = nullptr;
  EXPECT_SUCCESS(aclrtMemRetainAllocationHandle(mapped.start(), &retained));
  EXPECT_SUCCESS(aclrtFreePhysical(retained));

  const Range second_place(kHugePage);
  EXPECT_SUCCESS(aclrtMemMapSelectedLink(second_place.start(), kHugePage, mapped.start(),
                                         ACL_RT_MEM_LINK_IDX_0));
  EXPECT_SUCCESS(aclrtUnmapMem(second_place.start()));
}

void use_access() {
  const Block block;
  const Range range(kHugePage);
  aclrtMemAccessDesc owner = {};
  owner.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  owner.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  uint64_t flag = 0;
  EXPECT_SUCCESS(aclrtMemMapNoAccess(range.start(), kHugePage, 0, block.handle(), 0));
  EXPECT_SUCCESS(aclrtMemSetAccess(range.start(), kHugePage, &owner, 1));
  EXPECT_SUCCESS(aclrtMemGetAccess(range.start(), &owner.location, &flag));
  EXPECT_EQ(flag, static_cast<uint64_t>(ACL_RT_MEM_ACCESS_FLAGS_READWRITE));
  EXPECT_SUCCESS(aclrtUnmapMem(range.start()));
}

void use_wished_addresses() {
  const uint64_t wish = find_free_start(kGiB);
  if (wish != 0) {
    const Range range(kGiB, 0, address(wish));
  }
  const uint64_t no_uc_wish = find_free_no_uc_start(kGiB);
  if (no_uc_wish != 0) {
    void* range = nullptr;
    EXPECT_SUCCESS(aclrtReserveMemAddressNoUCMemory(&range, kGiB, 0, address(no_uc_wish), 0));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  }
}

void expect_every_call_works() {
  use_blocks_and_properties();
  use_mappings();
  use_access();
  use_wished_addresses();
}

void expect_no_context() {
  int32_t device = -1;
  EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
}

TEST(VirtualMemoryUnprepared, VGEN_02_VGEN_08_EveryCallWorksWithoutInitAndWithoutDevice) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  expect_no_context();
  expect_every_call_works();
  expect_no_context();
}

TEST(VirtualMemoryUnprepared, VGEN_02_EveryCallWorksAfterFinalize) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
  expect_every_call_works();
}

// Calls that fail, fail for their own reason.
TEST(VirtualMemoryUnprepared, VGEN_02_FailuresBeforeInitAreNotAboutInit) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  aclrtMemLocation location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  aclrtMemAccessDesc grant = {};
  grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  grant.location = location;
  uint64_t flag = 0;
  aclrtDrvMemHandle handle = nullptr;
  aclrtPhysicalMemProp property = block_property();
  void* const nowhere = address(kWindowStart + 3 * kGiB);

  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(untouched()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(nowhere));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(nowhere));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMapMem(nowhere, kHugePage, 0, untouched(), 0));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemMapNoAccess(nowhere, kHugePage, 0, untouched(), 0));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemSetAccess(nowhere, kHugePage, &grant, 1));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemGetAccess(nowhere, &location, &flag));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemRetainAllocationHandle(nowhere, &handle));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemGetAllocationPropertiesFromHandle(untouched(), &property));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemMapSelectedLink(nowhere, kHugePage, at(nowhere, kGiB), 0));
}

TEST_F(VirtualMemory, VGEN_08_OnlyHostNumaAllocationNeedsAContext) {
  on_bare_thread([] {
    expect_no_context();
    use_blocks_and_properties();
    const MappedBlock mapped;
    use_access();
    expect_block_refused(ACL_ERROR_RT_CONTEXT_NULL, kHugePage,
                         block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA));
    expect_no_context();
  });
}

// ---- The documented sequence ----

enum class LastSteps { kFreeThenRelease, kReleaseThenFree };

void run_documented_sequence(LastSteps last_steps) {
  const FiguresStay watch;
  void* range = nullptr;
  ASSERT_SUCCESS(aclrtReserveMemAddress(&range, kHugePage, 0, nullptr, 0));
  aclrtDrvMemHandle handle = nullptr;
  const aclrtPhysicalMemProp property = block_property();
  ASSERT_SUCCESS(aclrtMallocPhysical(&handle, kHugePage, &property, 0));
  ASSERT_SUCCESS(aclrtMapMem(range, kHugePage, 0, handle, 0));
  expect_usable(range);
  ASSERT_SUCCESS(aclrtUnmapMem(range));
  if (last_steps == LastSteps::kFreeThenRelease) {
    ASSERT_SUCCESS(aclrtFreePhysical(handle));
    ASSERT_SUCCESS(aclrtReleaseMemAddress(range));
  } else {
    ASSERT_SUCCESS(aclrtReleaseMemAddress(range));
    ASSERT_SUCCESS(aclrtFreePhysical(handle));
  }
}

TEST_F(VirtualMemory, VGEN_11_EveryStepSucceeds) {
  for (int round = 0; round < 3; ++round) run_documented_sequence(LastSteps::kFreeThenRelease);
}

TEST_F(VirtualMemory, VGEN_11_LastTwoStepsMayBeSwapped) {
  for (int round = 0; round < 3; ++round) run_documented_sequence(LastSteps::kReleaseThenFree);
}

}  // namespace
}  // namespace understudy_test::vmm
