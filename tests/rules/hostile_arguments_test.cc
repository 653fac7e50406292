// SPDX-License-Identifier: Apache-2.0
//
// A sweep over the functions of the chapter with every pointer NULL, with sizes 0 and SIZE_MAX and
// with impossible device ids: never a crash, always the code the rules name, nothing changed.
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using HostileArguments = DeviceTest;

// Where no rule names the code.
constexpr aclError kAnyFailure = -1;
constexpr aclError kAnyResult = -2;

constexpr aclError kOuter = ACL_ERROR_INVALID_PARAM;
constexpr aclError kInner = ACL_ERROR_RT_PARAM_INVALID;
constexpr aclError kUnsupported = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
constexpr aclError kNoMemory = ACL_ERROR_RT_MEMORY_ALLOCATION;
constexpr aclError kNoDevice = ACL_ERROR_RT_INVALID_DEVICEID;

struct Attempt {
  const char* call;  // begins with the function's name
  aclError expected;
  std::function<aclError()> run;
};

#define US_TRY(expected, ...)                             \
  Attempt {                                               \
#__VA_ARGS__, (expected), [&] { return __VA_ARGS__; } \
  }

void run_all(const std::vector<Attempt>& attempts, const Bystander& bystander) {
  for (const Attempt& attempt : attempts) {
    SCOPED_TRACE(attempt.call);
    (void)recent_error();
    const aclError code = attempt.run();
    if (attempt.expected == kAnyFailure) {
      EXPECT_NE(code, ACL_SUCCESS);
    } else if (attempt.expected == ACL_SUCCESS) {
      EXPECT_EQ(code, ACL_SUCCESS);
    } else if (attempt.expected != kAnyResult) {
      EXPECT_TRUE(fails_with(attempt.expected, code, attempt.call));
    }
    bystander.expect_unchanged();
  }
}

aclrtMemAccessDesc read_write_for_device(uint32_t device) {
  aclrtMemAccessDesc grant;
  memset(&grant, 0, sizeof grant);
  grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  grant.location = {device, ACL_MEM_LOCATION_TYPE_DEVICE};
  return grant;
}

