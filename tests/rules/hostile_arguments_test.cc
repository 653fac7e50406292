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

#include "acl/acl_rt_allocator.h"
#include "rules/live_mapping.h"
#include "rules/pool_objects.h"
#include "rules/stream_objects.h"
#include "support/locked_call.h"
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

#define US_ATTEMPT(expected, ...)                         \
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
    // SNAP-10: a process that is locked answers this at once, too.
    if (attempt.expected == kOuter) {
      const LockedCall locked = call_while_locked(attempt.run);
      EXPECT_FALSE(locked.waited);
      EXPECT_EQ(locked.code, kOuter);
    }
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
      US_ATTEMPT(kOuter, aclrtMallocPhysical(nullptr, kGranule, &property, 0)),
      US_ATTEMPT(kOuter, aclrtMallocPhysical(&new_handle, kGranule, nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtMallocPhysical(nullptr, 0, nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtFreePhysical(nullptr)),
      US_ATTEMPT(kOuter, aclrtReserveMemAddress(nullptr, kGranule, 0, nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtReserveMemAddressNoUCMemory(nullptr, kGiB, 0, address(40 * kTiB), 0)),
      US_ATTEMPT(kUnsupported, aclrtReserveMemAddressNoUCMemory(&range, kGiB, 0, nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtReleaseMemAddress(nullptr)),
      US_ATTEMPT(kOuter, aclrtMapMem(nullptr, kGranule, 0, handle, 0)),
      US_ATTEMPT(kOuter, aclrtMapMem(data, kGranule, 0, nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtMemMapNoAccess(nullptr, kGranule, 0, handle, 0)),
      US_ATTEMPT(kOuter, aclrtMemMapNoAccess(data, kGranule, 0, nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtUnmapMem(nullptr)),
      US_ATTEMPT(kOuter, aclrtMemGetAllocationGranularity(nullptr, minimum, &size)),
      US_ATTEMPT(kOuter, aclrtMemGetAllocationGranularity(&property, minimum, nullptr)),
      US_ATTEMPT(kInner, aclrtMemSetAccess(nullptr, kGranule, &grant, 1)),
      US_ATTEMPT(kInner, aclrtMemSetAccess(data, kGranule, nullptr, 1)),
      US_ATTEMPT(kInner, aclrtMemSetAccess(data, kGranule, nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtMemGetAccess(nullptr, &location, &flag)),
      US_ATTEMPT(kOuter, aclrtMemGetAccess(data, nullptr, &flag)),
      US_ATTEMPT(kOuter, aclrtMemGetAccess(data, &location, nullptr)),
      US_ATTEMPT(kOuter, aclrtMemRetainAllocationHandle(nullptr, &new_handle)),
      US_ATTEMPT(kOuter, aclrtMemRetainAllocationHandle(data, nullptr)),
      US_ATTEMPT(kOuter, aclrtMemGetAllocationPropertiesFromHandle(nullptr, &property)),
      US_ATTEMPT(kOuter, aclrtMemGetAllocationPropertiesFromHandle(handle, nullptr)),
      US_ATTEMPT(kOuter, aclrtMemGetAddressRange(nullptr, &range, &size)),
      US_ATTEMPT(kInner, aclrtMemGetAddressRange(data, nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtMemMapSelectedLink(nullptr, kGranule, data, 0)),
      US_ATTEMPT(kOuter, aclrtMemMapSelectedLink(data, kGranule, nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtMemMapSetLink(nullptr, ACL_RT_MEM_ACCESS_LINK_SIO)),
      US_ATTEMPT(kOuter, aclrtMemcpy(nullptr, 1, data, 1, ACL_MEMCPY_DEVICE_TO_HOST)),
      US_ATTEMPT(kOuter, aclrtMemcpy(&byte, 1, nullptr, 1, ACL_MEMCPY_DEVICE_TO_HOST)),
      US_ATTEMPT(kOuter, aclrtMemset(nullptr, 1, 0, 1)),
      US_ATTEMPT(kOuter, aclrtReduceAsync(nullptr, data, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM,
                                          ACL_FLOAT, nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtReduceAsync(data, nullptr, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM,
                                          ACL_FLOAT, nullptr, nullptr)),
      US_ATTEMPT(kInner, aclrtReduceAsync(data, data, SIZE_MAX, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM,
                                          ACL_INT8, nullptr, nullptr)),
      US_ATTEMPT(kInner, aclrtReduceAsync(data, data, 0, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT8,
                                          nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &size)),
      US_ATTEMPT(kOuter, aclrtGetMemInfo(ACL_HBM_MEM, &size, nullptr)),
      US_ATTEMPT(kOuter, aclrtPointerGetAttributes(nullptr, &attributes)),
      US_ATTEMPT(kOuter, aclrtPointerGetAttributes(data, nullptr)),
  };
  run_all(attempts, bystander);
}

TEST_F(HostileArguments, NullPointersAndSizesToPools) {
  const pool::TestPool own;
  const TestStream stream;
  void* const data = own.allocate(kGranule, stream.get());
  const Bystander bystander;
  const aclrtMemPoolProps props = pool::properties();
  aclrtMemPool new_pool = nullptr;
  void* out = nullptr;
  uint64_t value = 0;
  const auto attribute = ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD;
  const aclError unable = ACL_ERROR_RT_INTERNAL_ERROR;
  const std::vector<Attempt> attempts = {
      US_ATTEMPT(kOuter, aclrtMemPoolCreate(nullptr, &props)),
      US_ATTEMPT(kOuter, aclrtMemPoolCreate(&new_pool, nullptr)),
      US_ATTEMPT(kOuter, aclrtMemPoolDestroy(nullptr)),
      US_ATTEMPT(kOuter, aclrtMemPoolSetAttr(nullptr, attribute, &value)),
      US_ATTEMPT(kInner, aclrtMemPoolSetAttr(own.get(), attribute, nullptr)),
      US_ATTEMPT(kOuter, aclrtMemPoolGetAttr(nullptr, attribute, &value)),
      US_ATTEMPT(kInner, aclrtMemPoolGetAttr(own.get(), attribute, nullptr)),
      US_ATTEMPT(kOuter, aclrtMemPoolMallocAsync(nullptr, 1, own.get(), stream.get())),
      US_ATTEMPT(kOuter, aclrtMemPoolMallocAsync(&out, 1, nullptr, stream.get())),
      US_ATTEMPT(kOuter, aclrtMemPoolMallocAsync(&out, 1, own.get(), nullptr)),
      US_ATTEMPT(ACL_SUCCESS, aclrtMemPoolMallocAsync(&out, 0, own.get(), stream.get())),
      US_ATTEMPT(unable, aclrtMemPoolMallocAsync(&out, SIZE_MAX, own.get(), stream.get())),
      US_ATTEMPT(unable, aclrtMemPoolMallocAsync(&out, kTiB, own.get(), stream.get())),
      US_ATTEMPT(kOuter, aclrtMemPoolFreeAsync(nullptr, stream.get())),
      US_ATTEMPT(unable, aclrtMemPoolFreeAsync(data, nullptr)),
      US_ATTEMPT(kOuter, aclrtMemPoolTrimTo(nullptr, 0)),
      US_ATTEMPT(unable, aclrtMemPoolTrimTo(own.get(), SIZE_MAX)),
  };
  run_all(attempts, bystander);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(new_pool, nullptr);
  EXPECT_EQ(own.used(), kGranule);
}

TEST_F(HostileArguments, NullPointersToAllocators) {
  const TestStream stream;
  const Bystander bystander;
  const std::vector<Attempt> attempts = {
      US_ATTEMPT(kOuter, aclrtAllocatorDestroyDesc(nullptr)),
      US_ATTEMPT(kOuter, aclrtAllocatorSetObjToDesc(nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtAllocatorSetAllocFuncToDesc(nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtAllocatorSetFreeFuncToDesc(nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtAllocatorSetAllocAdviseFuncToDesc(nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtAllocatorSetGetAddrFromBlockFuncToDesc(nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtAllocatorRegister(nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtAllocatorGetByStream(stream.get(), nullptr, nullptr, nullptr, nullptr,
                                                   nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtAllocatorUnregister(nullptr)),
  };
  run_all(attempts, bystander);
}

void on_device_state(uint32_t, aclrtDeviceState, void*) {}

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
      US_ATTEMPT(kOuter, aclInitCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, nullptr)),
      US_ATTEMPT(kOuter, aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetVersion(nullptr, &number32, &number32)),
      US_ATTEMPT(kOuter, aclrtGetVersion(&number32, nullptr, &number32)),
      US_ATTEMPT(kOuter, aclrtGetVersion(&number32, &number32, nullptr)),
      US_ATTEMPT(kOuter, aclsysGetVersionStr(nullptr, text.data())),
      US_ATTEMPT(kOuter, aclsysGetVersionStr(package, nullptr)),
      US_ATTEMPT(kOuter, aclsysGetVersionNum(nullptr, &number32)),
      US_ATTEMPT(kOuter, aclsysGetVersionNum(package, nullptr)),
      US_ATTEMPT(kOuter, aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, nullptr)),
      US_ATTEMPT(kOuter, aclGetCannAttributeList(nullptr, &size)),
      US_ATTEMPT(kOuter, aclGetCannAttributeList(&attributes, nullptr)),
      US_ATTEMPT(kOuter, aclGetCannAttribute(ACL_CANN_ATTR_BF16, nullptr)),
      US_ATTEMPT(kOuter, aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, nullptr)),
      US_ATTEMPT(kOuter, aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, nullptr)),
      US_ATTEMPT(kInner, aclrtSnapShotProcessLock(INT32_MIN, nullptr)),
      US_ATTEMPT(kInner, aclrtSnapShotProcessBackup(INT32_MAX, nullptr)),
      US_ATTEMPT(kInner, aclrtSnapShotProcessRestore(-1, nullptr)),
      US_ATTEMPT(kInner, aclrtSnapShotProcessUnlock(0, &size)),
      US_ATTEMPT(kOuter, aclrtGetDevice(nullptr)),
      US_ATTEMPT(kOuter, aclrtGetDeviceCount(nullptr)),
      US_ATTEMPT(kOuter, aclrtGetRunMode(nullptr)),
      US_ATTEMPT(kInner, aclrtDeviceCanAccessPeer(nullptr, 0, 1)),
      US_ATTEMPT(kOuter, aclrtDeviceGetBareTgid(nullptr)),
      US_ATTEMPT(kOuter, aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, nullptr)),
      US_ATTEMPT(kOuter,
                 aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, nullptr)),
      US_ATTEMPT(kOuter, aclrtQueryDeviceStatus(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetDeviceUtilizationRate(0, nullptr)),
      US_ATTEMPT(ACL_SUCCESS, aclrtDeviceGetStreamPriorityRange(nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtDeviceGetUuid(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetLogicDevIdByUserDevId(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetUserDevIdByLogicDevId(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetLogicDevIdByPhyDevId(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetPhyDevIdByLogicDevId(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetUserDevIdByPhyDevId(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetPhyDevIdByUserDevId(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtDevicePeerAccessStatus(0, 1, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetPrimaryCtxState(0, nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetDevicesTopo(0, 1, nullptr)),
      US_ATTEMPT(kOuter, aclrtRegDeviceStateCallback(nullptr, on_device_state, nullptr)),
      US_ATTEMPT(kAnyResult, aclrtRegDeviceStateCallback("unknown", nullptr, nullptr)),
      US_ATTEMPT(kAnyFailure, aclrtGetDeviceSatMode(nullptr)),
      US_ATTEMPT(kAnyFailure, aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, nullptr)),
      US_ATTEMPT(kAnyFailure, aclrtGetStreamResLimit(nullptr, ACL_RT_DEV_RES_CUBE_CORE, nullptr)),
      US_ATTEMPT(kAnyFailure, aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, nullptr)),
      US_ATTEMPT(kOuter, aclrtCreateContext(nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtDestroyContext(nullptr)),
      US_ATTEMPT(kOuter, aclrtSetCurrentContext(nullptr)),
      US_ATTEMPT(kOuter, aclrtGetCurrentContext(nullptr)),
      US_ATTEMPT(kOuter, aclrtCtxGetCurrentDefaultStream(nullptr)),
      US_ATTEMPT(kOuter, aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr)),
      US_ATTEMPT(kInner, aclrtExceptionInfoCallbackRegister(nullptr)),
      US_ATTEMPT(kInner, aclrtExceptionInfoCallbackUnregister(nullptr)),
      US_ATTEMPT(ACL_SUCCESS, aclrtSetExceptionInfoCallback(nullptr)),
      US_ATTEMPT(kOuter, aclrtGetMemUceInfo(0, nullptr, 1, &size)),
      US_ATTEMPT(kOuter, aclrtGetMemUceInfo(0, faults, 1, nullptr)),
      US_ATTEMPT(kOuter, aclrtMemUceRepair(0, nullptr, 1)),
      US_ATTEMPT(kOuter, aclrtMemUceRepair(0, faults, SIZE_MAX)),
      US_ATTEMPT(kOuter, aclrtGetErrorVerbose(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtRepairError(0, nullptr)),
      US_ATTEMPT(kOuter, aclrtSetOpExecuteTimeOutV2(1, nullptr)),
      US_ATTEMPT(kOuter, aclrtGetOpTimeOutInterval(nullptr)),
      US_ATTEMPT(kOuter, aclrtGetOpExecuteTimeout(nullptr)),
      US_ATTEMPT(kOuter, aclrtGetThreadLastTaskId(nullptr)),
      US_ATTEMPT(kAnyResult, aclrtSetDeviceTaskAbortCallback(nullptr, on_task_abort, nullptr)),
      US_ATTEMPT(kOuter, aclrtDeviceGetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, nullptr)),
      US_ATTEMPT(kOuter, aclrtDeviceGetPCIBusId(0, nullptr, 13)),
      US_ATTEMPT(kInner, aclrtDeviceGetPCIBusId(0, text.data(), -1)),
      US_ATTEMPT(kOuter, aclrtDeviceGetByPCIBusId(nullptr, &number32)),
      US_ATTEMPT(kOuter, aclrtDeviceGetByPCIBusId("0000:01:00.0", nullptr)),
      US_ATTEMPT(kInner, aclrtDeviceGetByPCIBusId("", &number32)),
      US_ATTEMPT(kOuter, aclrtDeviceGetHostAtomicCapabilities(nullptr, nullptr, UINT32_MAX, 0)),
      US_ATTEMPT(kOuter, aclrtDeviceGetP2PAtomicCapabilities(nullptr, nullptr, 0, 0, 1)),
      US_ATTEMPT(kOuter, aclrtSetTsDevice(enum_value<aclrtTsId>(-1))),
      US_ATTEMPT(kOuter, aclrtCtxGetFloatOverflowAddr(nullptr)),
      US_ATTEMPT(kOuter, aclrtGetOverflowStatus(nullptr, 64, nullptr)),
      US_ATTEMPT(kInner, aclrtGetOverflowStatus(&size, SIZE_MAX, nullptr)),
      US_ATTEMPT(kInner, aclrtGetOverflowStatus(address(UINT64_MAX - 8), 64, nullptr)),
      US_ATTEMPT(kInner, aclrtPersistentTaskClean(nullptr)),
      US_ATTEMPT(kOuter, aclrtActiveStream(nullptr, nullptr)),
      US_ATTEMPT(kOuter, aclrtSwitchStream(nullptr, ACL_RT_EQUAL, nullptr, ACL_RT_SWITCH_INT32,
                                           nullptr, nullptr, nullptr)),
  };
  run_all(attempts, bystander);

  EXPECT_EQ(aclrtGetTaskIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetStreamIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetThreadIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetDeviceIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetErrorCodeFromExceptionInfo(nullptr), UINT32_MAX);
}

TEST_F(HostileArguments, NotifiesOfNowhere) {
  const Bystander bystander;
  aclrtNotify good = nullptr;
  ASSERT_EQ(aclrtCreateNotify(&good, 0), ACL_SUCCESS);
  constexpr aclError kStale = ACL_ERROR_RT_INVALID_HANDLE;
  char key[65] = {};
  int32_t id = 0;
  uint32_t id32 = 0;
  aclrtServerPid server{};
  aclrtNotify made = nullptr;
  aclrtCntNotifyRecordInfo change{};
  aclrtCntNotifyWaitInfo condition{};
  for (const uint64_t value : {uint64_t{1}, uint64_t{0xFFFF}, uint64_t{1} << 47, UINT64_MAX,
                               number(good) + 1, number(good) ^ uint64_t{1} << 63}) {
    const aclrtNotify bad = address(value);
    aclrtNotify list[] = {bad};
    const std::vector<Attempt> attempts = {
        US_ATTEMPT(kStale, aclrtDestroyNotify(bad)),
        US_ATTEMPT(kStale, aclrtRecordNotify(bad, nullptr)),
        US_ATTEMPT(kStale, aclrtWaitAndResetNotify(bad, nullptr, UINT32_MAX)),
        US_ATTEMPT(kStale, aclrtGetNotifyId(bad, &id32)),
        US_ATTEMPT(kStale, aclrtNotifyBatchReset(list, 1)),
        US_ATTEMPT(kStale, aclrtNotifyBatchReset(list, SIZE_MAX)),
        US_ATTEMPT(kStale, aclrtNotifyGetExportKey(bad, key, SIZE_MAX, 0)),
        US_ATTEMPT(kStale, aclrtNotifySetImportPid(bad, &id, SIZE_MAX)),
        US_ATTEMPT(kUnsupported, aclrtNotifySetImportPidInterServer(bad, &server, SIZE_MAX)),
        US_ATTEMPT(kUnsupported, aclrtCntNotifyCreate(&made, UINT64_MAX)),
        US_ATTEMPT(kUnsupported, aclrtCntNotifyRecord(bad, nullptr, &change)),
        US_ATTEMPT(kUnsupported, aclrtCntNotifyWaitWithTimeout(bad, nullptr, &condition)),
        US_ATTEMPT(kUnsupported, aclrtCntNotifyReset(bad, nullptr)),
        US_ATTEMPT(kUnsupported, aclrtCntNotifyGetId(bad, &id32)),
        US_ATTEMPT(kUnsupported, aclrtCntNotifyDestroy(bad)),
        US_ATTEMPT(kInner, aclrtCreateNotify(&made, UINT64_MAX)),
        US_ATTEMPT(kInner, aclrtNotifyGetExportKey(good, key, 0, 0)),
        US_ATTEMPT(kInner, aclrtNotifyImportByKey(&made, "\xFF\x01%s%n", UINT64_MAX)),
        US_ATTEMPT(kStale, aclrtNotifyImportByKey(&made, "\xFF\x01%s%n", 0)),
        US_ATTEMPT(kStale, aclrtRecordNotify(good, bad)),
    };
    run_all(attempts, bystander);
  }
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(aclrtDestroyNotify(good), ACL_SUCCESS);
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
      US_ATTEMPT(kOuter, aclrtMallocPhysical(&handle, 0, &huge, 0)),
      US_ATTEMPT(kInner, aclrtMallocPhysical(&handle, SIZE_MAX, &huge, 0)),
      US_ATTEMPT(kInner, aclrtMallocPhysical(&handle, SIZE_MAX, &host, 0)),
      US_ATTEMPT(kNoMemory, aclrtMallocPhysical(&handle, kMostGranules, &huge, 0)),
      US_ATTEMPT(kNoMemory, aclrtMallocPhysical(&handle, kMostGranules, &normal, 0)),
      US_ATTEMPT(kNoMemory, aclrtMallocPhysical(&handle, kMostGiB, &giant, 0)),
      US_ATTEMPT(kAnyFailure, aclrtMallocPhysical(&handle, kMostGranules, &host, 0)),
      US_ATTEMPT(kOuter, aclrtMallocPhysical(&handle, kGranule, &huge, UINT64_MAX)),
      US_ATTEMPT(kOuter, aclrtReserveMemAddress(&range, 0, 0, nullptr, 0)),
      US_ATTEMPT(kAnyFailure, aclrtReserveMemAddress(&range, SIZE_MAX, 0, nullptr, 0)),
      US_ATTEMPT(kAnyFailure, aclrtReserveMemAddress(&range, kMostGranules, 0, nullptr, 0)),
      US_ATTEMPT(kAnyFailure, aclrtReserveMemAddress(&range, size_t{1} << 63, 0, nullptr, 0)),
      US_ATTEMPT(kInner, aclrtReserveMemAddress(&range, kGranule, SIZE_MAX, nullptr, 0)),
      US_ATTEMPT(kOuter, aclrtReserveMemAddress(&range, kGranule, 0, nullptr, UINT64_MAX)),
      US_ATTEMPT(kInner, aclrtReserveMemAddress(&range, SIZE_MAX, 0, wished, 0)),
      US_ATTEMPT(kInner, aclrtReserveMemAddress(&range, kMostGiB, 0, wished, 0)),
      US_ATTEMPT(kOuter, aclrtReserveMemAddressNoUCMemory(&range, 0, 0, wished, 0)),
      US_ATTEMPT(kUnsupported, aclrtReserveMemAddressNoUCMemory(&range, SIZE_MAX, 0, wished, 0)),
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
      US_ATTEMPT(kOuter, aclrtMapMem(reserved, 0, 0, handle, 0)),
      US_ATTEMPT(kInner, aclrtMapMem(reserved, SIZE_MAX, 0, handle, 0)),
      US_ATTEMPT(kInner, aclrtMapMem(reserved, SIZE_MAX / kGranule * kGranule, 0, handle, 0)),
      US_ATTEMPT(kInner, aclrtMapMem(reserved, kGranule, SIZE_MAX, handle, 0)),
      US_ATTEMPT(kInner, aclrtMapMem(reserved, kGranule, kGranule, handle, 0)),
      US_ATTEMPT(kOuter, aclrtMapMem(reserved, kGranule, 0, handle, UINT64_MAX)),
      US_ATTEMPT(kOuter, aclrtMemMapNoAccess(reserved, 0, 0, handle, 0)),
      US_ATTEMPT(kInner, aclrtMemMapNoAccess(reserved, SIZE_MAX, 0, handle, 0)),
      US_ATTEMPT(kInner, aclrtMemMapNoAccess(reserved, kGranule, SIZE_MAX, handle, 0)),
      US_ATTEMPT(kInner, aclrtMemSetAccess(data, 0, grant, 1)),
      US_ATTEMPT(kInner, aclrtMemSetAccess(data, SIZE_MAX, grant, 1)),
      US_ATTEMPT(kInner, aclrtMemSetAccess(data, kGranule, grant, 0)),
      US_ATTEMPT(kInner, aclrtMemSetAccess(data, kGranule, grant, SIZE_MAX)),
      US_ATTEMPT(kUnsupported, aclrtMemGetAllocationGranularity(&property, undefined, &size)),
      US_ATTEMPT(kOuter, aclrtMemMapSelectedLink(reserved, 0, data, 0)),
      US_ATTEMPT(kUnsupported, aclrtMemMapSelectedLink(reserved, SIZE_MAX, data, 0)),
      US_ATTEMPT(kOuter, aclrtMemMapSelectedLink(reserved, kGranule, data, UINT32_MAX)),
      US_ATTEMPT(ACL_SUCCESS, aclrtMemcpy(data, 0, host.data(), 0, ACL_MEMCPY_DEFAULT)),
      US_ATTEMPT(kInner, aclrtMemcpy(data, 0, host.data(), 1, ACL_MEMCPY_DEFAULT)),
      US_ATTEMPT(kInner, aclrtMemcpy(data, 0, host.data(), SIZE_MAX, ACL_MEMCPY_DEFAULT)),
      US_ATTEMPT(kInner, aclrtMemcpy(data, SIZE_MAX, host.data(), SIZE_MAX, ACL_MEMCPY_DEFAULT)),
      US_ATTEMPT(kInner, aclrtMemcpy(host.data(), SIZE_MAX, data, SIZE_MAX, ACL_MEMCPY_DEFAULT)),
      US_ATTEMPT(kInner, aclrtMemcpy(inside, SIZE_MAX, data, SIZE_MAX, ACL_MEMCPY_DEFAULT)),
      US_ATTEMPT(ACL_SUCCESS, aclrtMemset(data, 0, 1, 0)),
      US_ATTEMPT(kInner, aclrtMemset(data, 0, 1, SIZE_MAX)),
      US_ATTEMPT(kInner, aclrtMemset(data, SIZE_MAX, 1, SIZE_MAX)),
      US_ATTEMPT(kInner, aclrtMemset(inside, SIZE_MAX, 1, SIZE_MAX - kPage)),
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
        US_ATTEMPT(kNoDevice, aclrtSetDevice(id)),
        US_ATTEMPT(kNoDevice, aclrtResetDevice(id)),
        US_ATTEMPT(kNoDevice, aclrtResetDeviceForce(id)),
        US_ATTEMPT(kNoDevice, aclrtCreateContext(&context, id)),
        US_ATTEMPT(kNoDevice, aclrtMallocPhysical(&handle, kGranule, &property, 0)),
        US_ATTEMPT(kNoDevice, aclrtMemGetAllocationGranularity(&property, minimum, &size)),
        US_ATTEMPT(kInner, aclrtMemSetAccess(data, kGranule, &grant, 1)),
        US_ATTEMPT(kInner, aclrtMemGetAccess(data, &location, &flag)),
        US_ATTEMPT(kInner,
                   aclrtGetDeviceInfo(unsigned_id, ACL_DEV_ATTR_L2_CACHE_SIZE, &long_value)),
        US_ATTEMPT(kNoDevice, aclrtQueryDeviceStatus(id, &status)),
        US_ATTEMPT(kNoDevice, aclrtGetPrimaryCtxState(id, nullptr, &value)),
        US_ATTEMPT(kNoDevice, aclrtGetLogicDevIdByUserDevId(id, &value)),
        US_ATTEMPT(kAnyFailure, aclrtDeviceEnablePeerAccess(id, 0)),
        US_ATTEMPT(kAnyFailure, aclrtDeviceDisablePeerAccess(id)),
        US_ATTEMPT(kAnyResult, aclrtDeviceCanAccessPeer(&value, id, 0)),
        US_ATTEMPT(kAnyResult, aclrtDevicePeerAccessStatus(id, 0, &value)),
        US_ATTEMPT(kAnyResult, aclrtGetDevicesTopo(unsigned_id, 0, &links)),
        US_ATTEMPT(kAnyResult, aclrtDeviceTaskAbort(id, 1)),
    };
    run_all(attempts, bystander);
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(context, nullptr);
  }
}

#undef US_TRY

}  // namespace
}  // namespace understudy_test
