// SPDX-License-Identifier: Apache-2.0
//
// Failing allocations in the functions about the process, devices, contexts and errors.
#include <unistd.h>

#include <thread>

#include "regress/failing_allocations.h"
#include "support/server_directory.h"

namespace understudy_test::failing {
namespace {

// ---- The first call of a process: the whole runtime begins ----

US_FIRST_CALL(aclInit, First) {
  probe.call([] { return aclInit(nullptr); });
  probe.after([] { EXPECT_SUCCESS(aclFinalize()); });
}
US_FIRST_CALL(aclrtSetDevice, First) {
  probe.call([] { return aclrtSetDevice(0); });
  probe.after([] { EXPECT_SUCCESS(aclrtResetDevice(0)); });
}
US_FIRST_CALL(aclrtGetDeviceCount, First) {
  probe.call([&] { return aclrtGetDeviceCount(&probe.out<uint32_t>()); });
}
US_FIRST_CALL(aclrtMallocHost, First) {
  probe.expect_refusal(ACL_ERROR_RT_CONTEXT_NULL);
  probe.call([&] { return aclrtMallocHost(&probe.out<void*>(), kKiB); });
}

// ---- The first call of a thread ----

US_SCENARIO(aclrtSetDevice, FirstOfAThread) {
  std::thread([&] {
    probe.call([] { return aclrtSetDevice(1); });
    probe.after([] { EXPECT_SUCCESS(aclrtResetDevice(1)); });
  }).join();
}
US_SCENARIO(aclrtMemcpy, FirstOfAThread) {
  const Stage on;
  std::thread([&] {
    EXPECT_SUCCESS(aclrtSetDevice(0));
    probe.call([&] { return aclrtMemcpy(on.device, 64, on.host, 64, ACL_MEMCPY_HOST_TO_DEVICE); });
    EXPECT_SUCCESS(aclrtResetDevice(0));
  }).join();
}
US_SCENARIO(aclrtGetMemInfo, WithoutAContext) {
  std::thread([&] {
    probe.expect_refusal(ACL_ERROR_RT_CONTEXT_NULL);
    probe.call(
        [&] { return aclrtGetMemInfo(ACL_HBM_MEM, &probe.out<size_t>(0), &probe.out<size_t>(1)); });
  }).join();
}

// ---- The beginning and the end of the process ----

aclError on_init(const char*, size_t, void*) { return ACL_SUCCESS; }
aclError on_finalize(void*) { return ACL_SUCCESS; }
constexpr auto kGeneral = ACL_REG_TYPE_OTHER;

US_SCENARIO(aclInit, Later) {
  probe.call([] { return aclInit(nullptr); });
  probe.after([] { EXPECT_SUCCESS(aclFinalize()); });
}
US_FIRST_CALL(aclFinalize, Once) {
  EXPECT_SUCCESS(aclInit(nullptr));
  probe.call([] { return aclFinalize(); });
}
US_FIRST_CALL(aclFinalizeReference, Once) {
  EXPECT_SUCCESS(aclInit(nullptr));
  probe.call([&] { return aclFinalizeReference(&probe.out<uint64_t>()); });
}
US_SCENARIO(aclInitCallbackRegister, Once) {
  probe.call([] { return aclInitCallbackRegister(kGeneral, on_init, nullptr); });
  probe.after([] { EXPECT_SUCCESS(aclInitCallbackUnRegister(kGeneral, on_init)); });
}
US_SCENARIO(aclInitCallbackUnRegister, Once) {
  EXPECT_SUCCESS(aclInitCallbackRegister(kGeneral, on_init, nullptr));
  probe.call([] { return aclInitCallbackUnRegister(kGeneral, on_init); });
}
US_SCENARIO(aclFinalizeCallbackRegister, Once) {
  probe.call([] { return aclFinalizeCallbackRegister(kGeneral, on_finalize, nullptr); });
  probe.after([] { EXPECT_SUCCESS(aclFinalizeCallbackUnRegister(kGeneral, on_finalize)); });
}
US_SCENARIO(aclFinalizeCallbackUnRegister, Once) {
  EXPECT_SUCCESS(aclFinalizeCallbackRegister(kGeneral, on_finalize, nullptr));
  probe.call([] { return aclFinalizeCallbackUnRegister(kGeneral, on_finalize); });
}

// ---- Versions, texts, data buffers ----

char package_name[] = "runtime";
US_SCENARIO(aclsysGetCANNVersion, Call) {
  probe.call(
      [&] { return aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &probe.out<aclCANNPackageVersion>()); });
}
US_SCENARIO(aclsysGetVersionStr, Call) {
  probe.call([&] { return aclsysGetVersionStr(package_name, &probe.out<char>()); });
}
US_ONE_CALL(aclsysGetVersionNum, aclsysGetVersionNum(package_name, &probe.out<int32_t>()))
US_ONE_CALL(aclGetCannAttributeList,
            aclGetCannAttributeList(&probe.out<const aclCannAttr*>(), &probe.out<size_t>(1)))
US_ONE_CALL(aclGetCannAttribute, aclGetCannAttribute(ACL_CANN_ATTR_INF_NAN, &probe.out<int32_t>()))
US_ONE_CALL(aclGetDeviceCapability,
            aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &probe.out<int64_t>()))