TEST_F(HostileArguments, NullPointersToMemoryFunctions) {
  const Bystander bystander;
  void* const data = bystander.mapping().data();
  const aclrtDrvMemHandle handle = bystander.mapping().handle();
  aclrtPhysicalMemProp property = block_property();
  aclrtMemLocation location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  aclrtMemAccessDesc grant = read_write_for_device(0);
  const auto minimum = ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM;
  aclrtDrvMemHandle new_handle = nullptr;
  void* range = nullptr;
  size_t size = 0;
  uint64_t flag = 0;
  uint8_t byte = 0;
  aclrtPtrAttributes attributes;
  const std::vector<Attempt> attempts = {
      US_TRY(kOuter, aclrtMallocPhysical(nullptr, kGranule, &property, 0)),
      US_TRY(kOuter, aclrtMallocPhysical(&new_handle, kGranule, nullptr, 0)),
      US_TRY(kOuter, aclrtMallocPhysical(nullptr, 0, nullptr, 0)),
      US_TRY(kOuter, aclrtFreePhysical(nullptr)),
      US_TRY(kOuter, aclrtReserveMemAddress(nullptr, kGranule, 0, nullptr, 0)),
      US_TRY(kOuter, aclrtReserveMemAddressNoUCMemory(nullptr, kGiB, 0, address(40 * kTiB), 0)),
      US_TRY(kUnsupported, aclrtReserveMemAddressNoUCMemory(&range, kGiB, 0, nullptr, 0)),
      US_TRY(kOuter, aclrtReleaseMemAddress(nullptr)),
      US_TRY(kOuter, aclrtMapMem(nullptr, kGranule, 0, handle, 0)),
      US_TRY(kOuter, aclrtMapMem(data, kGranule, 0, nullptr, 0)),
      US_TRY(kOuter, aclrtMemMapNoAccess(nullptr, kGranule, 0, handle, 0)),
      US_TRY(kOuter, aclrtMemMapNoAccess(data, kGranule, 0, nullptr, 0)),
      US_TRY(kOuter, aclrtUnmapMem(nullptr)),
      US_TRY(kOuter, aclrtMemGetAllocationGranularity(nullptr, minimum, &size)),
      US_TRY(kOuter, aclrtMemGetAllocationGranularity(&property, minimum, nullptr)),
      US_TRY(kInner, aclrtMemSetAccess(nullptr, kGranule, &grant, 1)),
      US_TRY(kInner, aclrtMemSetAccess(data, kGranule, nullptr, 1)),
      US_TRY(kInner, aclrtMemSetAccess(data, kGranule, nullptr, 0)),
      US_TRY(kOuter, aclrtMemGetAccess(nullptr, &location, &flag)),
      US_TRY(kOuter, aclrtMemGetAccess(data, nullptr, &flag)),
      US_TRY(kOuter, aclrtMemGetAccess(data, &location, nullptr)),
      US_TRY(kOuter, aclrtMemRetainAllocationHandle(nullptr, &new_handle)),
      US_TRY(kOuter, aclrtMemRetainAllocationHandle(data, nullptr)),
      US_TRY(kOuter, aclrtMemGetAllocationPropertiesFromHandle(nullptr, &property)),
      US_TRY(kOuter, aclrtMemGetAllocationPropertiesFromHandle(handle, nullptr)),
      US_TRY(kOuter, aclrtMemGetAddressRange(nullptr, &range, &size)),
      US_TRY(kInner, aclrtMemGetAddressRange(data, nullptr, nullptr)),
      US_TRY(kOuter, aclrtMemMapSelectedLink(nullptr, kGranule, data, 0)),
      US_TRY(kOuter, aclrtMemMapSelectedLink(data, kGranule, nullptr, 0)),
      US_TRY(kOuter, aclrtMemMapSetLink(nullptr, ACL_RT_MEM_ACCESS_LINK_SIO)),
      US_TRY(kOuter, aclrtMemcpy(nullptr, 1, data, 1, ACL_MEMCPY_DEVICE_TO_HOST)),
      US_TRY(kOuter, aclrtMemcpy(&byte, 1, nullptr, 1, ACL_MEMCPY_DEVICE_TO_HOST)),
      US_TRY(kOuter, aclrtMemset(nullptr, 1, 0, 1)),
      US_TRY(kOuter, aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &size)),
      US_TRY(kOuter, aclrtGetMemInfo(ACL_HBM_MEM, &size, nullptr)),
      US_TRY(kOuter, aclrtPointerGetAttributes(nullptr, &attributes)),
      US_TRY(kOuter, aclrtPointerGetAttributes(data, nullptr)),
  };
  run_all(attempts, bystander);
}

void on_device_state(int32_t, aclrtDeviceState, void*) {}

int32_t on_task_abort(int32_t, aclrtDeviceTaskAbortStage, uint32_t, void*) { return 0; }

