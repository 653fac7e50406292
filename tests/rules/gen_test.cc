// SPDX-License-Identifier: Apache-2.0
//
// Rules common to all memory functions, seen on those of this chapter: what a refused call leaves
// behind, which code stands for what, and that no stale or invented object crashes the process.
// Covers: GEN-01, GEN-02, GEN-03, GEN-07, GEN-08, GEN-09.
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using GeneralRules = DeviceTest;

// Everything these calls may write to, filled with a mark that no answer has.
struct Outputs {
  aclrtDrvMemHandle handle;
  void* range;
  size_t first_size;
  size_t second_size;
  uint64_t flag;
  aclrtPhysicalMemProp property;
  aclrtPtrAttributes attributes;
  std::array<uint8_t, 64> bytes;

  Outputs() { memset(static_cast<void*>(this), 0x5a, sizeof *this); }
  bool untouched() const {
    const Outputs fresh;
    return memcmp(static_cast<const void*>(this), static_cast<const void*>(&fresh), sizeof *this) ==
           0;
  }
};

struct Refusal {
  const char* call;  // begins with the function's name
  aclError code;
  std::function<aclError()> run;
};

#define US_REFUSAL(code, ...)                                   \
  Refusal {                                                     \
#__VA_ARGS__, (code), [=]() mutable { return __VA_ARGS__; } \
  }

// Calls that fail an outer check. `mapping` is a live one-granule mapping.
std::vector<Refusal> outer_refusals(const LiveMapping& mapping, Outputs* out) {
  void* const data = mapping.data();
  const aclrtDrvMemHandle handle = mapping.handle();
  aclrtPhysicalMemProp good = block_property();
  aclrtPhysicalMemProp ddr_on_device = block_property(ACL_DDR_MEM_HUGE);
  aclrtMemLocation location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  const auto minimum = ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM;
  constexpr aclError kOuter = ACL_ERROR_INVALID_PARAM;
  return {
      US_REFUSAL(kOuter, aclrtMallocPhysical(nullptr, kGranule, &good, 0)),
      US_REFUSAL(kOuter, aclrtMallocPhysical(&out->handle, 0, &good, 0)),
      US_REFUSAL(kOuter, aclrtMallocPhysical(&out->handle, kGranule, nullptr, 0)),
      US_REFUSAL(kOuter, aclrtMallocPhysical(&out->handle, kGranule, &good, 1)),
      US_REFUSAL(kOuter, aclrtMallocPhysical(&out->handle, kGranule, &ddr_on_device, 0)),
      US_REFUSAL(kOuter, aclrtFreePhysical(nullptr)),
      US_REFUSAL(kOuter, aclrtReserveMemAddress(nullptr, kGranule, 0, nullptr, 0)),
      US_REFUSAL(kOuter, aclrtReserveMemAddress(&out->range, 0, 0, nullptr, 0)),
      US_REFUSAL(kOuter, aclrtReserveMemAddress(&out->range, kGranule, 0, nullptr, 2)),
      US_REFUSAL(kOuter, aclrtReserveMemAddressNoUCMemory(&out->range, 0, 0, data, 0)),
      US_REFUSAL(kOuter, aclrtReleaseMemAddress(nullptr)),
      US_REFUSAL(kOuter, aclrtMapMem(nullptr, kGranule, 0, handle, 0)),
      US_REFUSAL(kOuter, aclrtMapMem(data, kGranule, 0, nullptr, 0)),
      US_REFUSAL(kOuter, aclrtMapMem(data, 0, 0, handle, 0)),
      US_REFUSAL(kOuter, aclrtMemMapNoAccess(data, kGranule, 0, handle, 1)),
      US_REFUSAL(kOuter, aclrtUnmapMem(nullptr)),
      US_REFUSAL(kOuter, aclrtMemGetAllocationGranularity(nullptr, minimum, &out->first_size)),
      US_REFUSAL(kOuter,
                 aclrtMemGetAllocationGranularity(&ddr_on_device, minimum, &out->first_size)),
      US_REFUSAL(kOuter, aclrtMemGetAccess(nullptr, &location, &out->flag)),
      US_REFUSAL(kOuter, aclrtMemGetAccess(data, nullptr, &out->flag)),
      US_REFUSAL(kOuter, aclrtMemRetainAllocationHandle(nullptr, &out->handle)),
      US_REFUSAL(kOuter, aclrtMemGetAllocationPropertiesFromHandle(nullptr, &out->property)),
      US_REFUSAL(kOuter, aclrtMemGetAddressRange(nullptr, &out->range, &out->first_size)),
      US_REFUSAL(kOuter, aclrtMemMapSelectedLink(nullptr, kGranule, data, 0)),
      US_REFUSAL(kOuter, aclrtMemMapSetLink(nullptr, ACL_RT_MEM_ACCESS_LINK_SIO)),
      US_REFUSAL(kOuter, aclrtGetMemInfo(ACL_HBM_MEM, &out->first_size, nullptr)),
      US_REFUSAL(kOuter, aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &out->second_size)),
      US_REFUSAL(kOuter, aclrtPointerGetAttributes(nullptr, &out->attributes)),
      US_REFUSAL(kOuter, aclrtMemcpy(nullptr, 8, data, 8, ACL_MEMCPY_DEVICE_TO_HOST)),
      US_REFUSAL(kOuter, aclrtMemcpy(out->bytes.data(), 8, nullptr, 8, ACL_MEMCPY_DEVICE_TO_HOST)),
      US_REFUSAL(kOuter,
                 aclrtMemcpy(out->bytes.data(), 8, data, 8, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE)),
      US_REFUSAL(kOuter, aclrtMemset(nullptr, 8, 1, 8)),
  };
}