US_ONE_CALL(aclDataTypeSize, aclDataTypeSize(ACL_FLOAT) == 4 ? ACL_SUCCESS : ACL_ERROR_FAILURE)
US_SCENARIO(aclGetRecentErrMsg, AfterAFailure) {
  EXPECT_NE(aclrtFree(nullptr), ACL_SUCCESS);
  probe.call([] {
    (void)aclGetRecentErrMsg();
    return ACL_SUCCESS;
  });
}
// A call that fails all the same: the text is what has to be allocated.
US_SCENARIO(aclrtFree, OfNothing) {
  probe.expect_refusal(ACL_ERROR_INVALID_PARAM);
  probe.call([] { return aclrtFree(nullptr); });
}
US_SCENARIO(aclAppLog, Call) {
  probe.call([] {
    aclAppLog(ACL_INFO, "function", "file", 1, "text %d", 1);
    return ACL_SUCCESS;
  });
}
US_SCENARIO(aclCreateDataBuffer, Call) {
  probe.call([&]() -> aclError {
    aclDataBuffer* const buffer = aclCreateDataBuffer(&probe, 8);
    if (buffer == nullptr) return ACL_ERROR_RT_MEMORY_ALLOCATION;
    probe.out<aclDataBuffer*>() = buffer;
    return ACL_SUCCESS;
  });
  probe.after([&] { EXPECT_SUCCESS(aclDestroyDataBuffer(probe.out<aclDataBuffer*>())); });
}
template <typename Call>
void with_data_buffer(Probe& probe, Call call) {
  aclDataBuffer* const buffer = aclCreateDataBuffer(&probe, 8);
  ASSERT_NE(buffer, nullptr);
  probe.call([&] { return call(buffer); });
  EXPECT_SUCCESS(aclDestroyDataBuffer(buffer));
}
US_SCENARIO(aclDestroyDataBuffer, Call) {
  aclDataBuffer* const buffer = aclCreateDataBuffer(&probe, 8);
  probe.call([&] { return aclDestroyDataBuffer(buffer); });
}
US_SCENARIO(aclUpdateDataBuffer, Call) {
  with_data_buffer(probe,
                   [&](aclDataBuffer* buffer) { return aclUpdateDataBuffer(buffer, &probe, 16); });
}
US_SCENARIO(aclGetDataBufferAddr, Call) {
  with_data_buffer(probe, [&](aclDataBuffer* buffer) {
    return aclGetDataBufferAddr(buffer) == &probe ? ACL_SUCCESS : ACL_ERROR_FAILURE;
  });
}
US_SCENARIO(aclGetDataBufferSize, Call) {
  with_data_buffer(probe, [](aclDataBuffer* buffer) {
    return aclGetDataBufferSize(buffer) == 8 ? ACL_SUCCESS : ACL_ERROR_FAILURE;
  });
}
US_SCENARIO(aclGetDataBufferSizeV2, Call) {
  with_data_buffer(probe, [](aclDataBuffer* buffer) {
    return aclGetDataBufferSizeV2(buffer) == 8 ? ACL_SUCCESS : ACL_ERROR_FAILURE;
  });
}