TEST_F(HostileArguments, NullPointersToRuntimeFunctions) {
  const Bystander bystander;
  std::array<char, ACL_PKG_VERSION_MAX_SIZE> text = {};
  char package[] = "runtime";
  int32_t number32 = 0;
  size_t size = 0;
  const aclCannAttr* attributes = nullptr;
  aclrtMemUceInfo faults[1] = {};
  const std::vector<Attempt> attempts = {
      US_TRY(kOuter, aclInitCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, nullptr)),
      US_TRY(kOuter, aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, nullptr)),
      US_TRY(kOuter, aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, nullptr)),
      US_TRY(kOuter, aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, nullptr)),
      US_TRY(kOuter, aclrtGetVersion(nullptr, &number32, &number32)),
      US_TRY(kOuter, aclrtGetVersion(&number32, nullptr, &number32)),
      US_TRY(kOuter, aclrtGetVersion(&number32, &number32, nullptr)),
      US_TRY(kOuter, aclsysGetVersionStr(nullptr, text.data())),
      US_TRY(kOuter, aclsysGetVersionStr(package, nullptr)),
      US_TRY(kOuter, aclsysGetVersionNum(nullptr, &number32)),
      US_TRY(kOuter, aclsysGetVersionNum(package, nullptr)),
      US_TRY(kOuter, aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, nullptr)),
      US_TRY(kOuter, aclGetCannAttributeList(nullptr, &size)),
      US_TRY(kOuter, aclGetCannAttributeList(&attributes, nullptr)),
      US_TRY(kOuter, aclGetCannAttribute(ACL_CANN_ATTR_BF16, nullptr)),
      US_TRY(kOuter, aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, nullptr)),
      US_TRY(kOuter, aclrtGetDevice(nullptr)),
      US_TRY(kOuter, aclrtGetDeviceCount(nullptr)),
      US_TRY(kOuter, aclrtGetRunMode(nullptr)),
      US_TRY(kInner, aclrtDeviceCanAccessPeer(nullptr, 0, 1)),
      US_TRY(kOuter, aclrtDeviceGetBareTgid(nullptr)),
      US_TRY(kOuter, aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, nullptr)),
      US_TRY(kOuter, aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, nullptr)),
      US_TRY(kOuter, aclrtQueryDeviceStatus(0, nullptr)),
      US_TRY(kOuter, aclrtGetDeviceUtilizationRate(0, nullptr)),
      US_TRY(ACL_SUCCESS, aclrtDeviceGetStreamPriorityRange(nullptr, nullptr)),
      US_TRY(kOuter, aclrtDeviceGetUuid(0, nullptr)),
      US_TRY(kOuter, aclrtGetLogicDevIdByUserDevId(0, nullptr)),
      US_TRY(kOuter, aclrtGetUserDevIdByLogicDevId(0, nullptr)),
      US_TRY(kOuter, aclrtGetLogicDevIdByPhyDevId(0, nullptr)),
      US_TRY(kOuter, aclrtGetPhyDevIdByLogicDevId(0, nullptr)),
      US_TRY(kOuter, aclrtGetUserDevIdByPhyDevId(0, nullptr)),
      US_TRY(kOuter, aclrtGetPhyDevIdByUserDevId(0, nullptr)),
      US_TRY(kOuter, aclrtDevicePeerAccessStatus(0, 1, nullptr)),
      US_TRY(kOuter, aclrtGetPrimaryCtxState(0, nullptr, nullptr)),
      US_TRY(kOuter, aclrtGetDevicesTopo(0, 1, nullptr)),
      US_TRY(kOuter, aclrtRegDeviceStateCallback(nullptr, on_device_state, nullptr)),
      US_TRY(kAnyResult, aclrtRegDeviceStateCallback("unknown", nullptr, nullptr)),
      US_TRY(kAnyFailure, aclrtGetDeviceSatMode(nullptr)),
      US_TRY(kAnyFailure, aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, nullptr)),
      US_TRY(kAnyFailure, aclrtGetStreamResLimit(nullptr, ACL_RT_DEV_RES_CUBE_CORE, nullptr)),
      US_TRY(kAnyFailure, aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, nullptr)),
      US_TRY(kOuter, aclrtCreateContext(nullptr, 0)),
      US_TRY(kOuter, aclrtDestroyContext(nullptr)),
      US_TRY(kOuter, aclrtSetCurrentContext(nullptr)),
      US_TRY(kOuter, aclrtGetCurrentContext(nullptr)),
      US_TRY(kOuter, aclrtCtxGetCurrentDefaultStream(nullptr)),
      US_TRY(kOuter, aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr)),
      US_TRY(kOuter, aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr)),
      US_TRY(kInner, aclrtExceptionInfoCallbackRegister(nullptr)),
      US_TRY(kInner, aclrtExceptionInfoCallbackUnregister(nullptr)),
      US_TRY(ACL_SUCCESS, aclrtSetExceptionInfoCallback(nullptr)),
      US_TRY(kOuter, aclrtGetMemUceInfo(0, nullptr, 1, &size)),
      US_TRY(kOuter, aclrtGetMemUceInfo(0, faults, 1, nullptr)),
      US_TRY(kOuter, aclrtMemUceRepair(0, nullptr, 1)),
      US_TRY(kOuter, aclrtMemUceRepair(0, faults, SIZE_MAX)),
      US_TRY(kOuter, aclrtGetErrorVerbose(0, nullptr)),
      US_TRY(kOuter, aclrtRepairError(0, nullptr)),
      US_TRY(kOuter, aclrtSetOpExecuteTimeOutV2(1, nullptr)),
      US_TRY(kOuter, aclrtGetOpTimeOutInterval(nullptr)),
      US_TRY(kOuter, aclrtGetOpExecuteTimeout(nullptr)),
      US_TRY(kOuter, aclrtGetThreadLastTaskId(nullptr)),
      US_TRY(kAnyResult, aclrtSetDeviceTaskAbortCallback(nullptr, on_task_abort, nullptr)),
  };
  run_all(attempts, bystander);

  EXPECT_EQ(aclrtGetTaskIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetStreamIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetThreadIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetDeviceIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetErrorCodeFromExceptionInfo(nullptr), UINT32_MAX);
}

