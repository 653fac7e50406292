// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/call_table.h"

#include <array>
#include <bit>
#include <cstddef>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "acl/acl_rt_allocator.h"
#include "acl/ops/acl_dvpp.h"

namespace understudy::command {

namespace {

// An argument from its word: numbers and pointers are in it, structures behind it.
template <typename T>
T from_word(uint64_t word) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(word);  // NOLINT(performance-no-int-to-ptr)
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(word));
  } else if constexpr (std::is_same_v<T, aclrtMemManagedLocation>) {
    T location{};
    location.id = static_cast<int32_t>(word);
    location.type = static_cast<aclrtMemManagedLocationType>(word >> 32);
    return location;
  } else if constexpr (std::is_class_v<T>) {
    return *reinterpret_cast<const T*>(word);  // NOLINT(performance-no-int-to-ptr)
  } else {
    return static_cast<T>(word);
  }
}

template <typename Function>
struct Caller;

template <typename Answer, typename... Parameters>
struct Caller<Answer (*)(Parameters...)> {
  static constexpr size_t kParameters = sizeof...(Parameters);

  static aclError invoke(void* address, const uint64_t* words) {
    return invoke_each(reinterpret_cast<Answer (*)(Parameters...)>(address), words,
                       std::index_sequence_for<Parameters...>());
  }

 private:
  template <size_t... Index>
  static aclError invoke_each(Answer (*function)(Parameters...), const uint64_t* words,
                              std::index_sequence<Index...>) {
    (void)words;
    if constexpr (std::is_same_v<Answer, aclError>) {
      return function(from_word<Parameters>(words[Index])...);
    } else {
      (void)function(from_word<Parameters>(words[Index])...);
      return ACL_SUCCESS;
    }
  }
};

constexpr size_t count_words(std::string_view roles) {
  size_t count = 0;
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] != ' ' && (i == 0 || roles[i - 1] == ' ')) ++count;
  }
  return count;
}

template <typename Function>
consteval ReplayedCall again(const char* name, CallGroup group, const char* roles,
                             const char* undo = nullptr) {
  if (count_words(roles) != Caller<Function>::kParameters) throw "a role for each parameter";
  return {name, group, roles, &Caller<Function>::invoke, undo};
}

constexpr CallGroup kSetup = CallGroup::kSetup;
constexpr CallGroup kMemory = CallGroup::kMemory;
constexpr CallGroup kOther = CallGroup::kOther;