// ---- Devices ----

US_ONE_CALL(aclrtGetVersion,
            aclrtGetVersion(&probe.out<int32_t>(0), &probe.out<int32_t>(1), &probe.out<int32_t>(2)))
US_ONE_CALL(aclrtGetSocName,
            aclrtGetSocName() != nullptr ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION)
US_SCENARIO(aclrtSetDevice, Another) {
  probe.call([] { return aclrtSetDevice(1); });
  probe.after([] { EXPECT_SUCCESS(aclrtResetDevice(1)); });
}
US_SCENARIO(aclrtResetDevice, WithObjects) {
  EXPECT_SUCCESS(aclrtSetDevice(1));
  aclrtStream stream = nullptr;
  void* memory = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  EXPECT_SUCCESS(aclrtMalloc(&memory, kBlock, kHugeFirst));
  probe.call([] { return aclrtResetDevice(1); });
}
US_SCENARIO(aclrtResetDeviceForce, WithObjects) {
  EXPECT_SUCCESS(aclrtSetDevice(1));
  aclrtStream stream = nullptr;
  void* memory = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  EXPECT_SUCCESS(aclrtMalloc(&memory, kBlock, kHugeFirst));
  probe.call([] { return aclrtResetDeviceForce(1); });
}
US_ONE_CALL(aclrtGetDevice, aclrtGetDevice(&probe.out<int32_t>()))
US_ONE_CALL(aclrtGetDeviceCount, aclrtGetDeviceCount(&probe.out<uint32_t>()))
US_ONE_CALL(aclrtGetRunMode, aclrtGetRunMode(&probe.out<aclrtRunMode>()))
US_ONE_CALL(aclrtSynchronizeDevice, aclrtSynchronizeDevice())
US_ONE_CALL(aclrtSynchronizeDeviceWithTimeout, aclrtSynchronizeDeviceWithTimeout(10'000))
US_ONE_CALL(aclrtDeviceGetBareTgid, aclrtDeviceGetBareTgid(&probe.out<int32_t>()))
US_ONE_CALL(aclrtDeviceCanAccessPeer, aclrtDeviceCanAccessPeer(&probe.out<int32_t>(), 0, 1))
US_SCENARIO(aclrtDeviceEnablePeerAccess, Call) {
  probe.call([] { return aclrtDeviceEnablePeerAccess(1, 0); });
  probe.after([] { EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(1)); });
}
US_SCENARIO(aclrtDeviceDisablePeerAccess, Call) {
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  probe.call([] { return aclrtDeviceDisablePeerAccess(1); });
}
US_ONE_CALL(aclrtDevicePeerAccessStatus, aclrtDevicePeerAccessStatus(0, 1, &probe.out<int32_t>()))
US_ONE_CALL(aclrtGetDeviceInfo,
            aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &probe.out<int64_t>()))
US_ONE_CALL(aclrtGetDeviceCapability,
            aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV,
                                     &probe.out<int32_t>()))
US_ONE_CALL(aclrtQueryDeviceStatus, aclrtQueryDeviceStatus(0, &probe.out<aclrtDeviceStatus>()))
US_SCENARIO(aclrtGetDeviceUtilizationRate, Call) {
  probe.out<aclrtUtilizationInfo>() = {};
  probe.call([&] { return aclrtGetDeviceUtilizationRate(0, &probe.out<aclrtUtilizationInfo>()); });
}
US_ONE_CALL(aclrtDeviceGetStreamPriorityRange,
            aclrtDeviceGetStreamPriorityRange(&probe.out<int32_t>(0), &probe.out<int32_t>(1)))