TEST_F(HostileArguments, ImpossibleSizesOfBlocksAndReservations) {
  const Bystander bystander;
  constexpr size_t kMostGranules = SIZE_MAX / kGranule * kGranule;
  constexpr size_t kMostGiB = SIZE_MAX / kGiB * kGiB;
  const aclrtPhysicalMemProp huge = block_property();
  const aclrtPhysicalMemProp normal = block_property(ACL_MEM_NORMAL);
  const aclrtPhysicalMemProp giant = block_property(ACL_HBM_MEM_HUGE1G);
  const aclrtPhysicalMemProp host = host_property();
  aclrtDrvMemHandle handle = nullptr;
  void* range = nullptr;
  void* const wished = address(16 * kTiB);
  const std::vector<Attempt> attempts = {
      US_TRY(kOuter, aclrtMallocPhysical(&handle, 0, &huge, 0)),
      US_TRY(kInner, aclrtMallocPhysical(&handle, SIZE_MAX, &huge, 0)),
      US_TRY(kInner, aclrtMallocPhysical(&handle, SIZE_MAX, &host, 0)),
      US_TRY(kNoMemory, aclrtMallocPhysical(&handle, kMostGranules, &huge, 0)),
      US_TRY(kNoMemory, aclrtMallocPhysical(&handle, kMostGranules, &normal, 0)),
      US_TRY(kNoMemory, aclrtMallocPhysical(&handle, kMostGiB, &giant, 0)),
      US_TRY(kAnyFailure, aclrtMallocPhysical(&handle, kMostGranules, &host, 0)),
      US_TRY(kOuter, aclrtMallocPhysical(&handle, kGranule, &huge, UINT64_MAX)),
      US_TRY(kOuter, aclrtReserveMemAddress(&range, 0, 0, nullptr, 0)),
      US_TRY(kAnyFailure, aclrtReserveMemAddress(&range, SIZE_MAX, 0, nullptr, 0)),
      US_TRY(kAnyFailure, aclrtReserveMemAddress(&range, kMostGranules, 0, nullptr, 0)),
      US_TRY(kAnyFailure, aclrtReserveMemAddress(&range, size_t{1} << 63, 0, nullptr, 0)),
      US_TRY(kInner, aclrtReserveMemAddress(&range, kGranule, SIZE_MAX, nullptr, 0)),
      US_TRY(kOuter, aclrtReserveMemAddress(&range, kGranule, 0, nullptr, UINT64_MAX)),
      US_TRY(kInner, aclrtReserveMemAddress(&range, SIZE_MAX, 0, wished, 0)),
      US_TRY(kInner, aclrtReserveMemAddress(&range, kMostGiB, 0, wished, 0)),
      US_TRY(kOuter, aclrtReserveMemAddressNoUCMemory(&range, 0, 0, wished, 0)),
      US_TRY(kUnsupported, aclrtReserveMemAddressNoUCMemory(&range, SIZE_MAX, 0, wished, 0)),
  };
  run_all(attempts, bystander);
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(range, nullptr);
}

