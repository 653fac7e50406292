// SPDX-License-Identifier: Apache-2.0
//
// Rules common to all memory functions, seen on those that allocate, free and inspect device
// memory.
// Covers: GEN-01, GEN-02, GEN-03, GEN-07, GEN-08, GEN-09.
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

using GeneralAllocation = DeviceTest;

// A live block, the objects the calls below refer to, and all they may write to, filled with a
// mark that no answer has.
struct Scene {
  struct Outputs {
    void* data;
    size_t count;
    uint32_t result;
    aclrtMemUsageInfo usage;
  };

  Scene() {
    memset(static_cast<void*>(&outputs), 0x5a, sizeof outputs);
    memset(&wrong_device, 0, sizeof wrong_device);
    wrong_device.attr = ACL_RT_MEM_ATTR_DEVICE_ID;
    wrong_device.value.deviceId = 5;
    memset(&address_flag, 0, sizeof address_flag);
    address_flag.attr = ACL_RT_MEM_ATTR_VA_FLAG;
    copy_in(block.data(), pattern(kNormalPage, 40));
  }
  bool outputs_untouched() const {
    Outputs fresh;
    memset(static_cast<void*>(&fresh), 0x5a, sizeof fresh);
    return memcmp(static_cast<const void*>(&outputs), static_cast<const void*>(&fresh),
                  sizeof fresh) == 0;
  }
  bool block_unchanged() const {
    return copy_out(block.data(), kNormalPage) == pattern(kNormalPage, 40);
  }