#define US_AGAIN(function, ...) again<decltype(&::function)>(#function, __VA_ARGS__)
#define US_NEVER(function, why) \
  ReplayedCall { #function, kOther, why, nullptr, nullptr }

constexpr const char* kAllocators = "allocators of the program are not part of a recording";
constexpr const char* kBuffers = "addresses of data buffers are not part of a recording";
constexpr const char* kServers = "processes of other servers are not there";
constexpr const char* kPlaces = "the addresses that it reads in memory are not part of a recording";
constexpr const char* kOfRecorded = "it is about the process that was recorded";
constexpr const char* kCpuWrites =
    "the value that it waits for may be one that the program's CPU wrote";

constexpr auto kCalls = std::to_array<ReplayedCall>({
    // Initialization and devices
    US_AGAIN(aclInit, kSetup, "t"),
    US_AGAIN(aclFinalize, kSetup, ""),
    US_AGAIN(aclFinalizeReference, kSetup, ">."),
    US_AGAIN(aclInitCallbackRegister, kOther, ". f x"),
    US_AGAIN(aclInitCallbackUnRegister, kOther, ". f"),
    US_AGAIN(aclFinalizeCallbackRegister, kOther, ". f x"),
    US_AGAIN(aclFinalizeCallbackUnRegister, kOther, ". f"),
    US_AGAIN(aclrtSetDevice, kSetup, "."),
    US_AGAIN(aclrtResetDevice, kSetup, "."),
    US_AGAIN(aclrtResetDeviceForce, kSetup, "."),
    US_AGAIN(aclrtGetDevice, kOther, ">."),
    US_AGAIN(aclrtGetDeviceCount, kOther, ">."),
    US_AGAIN(aclrtGetRunMode, kOther, ">."),
    US_AGAIN(aclrtSynchronizeDevice, kSetup, ""),
    US_AGAIN(aclrtSynchronizeDeviceWithTimeout, kSetup, "."),
    US_AGAIN(aclrtDeviceGetBareTgid, kOther, ">."),
    US_AGAIN(aclrtGetPrimaryCtxState, kOther, ". >. >."),
    US_AGAIN(aclrtRegDeviceStateCallback, kOther, "t f x"),
    US_AGAIN(aclrtDeviceGetPCIBusId, kOther, ". w ."),
    US_AGAIN(aclrtDeviceGetByPCIBusId, kOther, "t >."),
    US_AGAIN(aclrtDeviceGetHostAtomicCapabilities, kOther, "w m . ."),
    US_AGAIN(aclrtDeviceGetP2PAtomicCapabilities, kOther, "w m . . ."),
    US_AGAIN(aclrtGetDeviceInfo, kOther, ". . >."),
    US_AGAIN(aclrtGetDeviceCapability, kOther, ". . >."),
    US_AGAIN(aclrtQueryDeviceStatus, kOther, ". >."),
    US_AGAIN(aclrtGetDeviceUtilizationRate, kOther, ". w"),
    US_AGAIN(aclrtDeviceGetStreamPriorityRange, kOther, ">. >."),
    US_AGAIN(aclrtDeviceGetUuid, kOther, ". w"),
    US_AGAIN(aclrtGetLogicDevIdByUserDevId, kOther, ". >."),
    US_AGAIN(aclrtGetUserDevIdByLogicDevId, kOther, ". >."),
    US_AGAIN(aclrtGetLogicDevIdByPhyDevId, kOther, ". >."),
    US_AGAIN(aclrtGetPhyDevIdByLogicDevId, kOther, ". >."),
    US_AGAIN(aclrtGetUserDevIdByPhyDevId, kOther, ". >."),
    US_AGAIN(aclrtGetPhyDevIdByUserDevId, kOther, ". >."),
    US_AGAIN(aclrtGetDevicesTopo, kOther, ". . >."),
    US_AGAIN(aclrtSetDeviceSatMode, kOther, "."),
    US_AGAIN(aclrtGetDeviceSatMode, kOther, ">."),
    US_AGAIN(aclrtGetDeviceResLimit, kOther, ". . >."),
    US_AGAIN(aclrtSetDeviceResLimit, kOther, ". . ."),
    US_AGAIN(aclrtResetDeviceResLimit, kOther, "."),
    US_AGAIN(aclrtGetStreamResLimit, kOther, "s . >."),
    US_AGAIN(aclrtSetStreamResLimit, kOther, "s . ."),
    US_AGAIN(aclrtResetStreamResLimit, kOther, "s"),
    US_AGAIN(aclrtUseStreamResInCurrentThread, kOther, "s"),
    US_AGAIN(aclrtUnuseStreamResInCurrentThread, kOther, "s"),
    US_AGAIN(aclrtGetResInCurrentThread, kOther, ". >."),
    US_AGAIN(aclrtDeviceSetLimit, kOther, ". ."),
    US_AGAIN(aclrtDeviceGetLimit, kOther, ". >."),
    US_AGAIN(aclrtDeviceCanAccessPeer, kOther, ">. . ."),
    US_AGAIN(aclrtDeviceEnablePeerAccess, kSetup, ". ."),
    US_AGAIN(aclrtDeviceDisablePeerAccess, kSetup, "."),
    US_AGAIN(aclrtDevicePeerAccessStatus, kOther, ". . >."),
    US_AGAIN(aclrtSetTsDevice, kOther, "."),

    // Versions
    US_AGAIN(aclrtGetVersion, kOther, ">. >. >."),
    US_AGAIN(aclsysGetVersionStr, kOther, "w w"),
    US_AGAIN(aclsysGetVersionNum, kOther, "w >."),
    US_AGAIN(aclsysGetCANNVersion, kOther, ". w"),
    US_AGAIN(aclrtGetSocName, kOther, ""),
    US_AGAIN(aclGetCannAttributeList, kOther, ">. >."),
    US_AGAIN(aclGetCannAttribute, kOther, ". >."),
    US_AGAIN(aclGetDeviceCapability, kOther, ". . >."),

    // Contexts
    US_AGAIN(aclrtCreateContext, kSetup, ">c .", "aclrtDestroyContext"),
    US_AGAIN(aclrtDestroyContext, kSetup, "c"),
    US_AGAIN(aclrtSetCurrentContext, kSetup, "c"),
    US_AGAIN(aclrtGetCurrentContext, kSetup, ">c"),
    US_AGAIN(aclrtCtxGetCurrentDefaultStream, kSetup, ">s"),
    US_AGAIN(aclrtCtxSetSysParamOpt, kOther, ". ."),
    US_AGAIN(aclrtCtxGetSysParamOpt, kOther, ". >."),
    US_AGAIN(aclrtSetSysParamOpt, kOther, ". ."),
    US_AGAIN(aclrtGetSysParamOpt, kOther, ". >."),

    // Memory of devices
    US_AGAIN(aclrtMalloc, kMemory, ">a1 . .", "aclrtFree"),
    US_AGAIN(aclrtMallocAlign32, kMemory, ">a1 . .", "aclrtFree"),
    US_AGAIN(aclrtMallocCached, kMemory, ">a1 . .", "aclrtFree"),
    US_AGAIN(aclrtMallocWithCfg, kMemory, ">a1 . . g", "aclrtFree"),
    US_AGAIN(aclrtMallocForTaskScheduler, kMemory, ">a1 . . g", "aclrtFree"),
    US_AGAIN(acldvppMalloc, kMemory, ">a1 .", "acldvppFree"),
    US_AGAIN(aclrtFree, kMemory, "-a"),
    US_AGAIN(acldvppFree, kMemory, "-a"),
    US_AGAIN(aclrtFreeWithDevSync, kMemory, "-a"),
    US_AGAIN(aclrtMemFlush, kOther, "a1 ."),
    US_AGAIN(aclrtMemInvalidate, kOther, "a1 ."),
    US_AGAIN(aclrtGetMemInfo, kOther, ". >. >."),
    US_AGAIN(aclrtGetMemUsageInfo, kOther, ". w . >."),
    US_AGAIN(aclrtCheckMemType, kOther, "A . . >. ."),
    US_AGAIN(aclrtMemP2PMap, kOther, "a . . ."),
    US_AGAIN(aclrtPointerGetAttributes, kOther, "a w"),
    US_AGAIN(aclrtMemGetAddressRange, kOther, "a >. >."),

    // Memory of the host, and managed memory
    US_AGAIN(aclrtMallocHost, kMemory, ">a1 .", "aclrtFreeHost"),
    US_AGAIN(aclrtMallocHostWithCfg, kMemory, ">a1 . g", "aclrtFreeHost"),
    US_AGAIN(aclrtFreeHost, kMemory, "-a"),
    US_AGAIN(aclrtFreeHostWithDevSync, kMemory, "-a"),
    US_AGAIN(aclrtHostRegister, kMemory, "r1 . . >a1"),
    US_AGAIN(aclrtHostRegisterV2, kMemory, "r1 . ."),
    US_AGAIN(aclrtHostGetDevicePointer, kMemory, "a >a=0 ."),
    US_AGAIN(aclrtHostUnregister, kMemory, "a"),
    US_AGAIN(aclrtHostMemMapCapabilities, kOther, ". . w"),
    US_AGAIN(aclrtMemAllocManaged, kMemory, ">a1 . .", "aclrtFree"),
    US_AGAIN(aclrtMemManagedAdvise, kMemory, "a . . ."),
    US_AGAIN(aclrtMemManagedGetAttr, kOther, ". a . w ."),
    US_NEVER(aclrtMemManagedGetAttrs, "where it writes its answers is not part of a recording"),
    US_AGAIN(aclrtMemManagedPrefetchAsync, kMemory, "a . . . s"),
    US_AGAIN(aclrtMemManagedPrefetchBatchAsync, kMemory, "A1 m . m m . . s"),

    // Virtual memory
    US_AGAIN(aclrtMallocPhysical, kMemory, ">b . p .", "aclrtFreePhysical"),
    US_AGAIN(aclrtFreePhysical, kMemory, "b"),
    US_AGAIN(aclrtMemGetAllocationGranularity, kOther, "p . >."),
    US_AGAIN(aclrtMemGetAllocationPropertiesFromHandle, kOther, "b w"),
    US_AGAIN(aclrtReserveMemAddress, kMemory, ">a1 . . a .", "aclrtReleaseMemAddress"),
    US_AGAIN(aclrtReserveMemAddressNoUCMemory, kMemory, ">a1 . . a .", "aclrtReleaseMemAddress"),
    US_AGAIN(aclrtReleaseMemAddress, kMemory, "-a"),
    US_AGAIN(aclrtMapMem, kMemory, "a . . b .", "aclrtUnmapMem"),
    US_AGAIN(aclrtMemMapNoAccess, kMemory, "a . . b .", "aclrtUnmapMem"),
    US_AGAIN(aclrtUnmapMem, kMemory, "a"),
    US_AGAIN(aclrtMemMapSelectedLink, kMemory, "a . a ."),
    US_AGAIN(aclrtMemMapSetLink, kMemory, "b ."),
    US_AGAIN(aclrtMemRetainAllocationHandle, kMemory, "a >b", "aclrtFreePhysical"),
    US_AGAIN(aclrtMemSetAccess, kMemory, "a . m ."),
    US_AGAIN(aclrtMemGetAccess, kOther, "a L >."),

    // Sharing
    US_AGAIN(aclrtMemExportToShareableHandle, kMemory, "b . . >o"),
    US_AGAIN(aclrtMemExportToShareableHandleV2, kMemory, "b . . >O"),
    US_AGAIN(aclrtMemSetPidToShareableHandle, kMemory, "o q ."),
    US_AGAIN(aclrtMemSetPidToShareableHandleV2, kMemory, "O . q ."),
    US_AGAIN(aclrtMemImportFromShareableHandle, kMemory, "o . >b", "aclrtFreePhysical"),
    US_AGAIN(aclrtMemImportFromShareableHandleV2, kMemory, "O . . >b", "aclrtFreePhysical"),
    US_AGAIN(aclrtIpcMemGetExportKey, kMemory, "a . >i1 . ."),
    US_AGAIN(aclrtIpcMemSetImportPid, kMemory, "i q ."),
    US_AGAIN(aclrtIpcMemImportByKey, kMemory, ">a=1 i ."),
    US_AGAIN(aclrtIpcMemClose, kMemory, "i"),
    US_AGAIN(aclrtIpcMemSetAttr, kMemory, "i . ."),
    US_NEVER(aclrtIpcMemImportPidInterServer, kServers),
    US_AGAIN(aclrtIpcGetEventHandle, kOther, "e >j"),
    US_AGAIN(aclrtIpcOpenEventHandle, kOther, "j >e", "aclrtDestroyEvent"),

    // Pools
    US_AGAIN(aclrtMemPoolCreate, kMemory, ">l m", "aclrtMemPoolDestroy"),
    US_AGAIN(aclrtMemPoolDestroy, kMemory, "l"),
    US_AGAIN(aclrtMemPoolSetAttr, kMemory, "l . m"),
    US_AGAIN(aclrtMemPoolGetAttr, kOther, "l . w"),
    US_AGAIN(aclrtMemPoolMallocAsync, kMemory, ">a1 . l s"),
    US_AGAIN(aclrtMemPoolFreeAsync, kMemory, "-a s"),
    US_AGAIN(aclrtMemPoolTrimTo, kMemory, "l ."),

    // Copies and sets
    US_AGAIN(aclrtMemcpy, kOther, "a3 . a3 . ."),
    US_AGAIN(aclrtMemcpyAsync, kOther, "a3 . a3 . . s"),
    US_AGAIN(aclrtMemcpyAsyncWithCondition, kOther, "a3 . a3 . . s"),
    US_AGAIN(aclrtMemset, kOther, "a3 . . ."),
    US_AGAIN(aclrtMemsetAsync, kOther, "a3 . . . s"),
    US_AGAIN(aclrtMemsetD32, kOther, "a1 . . ."),
    US_AGAIN(aclrtMemsetD32Async, kOther, "a1 . . . s"),
    US_AGAIN(aclrtMemcpy2d, kOther, "a1*5 . a3*5 . . . ."),
    US_AGAIN(aclrtMemcpy2dAsync, kOther, "a1*5 . a3*5 . . . . s"),
    US_AGAIN(aclrtMemcpyBatch, kOther, "A3 m A3 m . m m . w"),
    US_AGAIN(aclrtMemcpyBatchAsync, kOther, "A3 m A3 m . m m . w s"),
    US_AGAIN(aclrtMemcpyBatchV2, kOther, "A3 m A3 m . m m ."),
    US_AGAIN(aclrtMemcpyBatchAsyncV2, kOther, "A3 m A3 m . m m . s"),
    US_AGAIN(aclrtGetMemcpyDescSize, kOther, ". >."),
    US_AGAIN(aclrtSetMemcpyDesc, kOther, "r . a4 a4 . x"),
    US_AGAIN(aclrtMemcpyAsyncWithDesc, kOther, "r . s"),
    US_NEVER(aclrtMemcpyAsyncWithOffset, kPlaces),
    US_AGAIN(aclrtReduceAsync, kOther, "a a . . . s x"),
    US_AGAIN(aclrtGetSymbolAddress, kOther, "x >."),
    US_AGAIN(aclrtGetSymbolSize, kOther, "x >."),
    US_AGAIN(aclrtMemcpyFromSymbol, kOther, "a3 . x . . ."),
    US_AGAIN(aclrtMemcpyFromSymbolAsync, kOther, "a3 . x . . . s"),
    US_AGAIN(aclrtMemcpyToSymbol, kOther, "x a2 . . ."),
    US_AGAIN(aclrtMemcpyToSymbolAsync, kOther, "x a2 . . . s"),
    US_AGAIN(aclrtCmoAsync, kOther, "a1 . . s"),
    US_AGAIN(aclrtCmoAsyncWithBarrier, kOther, "a1 . . . s"),
    US_AGAIN(aclrtCmoWaitBarrier, kOther, "w s ."),
    US_AGAIN(aclrtCmoGetDescSize, kOther, ">."),
    US_AGAIN(aclrtCmoSetDesc, kOther, "r a2 ."),
    US_AGAIN(aclrtCmoAsyncWithDesc, kOther, "r . s x"),
    US_AGAIN(aclrtValueWrite, kOther, "a . . s"),
    US_NEVER(aclrtValueWait, kCpuWrites),

    // Streams
    US_AGAIN(aclrtCreateStream, kSetup, ">s", "aclrtDestroyStream"),
    US_AGAIN(aclrtCreateStreamWithConfig, kSetup, ">s . .", "aclrtDestroyStream"),
    US_AGAIN(aclrtDestroyStream, kSetup, "s"),
    US_AGAIN(aclrtDestroyStreamForce, kSetup, "s"),
    US_AGAIN(aclrtSynchronizeStream, kSetup, "s"),
    US_AGAIN(aclrtSynchronizeStreamWithTimeout, kSetup, "s ."),
    US_AGAIN(aclrtStreamQuery, kOther, "s >."),
    US_AGAIN(aclrtStreamAbort, kSetup, "s"),
    US_AGAIN(aclrtStreamStop, kOther, "s"),
    US_AGAIN(aclrtPersistentTaskClean, kOther, "s"),
    US_AGAIN(aclrtActiveStream, kOther, "s s"),
    US_AGAIN(aclrtSwitchStream, kOther, "a . a . s s s"),
    US_AGAIN(aclrtStreamGetId, kOther, "s >."),
    US_AGAIN(aclrtStreamGetPriority, kOther, "s >."),
    US_AGAIN(aclrtStreamGetFlags, kOther, "s >."),
    US_AGAIN(aclrtGetStreamAvailableNum, kOther, ">."),
    US_AGAIN(aclrtRegStreamStateCallback, kOther, "t f x"),
    US_AGAIN(aclrtSetStreamAttribute, kOther, "s . m"),
    US_AGAIN(aclrtGetStreamAttribute, kOther, "s . w"),
    US_AGAIN(aclrtSetStreamFailureMode, kSetup, "s ."),
    US_AGAIN(aclrtSetStreamOverflowSwitch, kOther, "s ."),
    US_AGAIN(aclrtGetStreamOverflowSwitch, kOther, "s >."),
    US_AGAIN(aclrtGetOverflowStatus, kOther, "a1 . s"),
    US_AGAIN(aclrtResetOverflowStatus, kOther, "s"),
    US_AGAIN(aclrtCtxGetFloatOverflowAddr, kOther, ">a"),

    // Events
    US_AGAIN(aclrtCreateEvent, kOther, ">e", "aclrtDestroyEvent"),
    US_AGAIN(aclrtCreateEventWithFlag, kOther, ">e .", "aclrtDestroyEvent"),
    US_AGAIN(aclrtCreateEventExWithFlag, kOther, ">e .", "aclrtDestroyEvent"),
    US_AGAIN(aclrtDestroyEvent, kOther, "e"),
    US_AGAIN(aclrtRecordEvent, kOther, "e s"),
    US_AGAIN(aclrtRecordEventWithFlag, kOther, "e s ."),
    US_AGAIN(aclrtResetEvent, kOther, "e s"),
    US_AGAIN(aclrtStreamWaitEvent, kOther, "s e"),
    US_AGAIN(aclrtStreamWaitEventWithTimeout, kOther, "s e ."),
    US_AGAIN(aclrtStreamWaitEventWithFlag, kOther, "s e . ."),
    US_AGAIN(aclrtSetOpWaitTimeout, kOther, "."),
    US_AGAIN(aclrtQueryEventStatus, kOther, "e >."),
    US_AGAIN(aclrtQueryEvent, kOther, "e >."),
    US_AGAIN(aclrtQueryEventWaitStatus, kOther, "e >."),
    US_AGAIN(aclrtSynchronizeEvent, kOther, "e"),
    US_AGAIN(aclrtSynchronizeEventWithTimeout, kOther, "e ."),
    US_AGAIN(aclrtEventElapsedTime, kOther, ">. e e"),
    US_AGAIN(aclrtEventGetTimestamp, kOther, "e >."),
    US_AGAIN(aclrtGetEventId, kOther, "e >."),
    US_AGAIN(aclrtGetEventAvailNum, kOther, ">."),

    // Notifies
    US_AGAIN(aclrtCreateNotify, kOther, ">n .", "aclrtDestroyNotify"),
    US_AGAIN(aclrtDestroyNotify, kOther, "n"),
    US_AGAIN(aclrtRecordNotify, kOther, "n s"),
    US_AGAIN(aclrtWaitAndResetNotify, kOther, "n s ."),
    US_AGAIN(aclrtGetNotifyId, kOther, "n >."),
    US_AGAIN(aclrtNotifyBatchReset, kOther, "H ."),
    US_AGAIN(aclrtNotifyGetExportKey, kOther, "n >i . ."),
    US_AGAIN(aclrtNotifySetImportPid, kOther, "n q ."),
    US_AGAIN(aclrtNotifyImportByKey, kOther, ">n i .", "aclrtDestroyNotify"),
    US_NEVER(aclrtNotifySetImportPidInterServer, kServers),
    US_AGAIN(aclrtCntNotifyCreate, kOther, ">k .", "aclrtCntNotifyDestroy"),
    US_AGAIN(aclrtCntNotifyRecord, kOther, "k s m"),
    US_AGAIN(aclrtCntNotifyWaitWithTimeout, kOther, "k s m"),
    US_AGAIN(aclrtCntNotifyReset, kOther, "k s"),
    US_AGAIN(aclrtCntNotifyGetId, kOther, "k >."),
    US_AGAIN(aclrtCntNotifyDestroy, kOther, "k"),

    // Functions of the program on streams
    US_AGAIN(aclrtLaunchCallback, kOther, "f x . s"),
    US_AGAIN(aclrtSubscribeReport, kOther, "d s"),
    US_AGAIN(aclrtUnSubscribeReport, kOther, "d s"),
    US_AGAIN(aclrtProcessReport, kOther, "."),
    US_AGAIN(aclrtLaunchHostFunc, kOther, "s F G"),

    // Errors, faults, snapshots
    US_AGAIN(aclGetRecentErrMsg, kOther, ""),
    US_AGAIN(aclrtPeekAtLastError, kOther, "."),
    US_AGAIN(aclrtGetLastError, kOther, "."),
    US_AGAIN(aclrtExceptionInfoCallbackRegister, kOther, "f"),
    US_AGAIN(aclrtExceptionInfoCallbackUnregister, kOther, "f"),
    US_AGAIN(aclrtSetExceptionInfoCallback, kOther, "f"),
    US_AGAIN(aclrtDeviceTaskAbort, kSetup, ". ."),
    US_AGAIN(aclrtSetDeviceTaskAbortCallback, kOther, "t f x"),
    US_AGAIN(aclrtGetMemUceInfo, kOther, ". w . >."),
    US_AGAIN(aclrtMemUceRepair, kOther, ". w ."),
    US_AGAIN(aclrtGetErrorVerbose, kOther, ". w"),
    US_AGAIN(aclrtRepairError, kOther, ". w"),
    US_AGAIN(aclrtSetOpExecuteTimeOut, kOther, "."),
    US_AGAIN(aclrtSetOpExecuteTimeOutV2, kOther, ". >."),
    US_AGAIN(aclrtSetOpExecuteTimeOutWithMs, kOther, "."),
    US_AGAIN(aclrtGetOpTimeOutInterval, kOther, ">."),
    US_AGAIN(aclrtGetOpExecuteTimeout, kOther, ">."),
    US_AGAIN(aclrtGetThreadLastTaskId, kOther, ">."),
    US_AGAIN(aclrtSnapShotProcessLock, kMemory, "P x"),
    US_AGAIN(aclrtSnapShotProcessBackup, kMemory, "P x"),
    US_AGAIN(aclrtSnapShotProcessRestore, kMemory, "P x"),
    US_AGAIN(aclrtSnapShotProcessUnlock, kMemory, "P x"),
    US_AGAIN(aclrtSnapShotCallbackRegister, kOther, ". f x"),
    US_AGAIN(aclrtSnapShotCallbackUnregister, kOther, ". f"),

    // What a recording does not tell enough about
    US_NEVER(aclrtAllocatorCreateDesc, kAllocators),
    US_NEVER(aclrtAllocatorDestroyDesc, kAllocators),
    US_NEVER(aclrtAllocatorSetObjToDesc, kAllocators),
    US_NEVER(aclrtAllocatorSetAllocFuncToDesc, kAllocators),
    US_NEVER(aclrtAllocatorSetFreeFuncToDesc, kAllocators),
    US_NEVER(aclrtAllocatorSetAllocAdviseFuncToDesc, kAllocators),
    US_NEVER(aclrtAllocatorSetGetAddrFromBlockFuncToDesc, kAllocators),
    US_NEVER(aclrtAllocatorRegister, kAllocators),
    US_NEVER(aclrtAllocatorGetByStream, kAllocators),
    US_NEVER(aclrtAllocatorUnregister, kAllocators),
    US_NEVER(aclCreateDataBuffer, kBuffers),
    US_NEVER(aclDestroyDataBuffer, kBuffers),
    US_NEVER(aclUpdateDataBuffer, kBuffers),
    US_NEVER(aclGetDataBufferAddr, kBuffers),
    US_NEVER(aclGetDataBufferSize, kBuffers),
    US_NEVER(aclGetDataBufferSizeV2, kBuffers),
    US_NEVER(aclUnderstudyGetBacking, kOfRecorded),
    US_NEVER(aclUnderstudyGetHostMemory, kOfRecorded),
    US_NEVER(aclUnderstudyCountObjects, kOfRecorded),
    US_NEVER(aclUnderstudyTakeDroppedCallbacks, kOfRecorded),
    US_NEVER(aclUnderstudyMark, kOfRecorded),
    US_NEVER(aclUnderstudyVisitGrowth, kOfRecorded),
    US_NEVER(aclUnderstudyTakeFindings, kOfRecorded),
    US_NEVER(aclUnderstudySetErrorListener, kOfRecorded),
    US_NEVER(aclUnderstudyStartRecording, kOfRecorded),
    US_NEVER(aclUnderstudyStopRecording, kOfRecorded),
});

}  // namespace

const ReplayedCall* find_replayed_call(std::string_view name) {
  static const auto* const by_name = [] {
    auto* const made = new std::unordered_map<std::string_view, const ReplayedCall*>;
    for (const ReplayedCall& call : kCalls) made->emplace(call.name, &call);
    return made;
  }();
  const auto found = by_name->find(name);
  return found == by_name->end() ? nullptr : found->second;
}

}  // namespace understudy::command