TEST_F(HostileArguments, ImpossibleSizesOfMappingsAndCopies) {
  const Bystander bystander;
  void* const data = bystander.mapping().data();
  void* const inside = bystander.mapping().at(kPage);
  void* const reserved = reserve(kGranule);
  const aclrtDrvMemHandle handle = bystander.mapping().handle();
  std::vector<uint8_t> host = pattern(kPage, 1);
  // All for one device: whoever reads the array stops at the second entry.
  std::vector<aclrtMemAccessDesc> grants(16, read_write_for_device(0));
  aclrtMemAccessDesc* const grant = grants.data();
  aclrtPhysicalMemProp property = block_property();
  const auto undefined = ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF;
  size_t size = 0;
  const std::vector<Attempt> attempts = {
      US_TRY(kOuter, aclrtMapMem(reserved, 0, 0, handle, 0)),
      US_TRY(kInner, aclrtMapMem(reserved, SIZE_MAX, 0, handle, 0)),
      US_TRY(kInner, aclrtMapMem(reserved, SIZE_MAX / kGranule * kGranule, 0, handle, 0)),
      US_TRY(kInner, aclrtMapMem(reserved, kGranule, SIZE_MAX, handle, 0)),
      US_TRY(kInner, aclrtMapMem(reserved, kGranule, kGranule, handle, 0)),
      US_TRY(kOuter, aclrtMapMem(reserved, kGranule, 0, handle, UINT64_MAX)),
      US_TRY(kOuter, aclrtMemMapNoAccess(reserved, 0, 0, handle, 0)),
      US_TRY(kInner, aclrtMemMapNoAccess(reserved, SIZE_MAX, 0, handle, 0)),
      US_TRY(kInner, aclrtMemMapNoAccess(reserved, kGranule, SIZE_MAX, handle, 0)),
      US_TRY(kInner, aclrtMemSetAccess(data, 0, grant, 1)),
      US_TRY(kInner, aclrtMemSetAccess(data, SIZE_MAX, grant, 1)),
      US_TRY(kInner, aclrtMemSetAccess(data, kGranule, grant, 0)),
      US_TRY(kInner, aclrtMemSetAccess(data, kGranule, grant, SIZE_MAX)),
      US_TRY(kUnsupported, aclrtMemGetAllocationGranularity(&property, undefined, &size)),
      US_TRY(kOuter, aclrtMemMapSelectedLink(reserved, 0, data, 0)),
      US_TRY(kUnsupported, aclrtMemMapSelectedLink(reserved, SIZE_MAX, data, 0)),
      US_TRY(kOuter, aclrtMemMapSelectedLink(reserved, kGranule, data, UINT32_MAX)),
      US_TRY(ACL_SUCCESS, aclrtMemcpy(data, 0, host.data(), 0, ACL_MEMCPY_DEFAULT)),
      US_TRY(kInner, aclrtMemcpy(data, 0, host.data(), 1, ACL_MEMCPY_DEFAULT)),
      US_TRY(kInner, aclrtMemcpy(data, 0, host.data(), SIZE_MAX, ACL_MEMCPY_DEFAULT)),
      US_TRY(kInner, aclrtMemcpy(data, SIZE_MAX, host.data(), SIZE_MAX, ACL_MEMCPY_DEFAULT)),
      US_TRY(kInner, aclrtMemcpy(host.data(), SIZE_MAX, data, SIZE_MAX, ACL_MEMCPY_DEFAULT)),
      US_TRY(kInner, aclrtMemcpy(inside, SIZE_MAX, data, SIZE_MAX, ACL_MEMCPY_DEFAULT)),
      US_TRY(ACL_SUCCESS, aclrtMemset(data, 0, 1, 0)),
      US_TRY(kInner, aclrtMemset(data, 0, 1, SIZE_MAX)),
      US_TRY(kInner, aclrtMemset(data, SIZE_MAX, 1, SIZE_MAX)),
      US_TRY(kInner, aclrtMemset(inside, SIZE_MAX, 1, SIZE_MAX - kPage)),
  };
  run_all(attempts, bystander);
  EXPECT_TRUE(host == pattern(kPage, 1));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

TEST_F(HostileArguments, ImpossibleDeviceIds) {
  const Bystander bystander;
  for (const int32_t id :
       {-1, 8, 0x10000, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    SCOPED_TRACE(id);
    const auto unsigned_id = static_cast<uint32_t>(id);
    aclrtPhysicalMemProp property =
        block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, unsigned_id);
    aclrtMemLocation location = {unsigned_id, ACL_MEM_LOCATION_TYPE_DEVICE};
    aclrtMemAccessDesc grant = read_write_for_device(unsigned_id);
    const auto minimum = ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM;
    void* const data = bystander.mapping().data();
    aclrtDrvMemHandle handle = nullptr;
    aclrtContext context = nullptr;
    size_t size = 0;
    uint64_t flag = 0;
    uint64_t links = 0;
    int32_t value = 0;
    int64_t long_value = 0;
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
    const std::vector<Attempt> attempts = {
        US_TRY(kNoDevice, aclrtSetDevice(id)),
        US_TRY(kNoDevice, aclrtResetDevice(id)),
        US_TRY(kNoDevice, aclrtResetDeviceForce(id)),
        US_TRY(kNoDevice, aclrtCreateContext(&context, id)),
        US_TRY(kNoDevice, aclrtMallocPhysical(&handle, kGranule, &property, 0)),
        US_TRY(kNoDevice, aclrtMemGetAllocationGranularity(&property, minimum, &size)),
        US_TRY(kInner, aclrtMemSetAccess(data, kGranule, &grant, 1)),
        US_TRY(kInner, aclrtMemGetAccess(data, &location, &flag)),
        US_TRY(kInner, aclrtGetDeviceInfo(unsigned_id, ACL_DEV_ATTR_L2_CACHE_SIZE, &long_value)),
        US_TRY(kNoDevice, aclrtQueryDeviceStatus(id, &status)),
        US_TRY(kNoDevice, aclrtGetPrimaryCtxState(id, nullptr, &value)),
        US_TRY(kNoDevice, aclrtGetLogicDevIdByUserDevId(id, &value)),
        US_TRY(kAnyFailure, aclrtDeviceEnablePeerAccess(id, 0)),
        US_TRY(kAnyFailure, aclrtDeviceDisablePeerAccess(id)),
        US_TRY(kAnyResult, aclrtDeviceCanAccessPeer(&value, id, 0)),
        US_TRY(kAnyResult, aclrtDevicePeerAccessStatus(id, 0, &value)),
        US_TRY(kAnyResult, aclrtGetDevicesTopo(unsigned_id, 0, &links)),
        US_TRY(kAnyResult, aclrtDeviceTaskAbort(id, 1)),
    };
    run_all(attempts, bystander);
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(context, nullptr);
  }
}

#undef US_TRY

}  // namespace
}  // namespace understudy_test