  DeviceBlock block{3 * kMiB};
  void* list[1] = {block.data()};
  int on_stack = 0;
  aclrtMallocAttribute wrong_device;
  aclrtMallocAttribute address_flag;
  aclrtMallocConfig missing_attributes = {nullptr, 1};
  aclrtMallocConfig empty = {nullptr, 0};
  aclrtMallocConfig with_wrong_device = {&wrong_device, 1};
  aclrtMallocConfig with_address_flag = {&address_flag, 1};
  Outputs outputs;
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

// Calls that fail an outer check.
std::vector<Refusal> outer_refusals(Scene* scene) {
  auto* const out = &scene->outputs;
  void* const data = scene->block.data();
  void** const list = scene->list;
  auto* const missing = &scene->missing_attributes;
  constexpr auto kPolicy = ACL_MEM_MALLOC_HUGE_FIRST;
  constexpr aclError kOuter = ACL_ERROR_INVALID_PARAM;
  return {
      US_REFUSAL(kOuter, aclrtMalloc(nullptr, 64, kPolicy)),
      US_REFUSAL(kOuter, aclrtMalloc(&out->data, 0, kPolicy)),
      US_REFUSAL(kOuter, aclrtMalloc(&out->data, SIZE_MAX, kPolicy)),
      US_REFUSAL(kOuter, aclrtMallocAlign32(nullptr, 64, kPolicy)),
      US_REFUSAL(kOuter, aclrtMallocAlign32(&out->data, 0, kPolicy)),
      US_REFUSAL(kOuter, aclrtMallocAlign32(&out->data, SIZE_MAX, kPolicy)),
      US_REFUSAL(kOuter, aclrtMallocCached(nullptr, 64, kPolicy)),
      US_REFUSAL(kOuter, aclrtMallocCached(&out->data, 0, kPolicy)),
      US_REFUSAL(kOuter, aclrtMallocCached(&out->data, SIZE_MAX, kPolicy)),
      US_REFUSAL(kOuter, aclrtMallocWithCfg(nullptr, 64, kPolicy, nullptr)),
      US_REFUSAL(kOuter, aclrtMallocWithCfg(&out->data, 0, kPolicy, nullptr)),
      US_REFUSAL(kOuter, aclrtMallocWithCfg(&out->data, SIZE_MAX, kPolicy, nullptr)),
      US_REFUSAL(kOuter, aclrtMallocWithCfg(&out->data, 64, kPolicy, missing)),
      US_REFUSAL(kOuter, aclrtMallocForTaskScheduler(nullptr, 64, kPolicy, nullptr)),
      US_REFUSAL(kOuter, aclrtMallocForTaskScheduler(&out->data, 0, kPolicy, nullptr)),
      US_REFUSAL(kOuter, aclrtMallocForTaskScheduler(&out->data, SIZE_MAX, kPolicy, nullptr)),
      US_REFUSAL(kOuter, aclrtMallocForTaskScheduler(&out->data, 64, kPolicy, missing)),
      US_REFUSAL(kOuter, aclrtFree(nullptr)),
      US_REFUSAL(kOuter, aclrtFreeWithDevSync(nullptr)),
      US_REFUSAL(kOuter, aclrtMemFlush(nullptr, 64)),
      US_REFUSAL(kOuter, aclrtMemFlush(data, 0)),
      US_REFUSAL(kOuter, aclrtMemInvalidate(nullptr, 64)),
      US_REFUSAL(kOuter, aclrtMemInvalidate(data, 0)),
      US_REFUSAL(kOuter, aclrtGetMemUsageInfo(0, nullptr, 1, &out->count)),
      US_REFUSAL(kOuter, aclrtGetMemUsageInfo(0, &out->usage, 1, nullptr)),
      US_REFUSAL(kOuter, aclrtCheckMemType(nullptr, 1, ACL_RT_MEM_TYPE_DEV, &out->result, 0)),
      US_REFUSAL(kOuter, aclrtCheckMemType(list, 1, ACL_RT_MEM_TYPE_DEV, nullptr, 0)),
  };
}

// Calls that pass the outer checks and fail later; none of them because memory is short.
std::vector<Refusal> inner_refusals(Scene* scene) {
  auto* const out = &scene->outputs;
  void* const inside = scene->block.at(64);
  void** const list = scene->list;
  void* const on_stack = &scene->on_stack;
  auto* const empty = &scene->empty;
  auto* const wrong_device = &scene->with_wrong_device;
  auto* const address_flag = &scene->with_address_flag;
  constexpr auto kPolicy = ACL_MEM_MALLOC_HUGE_FIRST;
  constexpr aclError kInner = ACL_ERROR_RT_PARAM_INVALID;
  return {
      US_REFUSAL(kInner, aclrtMallocWithCfg(&out->data, 64, kPolicy, empty)),
      US_REFUSAL(kInner, aclrtMallocWithCfg(&out->data, 64, kPolicy, wrong_device)),
      US_REFUSAL(kInner, aclrtMallocWithCfg(&out->data, 64, kPolicy, address_flag)),
      US_REFUSAL(kInner, aclrtMallocForTaskScheduler(&out->data, 64, kPolicy, empty)),
      US_REFUSAL(kInner, aclrtMallocForTaskScheduler(&out->data, 64, kPolicy, wrong_device)),
      US_REFUSAL(kInner, aclrtMallocForTaskScheduler(&out->data, 64, kPolicy, address_flag)),
      US_REFUSAL(kInner, aclrtFree(inside)),
      US_REFUSAL(kInner, aclrtFree(on_stack)),
      US_REFUSAL(kInner, aclrtFreeWithDevSync(inside)),
      US_REFUSAL(kInner, aclrtFreeWithDevSync(on_stack)),
      US_REFUSAL(kInner, aclrtGetMemUsageInfo(0, &out->usage, 0, &out->count)),
      US_REFUSAL(ACL_ERROR_RT_INVALID_DEVICEID,
                 aclrtGetMemUsageInfo(99, &out->usage, 1, &out->count)),
      US_REFUSAL(kInner, aclrtCheckMemType(list, 0, ACL_RT_MEM_TYPE_DEV, &out->result, 0)),
      US_REFUSAL(kInner, aclrtCheckMemType(list, 1, 0, &out->result, 0)),
      US_REFUSAL(kInner, aclrtCheckMemType(list, 1, ACL_RT_MEM_TYPE_DEV, &out->result, 1)),
  };
}

void expect_refused(const Refusal& refusal) {
  (void)recent_error();
  EXPECT_TRUE(fails_with(refusal.code, refusal.run(), refusal.call));
}

TEST_F(GeneralAllocation, GEN_01_OuterRefusalChangesNothing) {
  const Bystander bystander;
  Scene scene;
  const MemoryFigures before = memory_figures();
  for (const Refusal& refusal : outer_refusals(&scene)) {
    SCOPED_TRACE(refusal.call);
    expect_refused(refusal);
    EXPECT_TRUE(scene.outputs_untouched());
    EXPECT_TRUE(scene.block_unchanged());
    EXPECT_EQ(memory_figures(), before);
  }
  bystander.expect_bytes_unchanged();
}

TEST_F(GeneralAllocation, GEN_02_OuterRefusalKeepsTheLastErrorAndInnerOneSetsIt) {
  Scene scene;
  const std::vector<Refusal> outer = outer_refusals(&scene);
  for (const Refusal& inner : inner_refusals(&scene)) {
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
  (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
}

TEST_F(GeneralAllocation, GEN_02_OuterRefusalDoesNotSetALastErrorEither) {
  Scene scene;
  (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  for (const Refusal& refusal : outer_refusals(&scene)) {
    SCOPED_TRACE(refusal.call);
    expect_refused(refusal);
    EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  }
}

TEST_F(GeneralAllocation, GEN_02_OutOfMemoryAndNoPermissionAreInnerErrors) {
  const DeviceBlock readonly(5000, ACL_MEM_ACCESS_USER_SPACE_READONLY);
  void* none = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMalloc(&none, kTiB, ACL_MEM_MALLOC_HUGE_ONLY));
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION, aclrtMemset(readonly.data(), 1, 1, 1));
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(GeneralAllocation, GEN_03_FunctionsThatNeedAContextSaySo) {
  Scene scene;
  const MemoryFigures before = memory_figures();
  on_bare_thread([&scene] {
    auto* const out = &scene.outputs;
    void* const data = scene.block.data();
    constexpr auto kPolicy = ACL_MEM_MALLOC_HUGE_FIRST;
    constexpr aclError kNoContext = ACL_ERROR_RT_CONTEXT_NULL;
    const std::vector<Refusal> refusals = {
        US_REFUSAL(kNoContext, aclrtMalloc(&out->data, 64, kPolicy)),
        US_REFUSAL(kNoContext, aclrtMallocAlign32(&out->data, 64, kPolicy)),
        US_REFUSAL(kNoContext, aclrtMallocCached(&out->data, 64, kPolicy)),
        US_REFUSAL(kNoContext, aclrtMallocWithCfg(&out->data, 64, kPolicy, nullptr)),
        US_REFUSAL(kNoContext, aclrtMallocForTaskScheduler(&out->data, 64, kPolicy, nullptr)),
        US_REFUSAL(kNoContext, aclrtFreeWithDevSync(data)),
    };
    for (const Refusal& refusal : refusals) {
      SCOPED_TRACE(refusal.call);
      expect_refused(refusal);
      EXPECT_TRUE(scene.outputs_untouched());
    }
  });
  EXPECT_EQ(memory_figures(), before);
  EXPECT_TRUE(scene.block_unchanged());
}

TEST_F(GeneralAllocation, GEN_07_OutOfMemoryMeansExhaustedMemoryOfThatPolicy) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "8G"}, {"UNDERSTUDY_NORMAL_MEMORY", "1G"});
  const struct {
    aclrtMemMallocPolicy policy;
    aclrtMemAttr kind;
    size_t page;
  } kinds[] = {{ACL_MEM_MALLOC_HUGE_FIRST, ACL_HBM_MEM_HUGE, kHugePage},
               {ACL_MEM_MALLOC_HUGE_ONLY, ACL_HBM_MEM_HUGE, kHugePage},
               {ACL_MEM_MALLOC_NORMAL_ONLY, ACL_HBM_MEM_NORMAL, kNormalPage},
               {ACL_MEM_MALLOC_HUGE_FIRST_P2P, ACL_HBM_MEM_HUGE, kHugePage},
               {ACL_MEM_MALLOC_HUGE_ONLY_P2P, ACL_HBM_MEM_HUGE, kHugePage},
               {ACL_MEM_MALLOC_NORMAL_ONLY_P2P, ACL_HBM_MEM_NORMAL, kNormalPage},
               {ACL_MEM_MALLOC_HUGE1G_ONLY, ACL_HBM_MEM_HUGE, kGiantPage},
               {ACL_MEM_MALLOC_HUGE1G_ONLY_P2P, ACL_HBM_MEM_HUGE, kGiantPage}};
  for (const auto& kind : kinds) {
    const size_t most = free_bytes(kind.kind) / kind.page * kind.page;
    EXPECT_EQ(outcome_of(kMallocAlign32, most, kind.policy).code, ACL_SUCCESS) << kind.policy;
    EXPECT_EQ(outcome_of(kMallocAlign32, most + 1, kind.policy), out_of_memory()) << kind.policy;
  }
}