// Calls that pass the outer checks and fail later; none of them because memory is short.
std::vector<Refusal> inner_refusals(const LiveMapping& mapping, Outputs* out) {
  void* const data = mapping.data();
  void* const inside = mapping.at(kPage);
  const aclrtDrvMemHandle handle = mapping.handle();
  const auto never_a_handle = static_cast<aclrtDrvMemHandle>(mapping.data());
  aclrtPhysicalMemProp good = block_property();
  aclrtPhysicalMemProp no_device =
      block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 99);
  aclrtPhysicalMemProp host_giant =
      block_property(ACL_HBM_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_HOST, 0);
  aclrtMemLocation location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  aclrtMemAccessDesc grant;
  memset(&grant, 0, sizeof grant);
  grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  grant.location = location;
  const auto minimum = ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM;
  const auto no_such_kind = enum_value<aclrtMemAttr>(99);
  constexpr aclError kInner = ACL_ERROR_RT_PARAM_INVALID;
  constexpr aclError kUnsupported = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  return {
      US_REFUSAL(kInner, aclrtMallocPhysical(&out->handle, kGranule + 1, &good, 0)),
      US_REFUSAL(ACL_ERROR_RT_INVALID_DEVICEID,
                 aclrtMallocPhysical(&out->handle, kGranule, &no_device, 0)),
      US_REFUSAL(kUnsupported, aclrtMallocPhysical(&out->handle, kGiB, &host_giant, 0)),
      US_REFUSAL(kInner, aclrtFreePhysical(never_a_handle)),
      US_REFUSAL(kInner, aclrtReserveMemAddress(&out->range, kGranule, kGranule, nullptr, 0)),
      US_REFUSAL(kInner, aclrtReserveMemAddress(&out->range, kGranule, 0, data, 0)),
      US_REFUSAL(kUnsupported, aclrtReserveMemAddressNoUCMemory(&out->range, kGiB, 0, nullptr, 0)),
      US_REFUSAL(kInner, aclrtReleaseMemAddress(data)),
      US_REFUSAL(kInner, aclrtReleaseMemAddress(inside)),
      US_REFUSAL(kInner, aclrtMapMem(data, kGranule, 0, handle, 0)),
      US_REFUSAL(kInner, aclrtMapMem(data, kGranule, 0, never_a_handle, 0)),
      US_REFUSAL(kInner, aclrtMemMapNoAccess(data, kGranule, 1, handle, 0)),
      US_REFUSAL(kInner, aclrtUnmapMem(inside)),
      US_REFUSAL(ACL_ERROR_RT_INVALID_DEVICEID,
                 aclrtMemGetAllocationGranularity(&no_device, minimum, &out->first_size)),
      US_REFUSAL(kInner, aclrtMemSetAccess(inside, kGranule, &grant, 1)),
      US_REFUSAL(kInner, aclrtMemSetAccess(data, kGranule, nullptr, 1)),
      US_REFUSAL(kInner, aclrtMemGetAccess(inside, &location, &out->flag)),
      US_REFUSAL(kInner, aclrtMemRetainAllocationHandle(inside, &out->handle)),
      US_REFUSAL(kInner, aclrtMemGetAllocationPropertiesFromHandle(never_a_handle, &out->property)),
      US_REFUSAL(kInner, aclrtMemGetAddressRange(data, nullptr, nullptr)),
      US_REFUSAL(kUnsupported, aclrtMemMapSelectedLink(data, kGranule, data, 0)),
      US_REFUSAL(ACL_ERROR_RT_INVALID_MEMORY_TYPE,
                 aclrtGetMemInfo(no_such_kind, &out->first_size, &out->second_size)),
      US_REFUSAL(kInner, aclrtMemcpy(out->bytes.data(), 8, data, 9, ACL_MEMCPY_DEVICE_TO_HOST)),
      US_REFUSAL(kInner, aclrtMemset(data, 8, 1, 9)),
  };
}