US_ONE_CALL(aclrtDeviceGetUuid, aclrtDeviceGetUuid(0, &probe.out<aclrtUuid>()))
US_ONE_CALL(aclrtGetPrimaryCtxState, aclrtGetPrimaryCtxState(0, nullptr, &probe.out<int32_t>()))
US_ONE_CALL(aclrtGetDevicesTopo, aclrtGetDevicesTopo(0, 1, &probe.out<uint64_t>()))
US_ONE_CALL(aclrtGetLogicDevIdByUserDevId, aclrtGetLogicDevIdByUserDevId(0, &probe.out<int32_t>()))
US_ONE_CALL(aclrtGetUserDevIdByLogicDevId, aclrtGetUserDevIdByLogicDevId(0, &probe.out<int32_t>()))
US_ONE_CALL(aclrtGetLogicDevIdByPhyDevId, aclrtGetLogicDevIdByPhyDevId(0, &probe.out<int32_t>()))
US_ONE_CALL(aclrtGetPhyDevIdByLogicDevId, aclrtGetPhyDevIdByLogicDevId(0, &probe.out<int32_t>()))
US_ONE_CALL(aclrtGetUserDevIdByPhyDevId, aclrtGetUserDevIdByPhyDevId(0, &probe.out<int32_t>()))
US_ONE_CALL(aclrtGetPhyDevIdByUserDevId, aclrtGetPhyDevIdByUserDevId(0, &probe.out<int32_t>()))

void on_device_state(uint32_t, aclrtDeviceState, void*) {}
US_SCENARIO(aclrtRegDeviceStateCallback, Call) {
  probe.call(
      [] { return aclrtRegDeviceStateCallback("a name of its own", on_device_state, nullptr); });
  EXPECT_SUCCESS(aclrtRegDeviceStateCallback("a name of its own", nullptr, nullptr));
}
US_ONE_CALL(aclrtSetDeviceSatMode, aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN))
US_ONE_CALL(aclrtGetDeviceSatMode, aclrtGetDeviceSatMode(&probe.out<aclrtFloatOverflowMode>()))
constexpr auto kCubes = ACL_RT_DEV_RES_CUBE_CORE;
US_ONE_CALL(aclrtGetDeviceResLimit, aclrtGetDeviceResLimit(0, kCubes, &probe.out<uint32_t>()))
US_ONE_CALL(aclrtSetDeviceResLimit, aclrtSetDeviceResLimit(0, kCubes, 2))
US_ONE_CALL(aclrtResetDeviceResLimit, aclrtResetDeviceResLimit(0))
US_ONE_CALL(aclrtGetStreamResLimit,
            aclrtGetStreamResLimit(on.stream, kCubes, &probe.out<uint32_t>()))
US_ONE_CALL(aclrtSetStreamResLimit, aclrtSetStreamResLimit(on.stream, kCubes, 2))
US_ONE_CALL(aclrtResetStreamResLimit, aclrtResetStreamResLimit(on.stream))
US_ONE_CALL(aclrtUseStreamResInCurrentThread, aclrtUseStreamResInCurrentThread(on.stream))
US_SCENARIO(aclrtUnuseStreamResInCurrentThread, Call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtUseStreamResInCurrentThread(on.stream));
  probe.call([&] { return aclrtUnuseStreamResInCurrentThread(on.stream); });
}
US_ONE_CALL(aclrtGetResInCurrentThread, aclrtGetResInCurrentThread(kCubes, &probe.out<uint32_t>()))

US_ONE_CALL(aclrtDeviceSetLimit, aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 49152))
US_ONE_CALL(aclrtDeviceGetLimit,
            aclrtDeviceGetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, &probe.out<size_t>()))
US_ONE_CALL(aclrtDeviceGetPCIBusId, aclrtDeviceGetPCIBusId(0, &probe.out<char>(), 13))
US_SCENARIO(aclrtDeviceGetByPCIBusId, Call) {
  char text[13];
  EXPECT_SUCCESS(aclrtDeviceGetPCIBusId(1, text, 13));
  probe.call([&] { return aclrtDeviceGetByPCIBusId(text, &probe.out<int32_t>()); });
}
constexpr aclrtAtomicOperation kOperation = ACL_RT_ATOMIC_OPERATION_CAS;
US_ONE_CALL(aclrtDeviceGetHostAtomicCapabilities,
            aclrtDeviceGetHostAtomicCapabilities(&probe.out<uint32_t>(), &kOperation, 1, 0))