TEST_F(GeneralAllocation, GEN_07_NoOtherMistakeAnswersOutOfMemory) {
  Scene scene;
  std::vector<Refusal> refusals = outer_refusals(&scene);
  for (Refusal& refusal : inner_refusals(&scene)) refusals.push_back(std::move(refusal));
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.call);
    const aclError code = refusal.run();
    EXPECT_NE(code, ACL_SUCCESS);
    EXPECT_NE(code, ACL_ERROR_RT_MEMORY_ALLOCATION);
  }
}

TEST_F(GeneralAllocation, GEN_08_NullArgumentIsNoticedBeforeTheMissingContext) {
  Scene scene;
  on_bare_thread([&scene] {
    for (const Refusal& refusal : outer_refusals(&scene)) {
      SCOPED_TRACE(refusal.call);
      expect_refused(refusal);
      EXPECT_TRUE(scene.outputs_untouched());
    }
  });
  EXPECT_TRUE(scene.block_unchanged());
}

TEST_F(GeneralAllocation, GEN_09_StaleBlocksAnswerACode) {
  const Bystander bystander;
  for (const DeviceMalloc& function : kDeviceMallocs) {
    for (const size_t size : {size_t{5000}, 3 * kMiB}) {
      SCOPED_TRACE(testing::Message() << function.name << " of " << size << " bytes");
      DeviceBlock block(size, ACL_MEM_MALLOC_HUGE_FIRST, function);
      void* const stale = block.data();
      void* const inside = block.at(size - 1);
      block.free();

      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(stale));
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(inside));
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeWithDevSync(stale));
      uint8_t byte = 0x5a;
      for (void* const dead : {stale, inside}) {
        EXPECT_NE(aclrtMemcpy(&byte, 1, dead, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
        EXPECT_NE(aclrtMemcpy(dead, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
        EXPECT_NE(aclrtMemset(dead, 1, 0, 1), ACL_SUCCESS);
        void* base = nullptr;
        EXPECT_NE(aclrtMemGetAddressRange(dead, &base, nullptr), ACL_SUCCESS);
        expect_no_known_memory(dead);
      }
      EXPECT_EQ(byte, 0x5a);
      bystander.expect_unchanged();
    }
  }
}

TEST_F(GeneralAllocation, GEN_09_ForeignObjectsAnswerACode) {
  const Bystander bystander;
  Scene scene;
  aclrtContext context = nullptr;
  ASSERT_SUCCESS(aclrtGetCurrentContext(&context));
  const MemoryFigures before = memory_figures();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(context));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(bystander.mapping().handle()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(bystander.mapping().data()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeWithDevSync(bystander.mapping().data()));
  // A block is no handle, no reservation and no mapping.
  EXPECT_NE(aclrtFreePhysical(scene.block.data()), ACL_SUCCESS);
  EXPECT_NE(aclrtReleaseMemAddress(scene.block.data()), ACL_SUCCESS);
  EXPECT_NE(aclrtUnmapMem(scene.block.data()), ACL_SUCCESS);
  EXPECT_NE(aclrtFreeHost(scene.block.data()), ACL_SUCCESS);
  EXPECT_NE(aclrtDestroyContext(scene.block.data()), ACL_SUCCESS);
  EXPECT_EQ(memory_figures(), before);
  EXPECT_TRUE(scene.block_unchanged());
  bystander.expect_bytes_unchanged();
}

#undef US_REFUSAL

}  // namespace
}  // namespace understudy_test