void expect_refused(const Refusal& refusal) {
  (void)recent_error();
  EXPECT_TRUE(fails_with(refusal.code, refusal.run(), refusal.call));
}

TEST_F(GeneralRules, GEN_01_OuterRefusalChangesNothing) {
  const Bystander bystander;
  Outputs outputs;
  for (const Refusal& refusal : outer_refusals(bystander.mapping(), &outputs)) {
    SCOPED_TRACE(refusal.call);
    expect_refused(refusal);
    EXPECT_TRUE(outputs.untouched());
    bystander.expect_unchanged();
  }
}

TEST_F(GeneralRules, GEN_02_OuterRefusalKeepsTheLastErrorAndInnerOneSetsIt) {
  const LiveMapping mapping;
  Outputs outputs;
  const std::vector<Refusal> outer = outer_refusals(mapping, &outputs);
  for (const Refusal& inner : inner_refusals(mapping, &outputs)) {
    SCOPED_TRACE(inner.call);
    (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    ASSERT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
    expect_refused(inner);
    EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), inner.code);
    for (const Refusal& refusal : outer) {
      SCOPED_TRACE(refusal.call);
      expect_refused(refusal);
      EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), inner.code);
    }
  }
  EXPECT_NE(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
}

TEST_F(GeneralRules, GEN_02_OuterRefusalDoesNotSetALastErrorEither) {
  const LiveMapping mapping;
  Outputs outputs;
  (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  for (const Refusal& refusal : outer_refusals(mapping, &outputs)) {
    SCOPED_TRACE(refusal.call);
    expect_refused(refusal);
    EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  }
}

TEST_F(GeneralRules, GEN_03_FunctionsThatNeedAContextSaySo) {
  const Bystander bystander;
  void* const data = bystander.mapping().data();
  on_bare_thread([data] {
    Outputs outputs;
    Outputs* const out = &outputs;
    aclrtPhysicalMemProp numa = block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    int32_t device = 77;
    int32_t* const device_out = &device;
    aclrtStream stream = out->range;
    aclrtStream* const stream_out = &stream;
    constexpr aclError kNoContext = ACL_ERROR_RT_CONTEXT_NULL;
    const std::vector<Refusal> refusals = {
        US_REFUSAL(kNoContext, aclrtGetMemInfo(ACL_HBM_MEM, &out->first_size, &out->second_size)),
        US_REFUSAL(kNoContext, aclrtMallocPhysical(&out->handle, kGranule, &numa, 0)),
        US_REFUSAL(kNoContext,
                   aclrtMemcpy(out->bytes.data(), 8, data, 8, ACL_MEMCPY_DEVICE_TO_HOST)),
        US_REFUSAL(kNoContext,
                   aclrtMemcpy(data, 8, out->bytes.data(), 8, ACL_MEMCPY_HOST_TO_DEVICE)),
        US_REFUSAL(kNoContext, aclrtGetDevice(device_out)),
        US_REFUSAL(kNoContext, aclrtSynchronizeDevice()),
        US_REFUSAL(kNoContext, aclrtDeviceEnablePeerAccess(1, 0)),
        US_REFUSAL(kNoContext, aclrtDeviceDisablePeerAccess(1)),
        US_REFUSAL(kNoContext, aclrtCtxGetCurrentDefaultStream(stream_out)),
    };
    for (const Refusal& refusal : refusals) {
      SCOPED_TRACE(refusal.call);
      expect_refused(refusal);
      EXPECT_TRUE(outputs.untouched());
    }
    EXPECT_EQ(device, 77);
    EXPECT_EQ(stream, out->range);
  });
  bystander.expect_unchanged();
}

TEST_F(GeneralRules, GEN_07_OutOfMemoryMeansExhaustedMemoryOfThatKind) {
  const MemoryFigures before = memory_figures();
  const struct {
    aclrtMemAttr attribute;
    aclrtMemAttr kind;
    size_t granularity;
  } kinds[] = {{ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE, kGranule},
               {ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_HUGE, kGranule},
               {ACL_MEM_P2P_HUGE, ACL_HBM_MEM_HUGE, kGranule},
               {ACL_MEM_NORMAL, ACL_HBM_MEM_NORMAL, kGranule},
               {ACL_MEM_P2P_NORMAL, ACL_HBM_MEM_NORMAL, kGranule},
               {ACL_HBM_MEM_HUGE1G, ACL_HBM_MEM_HUGE, kGiB}};
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.attribute);
    const size_t most = free_bytes(kind.kind) / kind.granularity * kind.granularity;
    const aclrtPhysicalMemProp property = block_property(kind.attribute);
    aclrtDrvMemHandle none = nullptr;
    EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
                 aclrtMallocPhysical(&none, most + kind.granularity, &property, 0));
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(memory_figures(), before);
    EXPECT_SUCCESS(aclrtFreePhysical(create_block(most, property)));
  }
}