US_ONE_CALL(aclrtDeviceGetP2PAtomicCapabilities,
            aclrtDeviceGetP2PAtomicCapabilities(&probe.out<uint32_t>(), &kOperation, 1, 0, 1))
US_ONE_CALL(aclrtSetTsDevice, aclrtSetTsDevice(ACL_TS_ID_AIVECTOR))
US_ONE_CALL(aclFloat16ToFloat, aclFloat16ToFloat(0x3C00) == 1.0F ? ACL_SUCCESS : ACL_ERROR_FAILURE)
US_ONE_CALL(aclFloatToFloat16, aclFloatToFloat16(1.0F) == 0x3C00 ? ACL_SUCCESS : ACL_ERROR_FAILURE)

// ---- Contexts ----

US_SCENARIO(aclrtCreateContext, Call) {
  probe.call([&] { return aclrtCreateContext(&probe.out<aclrtContext>(), 0); });
  probe.after([&] { EXPECT_SUCCESS(aclrtDestroyContext(probe.out<aclrtContext>())); });
}
US_SCENARIO(aclrtDestroyContext, WithAStream) {
  aclrtContext context = nullptr;
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateContext(&context, 0));
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  probe.call([&] { return aclrtDestroyContext(context); });
}
US_SCENARIO(aclrtDestroyContext, WithAnOverflowState) {
  aclrtContext context = nullptr;
  void* status = nullptr;
  EXPECT_SUCCESS(aclrtCreateContext(&context, 0));
  EXPECT_SUCCESS(aclrtCtxGetFloatOverflowAddr(&status));
  probe.call([&] { return aclrtDestroyContext(context); });
}
US_SCENARIO(aclrtCtxGetFloatOverflowAddr, First) {
  aclrtContext context = nullptr;
  EXPECT_SUCCESS(aclrtCreateContext(&context, 0));
  probe.call([&] { return aclrtCtxGetFloatOverflowAddr(&probe.out<void*>()); });
  EXPECT_SUCCESS(aclrtDestroyContext(context));
}
US_SCENARIO(aclrtSetCurrentContext, Call) {
  aclrtContext context = nullptr;
  EXPECT_SUCCESS(aclrtGetCurrentContext(&context));
  probe.call([&] { return aclrtSetCurrentContext(context); });
}
US_ONE_CALL(aclrtGetCurrentContext, aclrtGetCurrentContext(&probe.out<aclrtContext>()))
US_ONE_CALL(aclrtCtxGetCurrentDefaultStream,
            aclrtCtxGetCurrentDefaultStream(&probe.out<aclrtStream>()))
US_ONE_CALL(aclrtCtxSetSysParamOpt, aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1))
US_SCENARIO(aclrtCtxGetSysParamOpt, Call) {
  EXPECT_SUCCESS(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  probe.call([&] { return aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &probe.out<int64_t>()); });
}
US_ONE_CALL(aclrtSetSysParamOpt, aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1))
US_SCENARIO(aclrtGetSysParamOpt, Call) {
  EXPECT_SUCCESS(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  probe.call([&] { return aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &probe.out<int64_t>()); });
}

// ---- Errors and faults ----