TEST_F(GeneralRules, GEN_07_NoOtherMistakeAnswersOutOfMemory) {
  const LiveMapping mapping;
  Outputs outputs;
  std::vector<Refusal> refusals = outer_refusals(mapping, &outputs);
  for (Refusal& refusal : inner_refusals(mapping, &outputs)) {
    refusals.push_back(std::move(refusal));
  }
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.call);
    const aclError code = refusal.run();
    EXPECT_NE(code, ACL_SUCCESS);
    EXPECT_NE(code, ACL_ERROR_RT_MEMORY_ALLOCATION);
  }
}

TEST_F(GeneralRules, GEN_08_NullArgumentIsNoticedBeforeTheMissingContext) {
  const Bystander bystander;
  on_bare_thread([&] {
    Outputs outputs;
    for (const Refusal& refusal : outer_refusals(bystander.mapping(), &outputs)) {
      SCOPED_TRACE(refusal.call);
      expect_refused(refusal);
      EXPECT_TRUE(outputs.untouched());
    }
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDevice(nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetCurrentContext(nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCtxGetCurrentDefaultStream(nullptr));
  });
  bystander.expect_unchanged();
}

TEST_F(GeneralRules, GEN_09_StaleObjectsAnswerACode) {
  const Bystander bystander;
  void* const range = reserve(kGiB);
  const aclrtDrvMemHandle block = create_block(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(range, kGranule, 0, block, 0));
  ASSERT_SUCCESS(aclrtUnmapMem(range));
  ASSERT_SUCCESS(aclrtFreePhysical(block));
  ASSERT_SUCCESS(aclrtReleaseMemAddress(range));
  void* const stale = at(range, kGiB / 2);

  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(range));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(block));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(range));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMapMem(range, kGranule, 0, block, 0));
  uint8_t byte = 0x5a;
  EXPECT_NE(aclrtMemcpy(&byte, 1, stale, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_NE(aclrtMemcpy(stale, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_NE(aclrtMemset(stale, 1, 0, 1), ACL_SUCCESS);
  EXPECT_EQ(byte, 0x5a);
  bystander.expect_unchanged();
}

TEST_F(GeneralRules, GEN_09_InteriorAndForeignObjectsAnswerACode) {
  const Bystander bystander;
  const LiveMapping& mapping = bystander.mapping();
  aclrtContext context = nullptr;
  ASSERT_SUCCESS(aclrtGetCurrentContext(&context));
  int on_stack = 0;

  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(mapping.at(kPage)));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(mapping.at(kPage)));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(&on_stack));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(&on_stack));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(mapping.data()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(&on_stack));
  if (context != mapping.handle()) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(context));
    EXPECT_NE(aclrtDestroyContext(mapping.handle()), ACL_SUCCESS);
  }
  bystander.expect_unchanged();
}

#undef US_REFUSAL

}  // namespace
}  // namespace understudy_test