void on_exception(aclrtExceptionInfo*) {}
US_ONE_CALL(aclrtPeekAtLastError, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL))
US_ONE_CALL(aclrtGetLastError, aclrtGetLastError(ACL_RT_THREAD_LEVEL))
US_SCENARIO(aclrtExceptionInfoCallbackRegister, Call) {
  probe.call([] { return aclrtExceptionInfoCallbackRegister(on_exception); });
  probe.after([] { EXPECT_SUCCESS(aclrtExceptionInfoCallbackUnregister(on_exception)); });
}
US_SCENARIO(aclrtExceptionInfoCallbackUnregister, Call) {
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackRegister(on_exception));
  probe.call([] { return aclrtExceptionInfoCallbackUnregister(on_exception); });
}
US_ONE_CALL(aclrtSetExceptionInfoCallback, aclrtSetExceptionInfoCallback(on_exception))
// Without an exception they answer a number that means none.
template <typename Getter>
aclError ask_nobody(Getter getter) {
  (void)getter(nullptr);
  return ACL_SUCCESS;
}
US_ONE_CALL(aclrtGetTaskIdFromExceptionInfo, ask_nobody(aclrtGetTaskIdFromExceptionInfo))
US_ONE_CALL(aclrtGetStreamIdFromExceptionInfo, ask_nobody(aclrtGetStreamIdFromExceptionInfo))
US_ONE_CALL(aclrtGetThreadIdFromExceptionInfo, ask_nobody(aclrtGetThreadIdFromExceptionInfo))
US_ONE_CALL(aclrtGetDeviceIdFromExceptionInfo, ask_nobody(aclrtGetDeviceIdFromExceptionInfo))
US_ONE_CALL(aclrtGetErrorCodeFromExceptionInfo, ask_nobody(aclrtGetErrorCodeFromExceptionInfo))
US_SCENARIO(aclrtGetThreadLastTaskId, Call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtMemsetAsync(on.device, 64, 1, 64, on.stream));
  probe.call([&] { return aclrtGetThreadLastTaskId(&probe.out<uint32_t>()); });
}
US_ONE_CALL(aclrtDeviceTaskAbort, aclrtDeviceTaskAbort(0, 0))
int32_t on_abort(int32_t, aclrtDeviceTaskAbortStage, uint32_t, void*) { return 0; }
US_SCENARIO(aclrtSetDeviceTaskAbortCallback, Call) {
  probe.call(
      [] { return aclrtSetDeviceTaskAbortCallback("a name of its own", on_abort, nullptr); });
  EXPECT_SUCCESS(aclrtSetDeviceTaskAbortCallback("a name of its own", nullptr, nullptr));
}
US_ONE_CALL(aclrtSetOpExecuteTimeOut, aclrtSetOpExecuteTimeOut(10))
US_ONE_CALL(aclrtSetOpExecuteTimeOutV2, aclrtSetOpExecuteTimeOutV2(10, &probe.out<uint64_t>()))
US_SCENARIO(aclrtSetOpExecuteTimeOutWithMs, Call) {
  probe.expect_refusal(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  probe.call([] { return aclrtSetOpExecuteTimeOutWithMs(10'000); });
}
US_ONE_CALL(aclrtGetOpTimeOutInterval, aclrtGetOpTimeOutInterval(&probe.out<uint64_t>()))
US_ONE_CALL(aclrtGetOpExecuteTimeout, aclrtGetOpExecuteTimeout(&probe.out<uint32_t>()))
US_ONE_CALL(aclrtGetMemUceInfo,
            aclrtGetMemUceInfo(0, &probe.out<aclrtMemUceInfo>(0), 8, &probe.out<size_t>(1)))
US_SCENARIO(aclrtMemUceRepair, Call) {
  aclrtMemUceInfo error{};
  probe.call([&] { return aclrtMemUceRepair(0, &error, 1); });
}
US_ONE_CALL(aclrtGetErrorVerbose, aclrtGetErrorVerbose(0, &probe.out<aclrtErrorInfo>()))
US_SCENARIO(aclrtRepairError, Call) {
  const aclrtErrorInfo error{};
  probe.call([&] { return aclrtRepairError(0, &error); });
}

// ---- What only the software NPU has ----

US_ONE_CALL(aclUnderstudyGetBacking, aclUnderstudyGetBacking(0, &probe.out<aclUnderstudyBacking>()))
US_ONE_CALL(aclUnderstudyGetHostMemory,
            aclUnderstudyGetHostMemory(&probe.out<aclUnderstudyHostMemory>()))
US_ONE_CALL(aclUnderstudyCountObjects,
            aclUnderstudyCountObjects(&probe.out<aclUnderstudyObjects>()))
US_ONE_CALL(aclUnderstudySetErrorListener, aclUnderstudySetErrorListener(nullptr, nullptr))
US_ONE_CALL(aclUnderstudySetPlace, (aclUnderstudySetPlace("program.py:1 main"),
                                    aclUnderstudySetPlace(nullptr), ACL_SUCCESS))
US_ONE_CALL(aclUnderstudyWantsPlaces,
            aclUnderstudyWantsPlaces() == 0 ? ACL_SUCCESS : ACL_ERROR_INTERNAL_ERROR)
US_ONE_CALL(aclUnderstudyMark, aclUnderstudyMark() == 0 ? ACL_SUCCESS : ACL_ERROR_INTERNAL_ERROR)
US_ONE_CALL(aclUnderstudyVisitGrowth, aclUnderstudyVisitGrowth(
                                          0, [](const aclUnderstudyGrowth*, void*) {}, nullptr))
US_ONE_CALL(aclUnderstudyTakeFindings,
            aclUnderstudyTakeFindings([](const aclUnderstudyFinding*, void*) {}, nullptr))
// A file beside the directory of the server.
struct RecordingPath {
  ~RecordingPath() { unlink(text.c_str()); }
  const std::string text = std::string(getenv(kServerVariable)) + "-rec";
};
US_SCENARIO(aclUnderstudyStartRecording, Call) {
  const RecordingPath path;
  probe.call([&] { return aclUnderstudyStartRecording(path.text.c_str(), nullptr); });
  probe.after([] { EXPECT_SUCCESS(aclUnderstudyStopRecording()); });
}
US_SCENARIO(aclUnderstudyStopRecording, Call) {
  const RecordingPath path;
  EXPECT_SUCCESS(aclUnderstudyStartRecording(path.text.c_str(), nullptr));
  probe.call([] { return aclUnderstudyStopRecording(); });
}
US_FIRST_CALL(aclUnderstudyRuntimeDirectory, First) {
  probe.call([] {
    return aclUnderstudyRuntimeDirectory() != nullptr ? ACL_SUCCESS
                                                      : ACL_ERROR_RT_MEMORY_ALLOCATION;
  });
}

// ---- Snapshot ----

uint32_t on_snapshot(int32_t, void*) { return 0; }
void unlock() { EXPECT_SUCCESS(aclrtSnapShotProcessUnlock(getpid(), nullptr)); }

US_SCENARIO(aclrtSnapShotProcessLock, Call) {
  EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, on_snapshot, nullptr));
  probe.call([] { return aclrtSnapShotProcessLock(getpid(), nullptr); });
  probe.after(unlock);
}
US_SCENARIO(aclrtSnapShotProcessBackup, Busy) {
  const Stage on;
  EXPECT_SUCCESS(aclrtMemsetAsync(on.device, Stage::kSize, 1, Stage::kSize, on.stream));
  EXPECT_SUCCESS(aclrtSnapShotProcessLock(getpid(), nullptr));
  probe.call([] { return aclrtSnapShotProcessBackup(getpid(), nullptr); });
  unlock();
}
US_SCENARIO(aclrtSnapShotProcessRestore, Call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtSnapShotProcessLock(getpid(), nullptr));
  EXPECT_SUCCESS(aclrtSnapShotProcessBackup(getpid(), nullptr));
  probe.call([] { return aclrtSnapShotProcessRestore(getpid(), nullptr); });
  unlock();
}
US_SCENARIO(aclrtSnapShotProcessUnlock, BackedUp) {
  const Stage on;
  EXPECT_SUCCESS(aclrtSnapShotProcessLock(getpid(), nullptr));
  EXPECT_SUCCESS(aclrtSnapShotProcessBackup(getpid(), nullptr));
  probe.call([] { return aclrtSnapShotProcessUnlock(getpid(), nullptr); });
}
US_SCENARIO(aclrtSnapShotCallbackRegister, Call) {
  probe.call([] {
    return aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_UNLOCK_POST, on_snapshot, nullptr);
  });
}
US_SCENARIO(aclrtSnapShotCallbackUnregister, Call) {
  EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_UNLOCK_POST, on_snapshot, nullptr));
  probe.call(
      [] { return aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_UNLOCK_POST, on_snapshot); });
}

}  // namespace
}  // namespace understudy_test::failing
