/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime: devices, contexts, streams, events, callbacks, and all of memory.
 *
 * Every function returns ACL_SUCCESS (0) or the reason of its failure, unless stated otherwise.
 * A NULL stream means the default stream of the current context, unless stated otherwise.
 * "On a stream" means that the call only queues the work, which then runs in stream order.
 * "Rules: X" names a rule group of the specification; all calls obey GEN, virtual memory VGEN too.
 */
#ifndef ACL_ACL_RT_H_
#define ACL_ACL_RT_H_

#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Handles (aclrtStream, aclrtEvent and aclrtContext are in acl_base.h) ---- */

typedef void* aclrtNotify;
typedef void* aclrtCntNotify;
typedef void* aclrtLabel;
typedef void* aclrtLabelList;
typedef void* aclrtMbuf;
typedef void* aclrtTaskGrp;
typedef void* aclrtDrvMemHandle; /* a block of physical memory, not an address */
typedef void* aclrtMemPool;      /* a stream-ordered pool */

/* ---- Version and name ---- */

/* Deprecated. Gives the version of the interface, that of the header macros. Rules: VER. */
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion,
                                             int32_t* patchVersion);

/* Returns the name of the chip, a text that stays valid, or NULL. Rules: VER. */
ACL_FUNC_VISIBILITY const char* aclrtGetSocName(void);

/* ---- Devices ---- */

/* Where the calling program runs. */
typedef enum aclrtRunMode ACL_ENUM_BASE {
  ACL_DEVICE = 0, /* on the device itself */
  ACL_HOST = 1    /* on the host it is plugged into */
} aclrtRunMode;

/* Makes the device's default context current for the thread, creating it on first use, and counts
 * the call. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtSetDevice(int32_t deviceId);

/* Takes back one aclrtSetDevice; the last one releases the default context and its streams after
 * their tasks have finished. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtResetDevice(int32_t deviceId);

/* Releases the device at once, however often it was set. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceForce(int32_t deviceId);

/* Gives the device of the current context. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetDevice(int32_t* deviceId);

/* Gives the number of devices this process may use; ids run from 0. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCount(uint32_t* count);

/* Tells whether the program runs on the host or on the device. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetRunMode(aclrtRunMode* runMode);

/* Waits for all tasks of the current device's context. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDevice(void);

/* As aclrtSynchronizeDevice, with a limit.
 * [in] timeout  milliseconds > 0, or -1 for no limit. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);

/* Gives the process id by which other processes must name this one when they share memory with it,
 * also from inside a container. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetBareTgid(int32_t* pid);

/* ---- Devices: peer access ---- */

/* Tells whether deviceId can be given access to peerDeviceId (1) or not (0). Rules: PEER. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId,
                                                      int32_t peerDeviceId);

/* Lets the current device reach the peer's memory; the other direction needs its own call.
 * [in] flags  reserved, 0. Rules: PEER. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);

/* Undoes aclrtDeviceEnablePeerAccess. Rules: PEER. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);

/* Tells whether deviceId has access to peerDeviceId now (1) or not (0). Rules: DEV, VPEER. */
ACL_FUNC_VISIBILITY aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId,
                                                         int32_t* status);

/* ---- Devices: information ---- */

/* The figures of a device. */
typedef enum aclrtDevAttr ACL_ENUM_BASE {
  ACL_DEV_ATTR_AICPU_CORE_NUM = 1,
  ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
  ACL_DEV_ATTR_CUBE_CORE_NUM = 102,
  ACL_DEV_ATTR_VECTOR_CORE_NUM = 201,
  ACL_DEV_ATTR_WARP_SIZE = 202, /* 202 to 212: on Ascend 950 */
  ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE = 203,
  ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE = 204,
  ACL_DEV_ATTR_MAX_GRID_DIM_X = 205,
  ACL_DEV_ATTR_MAX_GRID_DIM_Y = 206,
  ACL_DEV_ATTR_MAX_GRID_DIM_Z = 207,
  ACL_DEV_ATTR_MAX_BLOCK_PER_GRID = 208,
  ACL_DEV_ATTR_MAX_THREADS_PER_BLOCK = 209,
  ACL_DEV_ATTR_MAX_BLOCK_DIM_X = 210,
  ACL_DEV_ATTR_MAX_BLOCK_DIM_Y = 211,
  ACL_DEV_ATTR_MAX_BLOCK_DIM_Z = 212,
  ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301, /* bytes */
  ACL_DEV_ATTR_L2_CACHE_SIZE = 302,         /* bytes */
  ACL_DEV_ATTR_SMP_ID = 401,
  ACL_DEV_ATTR_PHY_CHIP_ID = 402,
  ACL_DEV_ATTR_SUPER_POD_DEVICE_ID = 403,
  ACL_DEV_ATTR_SUPER_POD_SERVER_ID = 404,
  ACL_DEV_ATTR_SUPER_POD_ID = 405,
  ACL_DEV_ATTR_CUST_OP_PRIVILEGE = 406,
  ACL_DEV_ATTR_MAINBOARD_ID = 407,
  ACL_DEV_ATTR_HD_CONNECT_TYPE = 408, /* ACL_HOST_DEVICE_CONNECT_TYPE_* */
  ACL_DEV_ATTR_DEVICE_FORM_FACTOR = 409,
  ACL_DEV_ATTR_IS_VIRTUAL = 501,
  ACL_DEV_ATTR_NPU_ARCH = 601
} aclrtDevAttr;

/* How the device hangs on the host. */
#define ACL_HOST_DEVICE_CONNECT_TYPE_PCIE 0
#define ACL_HOST_DEVICE_CONNECT_TYPE_HCCS 1
#define ACL_HOST_DEVICE_CONNECT_TYPE_UB 2

/* Optional features of a device. */
typedef enum aclrtDevFeatureType ACL_ENUM_BASE {
  ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV = 1,
  ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV = 21
} aclrtDevFeatureType;

/* Answers of aclrtGetDeviceCapability. */
#define ACL_DEV_FEATURE_NOT_SUPPORT 0
#define ACL_DEV_FEATURE_SUPPORT 1

typedef enum aclrtDeviceStatus ACL_ENUM_BASE {
  ACL_RT_DEVICE_STATUS_NORMAL = 0,
  ACL_RT_DEVICE_STATUS_ABNORMAL = 1,
  ACL_RT_DEVICE_STATUS_END = 0xFFFF
} aclrtDeviceStatus;

/* Load in percent, -1 where unknown. */
typedef struct aclrtUtilizationInfo {
  int32_t cubeUtilization;
  int32_t vectorUtilization;
  int32_t aicpuUtilization;
  int32_t memoryUtilization;
  void* utilizationExtend; /* reserved, NULL */
} aclrtUtilizationInfo;

typedef struct aclrtUuid {
  char bytes[16];
} aclrtUuid;

/* Kinds of links between two devices, the bits of aclrtGetDevicesTopo. */
#define ACL_RT_DEVS_TOPOLOGY_HCCS 0x01ULL    /* HCCS */
#define ACL_RT_DEVS_TOPOLOGY_PIX 0x02ULL     /* one PCIe switch */
#define ACL_RT_DEVS_TOPOLOGY_PIB 0x04ULL     /* several PCIe switches */
#define ACL_RT_DEVS_TOPOLOGY_PHB 0x08ULL     /* a PCIe host bridge */
#define ACL_RT_DEVS_TOPOLOGY_SYS 0x10ULL     /* across processor sockets */
#define ACL_RT_DEVS_TOPOLOGY_SIO 0x20ULL     /* two dies of one chip */
#define ACL_RT_DEVS_TOPOLOGY_HCCS_SW 0x40ULL /* HCCS through a switch */

/* What a device may do in one step to memory of the host or of another device. */
typedef enum aclrtAtomicOperation ACL_ENUM_BASE {
  ACL_RT_ATOMIC_OPERATION_INTEGER_ADD = 0,
  ACL_RT_ATOMIC_OPERATION_INTEGER_MIN = 1,
  ACL_RT_ATOMIC_OPERATION_INTEGER_MAX = 2,
  ACL_RT_ATOMIC_OPERATION_INTEGER_INCREMENT = 3,
  ACL_RT_ATOMIC_OPERATION_INTEGER_DECREMENT = 4,
  ACL_RT_ATOMIC_OPERATION_AND = 5,
  ACL_RT_ATOMIC_OPERATION_OR = 6,
  ACL_RT_ATOMIC_OPERATION_XOR = 7,
  ACL_RT_ATOMIC_OPERATION_EXCHANGE = 8,
  ACL_RT_ATOMIC_OPERATION_CAS = 9,
  ACL_RT_ATOMIC_OPERATION_FLOAT_ADD = 10,
  ACL_RT_ATOMIC_OPERATION_FLOAT_MIN = 11,
  ACL_RT_ATOMIC_OPERATION_FLOAT_MAX = 12,
  ACL_RT_ATOMIC_OPERATION_DMA_ADD = 30,
  ACL_RT_ATOMIC_OPERATION_DMA_MIN = 31,
  ACL_RT_ATOMIC_OPERATION_DMA_MAX = 32,
  ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_ADD = 40,
  ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_MIN = 41,
  ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_MAX = 42,
  ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_CAS = 43,
  ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_EXCH = 44
} aclrtAtomicOperation;

/* The forms in which it may, as bits. */
typedef enum aclrtAtomicOperationCapability ACL_ENUM_BASE {
  ACL_RT_ATOMIC_CAPABILITY_SIGNED = 0x1,
  ACL_RT_ATOMIC_CAPABILITY_UNSIGNED = 0x2,
  ACL_RT_ATOMIC_CAPABILITY_REDUCTION = 0x4,
  ACL_RT_ATOMIC_CAPABILITY_SCALAR8 = 0x8,
  ACL_RT_ATOMIC_CAPABILITY_SCALAR16 = 0x10,
  ACL_RT_ATOMIC_CAPABILITY_SCALAR32 = 0x20,
  ACL_RT_ATOMIC_CAPABILITY_SCALAR64 = 0x40,
  ACL_RT_ATOMIC_CAPABILITY_SCALAR128 = 0x80,
  ACL_RT_ATOMIC_CAPABILITY_VECTOR32X4 = 0x100
} aclrtAtomicOperationCapability;

/* Gives one figure of a device. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr,
                                                int64_t* value);

/* Tells whether a device has a feature (1) or not (0). Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCapability(int32_t deviceId,
                                                      aclrtDevFeatureType devFeatureType,
                                                      int32_t* value);

/* Gives the health of a device. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtQueryDeviceStatus(int32_t deviceId,
                                                    aclrtDeviceStatus* deviceStatus);

/* Gives the load of a device.
 * [in,out] utilizationInfo  utilizationExtend must be NULL on entry. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceUtilizationRate(int32_t deviceId,
                                                           aclrtUtilizationInfo* utilizationInfo);

/* Gives the numbers of the lowest (7) and highest (0) stream priority; either pointer may be NULL.
 * Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority,
                                                               int32_t* greatestPriority);

/* Gives a device's unique id. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid);

/* Tells whether a device's default context exists (1) or not (0).
 * [in] flags  reserved, NULL. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags,
                                                     int32_t* active);

/* Gives the links between two devices as ACL_RT_DEVS_TOPOLOGY_* bits. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId,
                                                 uint64_t* value);

/* Gives the place of a device on the PCIe bus, "0000:3d:00.0".
 * [in] len  size of pciBusId, at least 13. Rules: PCI. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len);

/* Gives the device at a place on the PCIe bus. Rules: PCI. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetByPCIBusId(const char* pciBusId, int32_t* deviceId);

/* Tells which atomic operations a device can do on memory of the host.
 * [out] capabilities  one OR of ACL_RT_ATOMIC_CAPABILITY_* per operation
 * [in] count          number of operations. Rules: ATOM. */
ACL_FUNC_VISIBILITY aclError
aclrtDeviceGetHostAtomicCapabilities(uint32_t* capabilities, const aclrtAtomicOperation* operations,
                                     const uint32_t count, int32_t deviceId);

/* As aclrtDeviceGetHostAtomicCapabilities, on memory of another device. Rules: ATOM. */
ACL_FUNC_VISIBILITY aclError
aclrtDeviceGetP2PAtomicCapabilities(uint32_t* capabilities, const aclrtAtomicOperation* operations,
                                    const uint32_t count, int32_t srcDeviceId, int32_t dstDeviceId);

/* ---- Devices: numbering ---- */

/* User ids are those of this process (ASCEND_RT_VISIBLE_DEVICES renumbers them), logic ids those of
 * the system, phy ids those of the hardware. Each function turns one into another. Mind the two
 * with both Phy and Logic in their names: their "logic" id is the user id. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid,
                                                           int32_t* const logicDevId);
ACL_FUNC_VISIBILITY aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId,
                                                           int32_t* const userDevid);
ACL_FUNC_VISIBILITY aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId,
                                                          int32_t* const logicDevId);
ACL_FUNC_VISIBILITY aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId,
                                                          int32_t* const phyDevId);
ACL_FUNC_VISIBILITY aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId,
                                                         int32_t* const userDevId);
ACL_FUNC_VISIBILITY aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId,
                                                         int32_t* const phyDevId);

/* ---- Devices: state callbacks, modes, limits ---- */

typedef enum aclrtDeviceState ACL_ENUM_BASE {
  ACL_RT_DEVICE_STATE_SET_PRE = 0,
  ACL_RT_DEVICE_STATE_SET_POST = 1,
  ACL_RT_DEVICE_STATE_RESET_PRE = 2,
  ACL_RT_DEVICE_STATE_RESET_POST = 3
} aclrtDeviceState;

typedef void (*aclrtDeviceStateCallback)(uint32_t devId, aclrtDeviceState state, void* args);

/* What a floating-point overflow yields. */
typedef enum aclrtFloatOverflowMode ACL_ENUM_BASE {
  ACL_RT_OVERFLOW_MODE_SATURATION = 0, /* the largest number */
  ACL_RT_OVERFLOW_MODE_INFNAN = 1,     /* infinity or NaN */
  ACL_RT_OVERFLOW_MODE_UNDEF = 2
} aclrtFloatOverflowMode;

/* Compute resources that can be limited. */
typedef enum aclrtDevResLimitType ACL_ENUM_BASE {
  ACL_RT_DEV_RES_CUBE_CORE = 0,
  ACL_RT_DEV_RES_VECTOR_CORE = 1
} aclrtDevResLimitType;

/* Sizes that kernels get, one for all devices of the process. */
typedef enum aclrtDeviceLimit ACL_ENUM_BASE {
  ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE = 0,
  ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE = 1,
  ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE = 2,
  ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE = 3,
  ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE = 4
} aclrtDeviceLimit;

/* Task schedulers. */
typedef enum aclrtTsId ACL_ENUM_BASE {
  ACL_TS_ID_AICORE = 0,
  ACL_TS_ID_AIVECTOR = 1,
  ACL_TS_ID_RESERVED = 2
} aclrtTsId;

/* Has callback called before and after a device is set or reset.
 * [in] regName   unique name of the registration
 * [in] callback  NULL removes the registration. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtRegDeviceStateCallback(const char* regName,
                                                         aclrtDeviceStateCallback callback,
                                                         void* args);

/* Sets the overflow mode of the current device. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);

/* Gives the overflow mode of the current device. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode);

/* Sets and reads the size of what kernels get, from the next aclrtSetDevice on. Rules: LIMIT. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceSetLimit(aclrtDeviceLimit limit, size_t value);
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetLimit(aclrtDeviceLimit limit, size_t* value);

/* Chooses the task scheduler of the calling thread; without effect. Rules: OVF. */
ACL_FUNC_VISIBILITY aclError aclrtSetTsDevice(aclrtTsId tsId);

/* Reads, sets and resets how many cores of a device this process uses. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                                    uint32_t* value);
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                                    uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceResLimit(int32_t deviceId);

/* Reads, sets and resets how many cores a stream uses. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                                    uint32_t* value);
ACL_FUNC_VISIBILITY aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                                    uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetStreamResLimit(aclrtStream stream);

/* Makes a stream's limits those of the calling thread, or stops doing so. Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtUseStreamResInCurrentThread(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream);

/* Gives the limit in force for the thread: of its stream, the process or the hardware.
 * Rules: DEV. */
ACL_FUNC_VISIBILITY aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value);

/* ---- Contexts ---- */

/* Options of a context or of the process. */
typedef enum aclSysParamOpt ACL_ENUM_BASE {
  ACL_OPT_DETERMINISTIC = 0,
  ACL_OPT_ENABLE_DEBUG_KERNEL = 1,
  ACL_OPT_STRONG_CONSISTENCY = 2, /* deprecated */
  ACL_OPT_ENABLE_KERNEL_EARLY_START = 3
} aclSysParamOpt;

/* Creates a context with its own default stream and makes it current for the thread. Rules: CTX. */
ACL_FUNC_VISIBILITY aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId);

/* Destroys a created context and its streams; device memory stays. Rules: CTX. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyContext(aclrtContext context);

/* Makes a context current for the thread, whichever thread created it. Rules: CTX. */
ACL_FUNC_VISIBILITY aclError aclrtSetCurrentContext(aclrtContext context);

/* Gives the thread's current context. Rules: CTX. */
ACL_FUNC_VISIBILITY aclError aclrtGetCurrentContext(aclrtContext* context);

/* Gives the handle of the stream that NULL stands for. Rules: CTX. */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream);

/* Sets and reads an option of the current context. Rules: CTX. */
ACL_FUNC_VISIBILITY aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value);

/* Sets and reads an option of the process. Rules: CTX. */
ACL_FUNC_VISIBILITY aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value);

/* Gives the address of 64 bytes of device memory that tell of overflows; they are the context's,
 * not to be freed. Rules: OVF. */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetFloatOverflowAddr(void** overflowAddr);

/* ---- Streams ---- */

/* Flags of aclrtCreateStreamWithConfig. */
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U
#define ACL_STREAM_PERSISTENT 0x00000004U
#define ACL_STREAM_HUGE 0x00000008U
#define ACL_STREAM_CPU_SCHEDULE 0x00000010U
#define ACL_STREAM_DEVICE_USE_ONLY 0x00000020U

/* What a stream does after a task failed. */
#define ACL_CONTINUE_ON_FAILURE 0x00000000U
#define ACL_STOP_ON_FAILURE 0x00000001U

typedef enum aclrtStreamStatus ACL_ENUM_BASE {
  ACL_STREAM_STATUS_COMPLETE = 0,
  ACL_STREAM_STATUS_NOT_READY = 1,
  ACL_STREAM_STATUS_RESERVED = 0xFFFF
} aclrtStreamStatus;

typedef enum aclrtStreamAttr ACL_ENUM_BASE {
  ACL_STREAM_ATTR_FAILURE_MODE = 1,
  ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK = 2,
  ACL_STREAM_ATTR_USER_CUSTOM_TAG = 3,
  ACL_STREAM_ATTR_CACHE_OP_INFO = 4,
  ACL_STREAM_ATTR_PRIORITY = 5
} aclrtStreamAttr;

/* One member per aclrtStreamAttr, in its order. */
typedef union aclrtStreamAttrValue {
  uint64_t failureMode;
  uint32_t overflowSwitch;
  uint32_t userCustomTag;
  uint32_t cacheOpInfoSwitch;
  uint32_t streamPriority;
  uint32_t reserve[4];
} aclrtStreamAttrValue;

typedef enum aclrtStreamState ACL_ENUM_BASE {
  ACL_RT_STREAM_STATE_CREATE_POST = 1,
  ACL_RT_STREAM_STATE_DESTROY_PRE = 2
} aclrtStreamState;

typedef void (*aclrtStreamStateCallback)(aclrtStream stream, aclrtStreamState state, void* args);

/* How aclrtSwitchStream compares. */
typedef enum aclrtCondition ACL_ENUM_BASE {
  ACL_RT_EQUAL = 0,
  ACL_RT_NOT_EQUAL = 1,
  ACL_RT_GREATER = 2,
  ACL_RT_GREATER_OR_EQUAL = 3,
  ACL_RT_LESS = 4,
  ACL_RT_LESS_OR_EQUAL = 5
} aclrtCondition;

typedef enum aclrtCompareDataType ACL_ENUM_BASE {
  ACL_RT_SWITCH_INT32 = 0,
  ACL_RT_SWITCH_INT64 = 1
} aclrtCompareDataType;

/* Creates a stream in the current context. Tasks of one stream run in order. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStream(aclrtStream* stream);

/* As aclrtCreateStream, with a priority and flags.
 * [in] priority  0 (highest) to 7
 * [in] flag      OR of ACL_STREAM_* flags. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority,
                                                         uint32_t flag);

/* Waits for the stream's tasks and destroys it; no default stream. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStream(aclrtStream stream);

/* Drops the tasks not yet started and destroys the stream; no default stream. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamForce(aclrtStream stream);

/* Waits for the tasks queued so far and returns the error of a failed one. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStream(aclrtStream stream);

/* As aclrtSynchronizeStream, with a limit.
 * [in] timeout  milliseconds > 0, or -1 for no limit. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/* Tells, without waiting, whether all tasks are done. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status);

/* Lets later tasks of the stream start only after the event's latest record; the caller does not
 * wait. Rules: STREAM, EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/* As aclrtStreamWaitEvent, with a limit in seconds; 0 for none. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
                                                             int32_t timeout);

/* As aclrtStreamWaitEventWithTimeout.
 * [in] flag  ACL_EVENT_WAIT_DEFAULT or ACL_EVENT_WAIT_EXTERNAL. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event,
                                                          uint32_t timeout, uint32_t flag);

/* Stops the running task and drops the queued ones; the stream stays usable. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtStreamAbort(aclrtStream stream);

/* Stops the running task and keeps the queue; no default stream. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtStreamStop(aclrtStream stream);

/* Drops the tasks that a PERSISTENT stream holds; it stays usable. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtPersistentTaskClean(aclrtStream stream);

/* For streams that are bound to a model. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream);

/* For streams that are bound to a model.
 * [in] falseStream  reserved, NULL. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtSwitchStream(void* leftValue, aclrtCondition cond,
                                               void* rightValue, aclrtCompareDataType dataType,
                                               aclrtStream trueStream, aclrtStream falseStream,
                                               aclrtStream stream);

/* Gives the stream's id, unique among the live streams of its device. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId);

/* Gives the priority the stream was created with, or got since. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority);

/* Gives the flags the stream was created with. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags);

/* Tells how many streams can still be created. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAvailableNum(uint32_t* streamCount);

/* Stores an attribute of the stream. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamAttribute(aclrtStream stream,
                                                     aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue* value);

/* Reads back an attribute of the stream. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAttribute(aclrtStream stream,
                                                     aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue* value);

/* Chooses, once per stream, what happens after a failed task.
 * [in] mode  ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

/* Switches the stream's overflow check on (1) or off (0), or reads the switch. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag);

/* Writes on a stream whether an overflow happened, to device memory.
 * [in] outputSize  64. Rules: OVF. */
ACL_FUNC_VISIBILITY aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize,
                                                    aclrtStream stream);

/* Clears that, on a stream. Rules: OVF. */
ACL_FUNC_VISIBILITY aclError aclrtResetOverflowStatus(aclrtStream stream);

/* Has callback called after a stream's creation and before its end.
 * [in] regName   unique name of the registration
 * [in] callback  NULL removes the registration. Rules: STREAM. */
ACL_FUNC_VISIBILITY aclError aclrtRegStreamStateCallback(const char* regName,
                                                         aclrtStreamStateCallback callback,
                                                         void* args);

/* ---- Events ---- */

/* Flags of the create functions. */
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE 0x00000008U
#define ACL_EVENT_DEVICE_USE_ONLY 0x00000010U
#define ACL_EVENT_EXTERNAL 0x00000020U
#define ACL_EVENT_IPC 0x00000040U

/* Flags of aclrtRecordEventWithFlag and aclrtStreamWaitEventWithFlag. */
#define ACL_EVENT_RECORD_DEFAULT 0x00000000U
#define ACL_EVENT_RECORD_EXTERNAL 0x00000001U
#define ACL_EVENT_WAIT_DEFAULT 0x00000000U
#define ACL_EVENT_WAIT_EXTERNAL 0x00000001U

typedef enum aclrtEventStatus ACL_ENUM_BASE {
  ACL_EVENT_STATUS_COMPLETE = 0,
  ACL_EVENT_STATUS_NOT_READY = 1,
  ACL_EVENT_STATUS_RESERVED = 2
} aclrtEventStatus;

/* Mind the numbers: the reverse of the other status enums. */
typedef enum aclrtEventRecordedStatus ACL_ENUM_BASE {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;

typedef enum aclrtEventWaitStatus ACL_ENUM_BASE {
  ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
  ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
  ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF
} aclrtEventWaitStatus;

/* Creates a classic event with SYNC, CAPTURE_STREAM_PROGRESS and TIME_LINE. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEvent(aclrtEvent* event);

/* Creates a classic event with the given ACL_EVENT_* flags. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag);

/* Creates an Ex event, which can be recorded and waited on again and again without a reset, or with
 * ACL_EVENT_IPC alone one for other processes. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag);

/* Destroys an event without waiting; waits already queued still complete. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyEvent(aclrtEvent event);

/* Makes the event stand for the tasks queued on the stream so far. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);

/* As aclrtRecordEvent.
 * [in] flag  ACL_EVENT_RECORD_DEFAULT or ACL_EVENT_RECORD_EXTERNAL. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream,
                                                      uint32_t flag);

/* Returns a classic SYNC event to its unrecorded state, on a stream. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);

/* Tells, without waiting, whether the recorded tasks are done. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventStatus(aclrtEvent event,
                                                   aclrtEventRecordedStatus* status);

/* Deprecated. As aclrtQueryEventStatus, classic events only. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status);

/* Tells, without waiting, whether the waits on a classic event are over. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventWaitStatus(aclrtEvent event,
                                                       aclrtEventWaitStatus* status);

/* Waits until the recorded tasks are done. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEvent(aclrtEvent event);

/* As aclrtSynchronizeEvent, with a limit.
 * [in] timeout  milliseconds > 0, or -1 for no limit. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);

/* Gives the milliseconds between two events with TIME_LINE. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent,
                                                   aclrtEvent endEvent);

/* Gives the time, in microseconds, at which an event with TIME_LINE was reached. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp);

/* Gives the event's id. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId);

/* Tells how many events can still be created. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtGetEventAvailNum(uint32_t* eventCount);

/* Limits how long a stream waits for an event; seconds, 0 for no limit. Rules: EVENT. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpWaitTimeout(uint32_t timeout);

/* ---- Events: between processes ---- */

#define ACL_IPC_EVENT_HANDLE_SIZE 64U

/* Plain data, to be sent to the other process by any means. */
typedef struct aclrtIpcEventHandle {
  char reserved[ACL_IPC_EVENT_HANDLE_SIZE];
} aclrtIpcEventHandle;

/* Gives the handle by which another process opens this event. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle);

/* Opens an event of another process; destroyed like an own one. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event);

/* ---- Notifies: one-shot flags between streams ---- */

/* Flags of aclrtCreateNotify. */
#define ACL_NOTIFY_DEFAULT 0x00000000U
#define ACL_NOTIFY_DEVICE_USE_ONLY 0x00000001U

/* Flags of the key functions. Mind the numbers: 2, where memory keys have 1. */
#define ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT 0x0UL
#define ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x02UL
#define ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT 0x0UL
#define ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS 0x02UL

/* Creates a notify on the current device. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag);

/* Destroys a notify. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyNotify(aclrtNotify notify);

/* Sets the notify, on a stream. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);

/* Holds the stream until the notify is set, then clears it.
 * [in] timeout  seconds, 0 for no limit. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream,
                                                     uint32_t timeout);

/* Gives the notify's id, unique on its device. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId);

/* Clears every notify of the array. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num);

/* Makes the notify available to other processes.
 * [out] key    NUL-terminated name
 * [in] len     size of key, at least 65
 * [in] flags   ACL_RT_NOTIFY_EXPORT_FLAG_*. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtNotifyGetExportKey(aclrtNotify notify, char* key, size_t len,
                                                     uint64_t flags);

/* Adds processes to those that may import an exported notify. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t* pid, size_t num);

/* Opens a notify of another process.
 * [in] flags  ACL_RT_NOTIFY_IMPORT_FLAG_*. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtNotifyImportByKey(aclrtNotify* notify, const char* key,
                                                    uint64_t flags);

/* ---- Counting notifies: 32-bit counters between streams ---- */

/* What a record does to the counter. */
typedef enum aclrtCntNotifyRecordMode ACL_ENUM_BASE {
  ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE = 0,
  ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE = 1,
  ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE = 2,
  ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE = 4
} aclrtCntNotifyRecordMode;

/* What the counter has to be for a wait to end, compared with a value. */
typedef enum aclrtCntNotifyWaitMode ACL_ENUM_BASE {
  ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE = 0,
  ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE = 1,
  ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE = 2,
  ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE = 3,
  ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE = 4
} aclrtCntNotifyWaitMode;

typedef struct aclrtCntNotifyRecordInfo {
  aclrtCntNotifyRecordMode mode;
  uint32_t value;
} aclrtCntNotifyRecordInfo;

typedef struct aclrtCntNotifyWaitInfo {
  aclrtCntNotifyWaitMode mode;
  uint32_t value;
  uint32_t timeout; /* seconds, 0 for no limit */
  uint8_t isClear;  /* 1: the counter is 0 when the wait ends */
  uint8_t rev[3];
} aclrtCntNotifyWaitInfo;

/* Creates a counting notify on the current device; its counter is 0.
 * [in] flag  0. Rules: CNT. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyCreate(aclrtCntNotify* cntNotify, uint64_t flag);

/* Changes the counter, on a stream. Rules: CNT. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream,
                                                  aclrtCntNotifyRecordInfo* info);

/* Holds the stream until the counter is as wanted. Rules: CNT. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify,
                                                           aclrtStream stream,
                                                           aclrtCntNotifyWaitInfo* info);

/* Sets the counter to 0, on a stream. Rules: CNT. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream);

/* Gives the counting notify's id, unique on its device. Rules: CNT. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t* notifyId);

/* Destroys a counting notify. Rules: CNT. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify);

/* ---- Callbacks on the host ---- */

/* Whether later tasks of the stream wait for the callback. */
typedef enum aclrtCallbackBlockType ACL_ENUM_BASE {
  ACL_CALLBACK_NO_BLOCK = 0,
  ACL_CALLBACK_BLOCK = 1
} aclrtCallbackBlockType;

typedef void (*aclrtCallback)(void* userData);
typedef void (*aclrtHostFunc)(void* args);

/* Queues a callback that the thread subscribed to the stream will run. Rules: CB. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchCallback(aclrtCallback fn, void* userData,
                                                 aclrtCallbackBlockType blockType,
                                                 aclrtStream stream);

/* Appoints the thread that serves the stream's callbacks.
 * [in] threadId  its pthread id. Rules: CB. */
ACL_FUNC_VISIBILITY aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);

/* Dismisses the thread that serves the stream's callbacks. Rules: CB. */
ACL_FUNC_VISIBILITY aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);

/* Waits for a callback and runs it on the calling thread.
 * [in] timeout  milliseconds > 0, or -1 for no limit. Rules: CB. */
ACL_FUNC_VISIBILITY aclError aclrtProcessReport(int32_t timeout);

/* Queues a callback that a thread of the runtime will run; later tasks wait for it. It must not
 * allocate, synchronise or queue work. Rules: CB. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args);

/* ---- Memory: types shared by the chapters below ---- */

/* How an allocation picks its pages: one of the first eight, optionally OR-ed with the bits. */
typedef enum aclrtMemMallocPolicy ACL_ENUM_BASE {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,                 /* normal pages up to 1 MiB, else 2 MiB if any */
  ACL_MEM_MALLOC_HUGE_ONLY = 1,                  /* 2 MiB pages or failure */
  ACL_MEM_MALLOC_NORMAL_ONLY = 2,                /* normal pages or failure */
  ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,             /* as 0, for copies between devices */
  ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,              /* as 1, for copies between devices */
  ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,            /* as 2, for copies between devices */
  ACL_MEM_MALLOC_HUGE1G_ONLY = 6,                /* 1 GiB pages or failure */
  ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,            /* as 6, for copies between devices */
  ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,          /* bit: slow memory, on IPV350 only */
  ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,         /* bit: fast memory, on IPV350 only */
  ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000U /* bit: read-only for user space */
} aclrtMemMallocPolicy;

/* Kind of memory and page. 0 and 1 mean huge and normal pages together and serve queries only;
 * from 12 on the library chooses between DDR and HBM. */
typedef enum aclrtMemAttr ACL_ENUM_BASE {
  ACL_DDR_MEM = 0,
  ACL_HBM_MEM = 1,
  ACL_DDR_MEM_HUGE = 2,
  ACL_DDR_MEM_NORMAL = 3,
  ACL_HBM_MEM_HUGE = 4,
  ACL_HBM_MEM_NORMAL = 5,
  ACL_DDR_MEM_P2P_HUGE = 6,
  ACL_DDR_MEM_P2P_NORMAL = 7,
  ACL_HBM_MEM_P2P_HUGE = 8,
  ACL_HBM_MEM_P2P_NORMAL = 9,
  ACL_HBM_MEM_HUGE1G = 10,
  ACL_HBM_MEM_P2P_HUGE1G = 11,
  ACL_MEM_NORMAL = 12,
  ACL_MEM_HUGE = 13,
  ACL_MEM_HUGE1G = 14,
  ACL_MEM_P2P_NORMAL = 15,
  ACL_MEM_P2P_HUGE = 16,
  ACL_MEM_P2P_HUGE1G = 17
} aclrtMemAttr;

/* Page and memory kinds on their own; these two have no typedef. */
enum aclrtMemPgType ACL_ENUM_BASE {
  NORMAL_PAGE_TYPE = 0,
  HUGE_PAGE_TYPE = 1,
  HUGE1G_PAGE_TYPE = 2
};
enum aclrtMemType ACL_ENUM_BASE { HBM_TYPE = 0, DDR_TYPE = 1, P2P_HBM_TYPE = 2, P2P_DDR_TYPE = 3 };

typedef enum aclrtMemLocationType ACL_ENUM_BASE {
  ACL_MEM_LOCATION_TYPE_HOST = 0,
  ACL_MEM_LOCATION_TYPE_DEVICE = 1,
  ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2, /* not from this interface */
  ACL_MEM_LOCATION_TYPE_MANAGED = 3,      /* one address for host and device */
  ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4     /* a given NUMA node of the host */
} aclrtMemLocationType;

/* Mind the order: id first. */
typedef struct aclrtMemLocation {
  uint32_t id; /* device or NUMA node; 0 for HOST */
  aclrtMemLocationType type;
} aclrtMemLocation;

typedef enum aclrtMemAllocationType ACL_ENUM_BASE {
  ACL_MEM_ALLOCATION_TYPE_PINNED = 0
} aclrtMemAllocationType;

typedef enum aclrtMemHandleType ACL_ENUM_BASE {
  ACL_MEM_HANDLE_TYPE_NONE = 0,
  ACL_MEM_HANDLE_TYPE_POSIX = 2
} aclrtMemHandleType;

/* Optional attributes of an allocation. */
typedef enum aclrtMallocAttrType ACL_ENUM_BASE {
  ACL_RT_MEM_ATTR_RSV = 0,
  ACL_RT_MEM_ATTR_MODULE_ID = 1,
  ACL_RT_MEM_ATTR_DEVICE_ID = 2,
  ACL_RT_MEM_ATTR_VA_FLAG = 3
} aclrtMallocAttrType;

typedef union aclrtMallocAttrValue {
  uint16_t moduleId; /* 33 marks application memory */
  uint32_t deviceId; /* must be the current device */
  uint32_t vaFlag;   /* 1: host and device address shall be equal */
  uint8_t rsv[8];
} aclrtMallocAttrValue;

typedef struct aclrtMallocAttribute {
  aclrtMallocAttrType attr;
  aclrtMallocAttrValue value;
} aclrtMallocAttribute;

typedef struct aclrtMallocConfig {
  aclrtMallocAttribute* attrs;
  size_t numAttrs;
} aclrtMallocConfig;

/* ---- Device memory ---- */

/* What one component of the software uses. */
typedef struct aclrtMemUsageInfo {
  char name[32];
  uint64_t curMemSize;
  uint64_t memPeakSize;
  size_t reserved[8];
} aclrtMemUsageInfo;

/* Kinds of memory for aclrtCheckMemType, may be OR-ed. */
#define ACL_RT_MEM_TYPE_DEV 0x2U
#define ACL_RT_MEM_TYPE_DVPP 0x8U
#define ACL_RT_MEM_TYPE_RSVD 0x10U

/* Allocates memory on the current device; aclrtFree gives it back.
 * [out] devPtr  start address, a multiple of 64. Rules: MALLOC, POLICY. */
ACL_FUNC_VISIBILITY aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy);

/* As aclrtMalloc, without the 32 spare bytes it adds to every block. Rules: MALLOC, POLICY. */
ACL_FUNC_VISIBILITY aclError aclrtMallocAlign32(void** devPtr, size_t size,
                                                aclrtMemMallocPolicy policy);

/* As aclrtMalloc, with the processor cache enabled for the block. Rules: MALLOC, POLICY. */
ACL_FUNC_VISIBILITY aclError aclrtMallocCached(void** devPtr, size_t size,
                                               aclrtMemMallocPolicy policy);

/* As aclrtMallocAlign32, with attributes.
 * [in] cfg  attributes, or NULL for none. Rules: MALLOC, POLICY. */
ACL_FUNC_VISIBILITY aclError aclrtMallocWithCfg(void** devPtr, size_t size,
                                                aclrtMemMallocPolicy policy,
                                                aclrtMallocConfig* cfg);

/* As aclrtMallocWithCfg, for memory the task scheduler uses. Rules: MALLOC, POLICY. */
ACL_FUNC_VISIBILITY aclError aclrtMallocForTaskScheduler(void** devPtr, size_t size,
                                                         aclrtMemMallocPolicy policy,
                                                         aclrtMallocConfig* cfg);

/* Frees device or managed memory at once; the caller sees to it that no task still uses it.
 * [in] devPtr  start of the block. Rules: FREE. */
ACL_FUNC_VISIBILITY aclError aclrtFree(void* devPtr);

/* Waits for all tasks of the current device, then frees. Rules: FREE. */
ACL_FUNC_VISIBILITY aclError aclrtFreeWithDevSync(void* devPtr);

/* Writes cached data back to device memory. Rules: FREE. */
ACL_FUNC_VISIBILITY aclError aclrtMemFlush(void* devPtr, size_t size);

/* Drops cached data so that the next access reads device memory. Rules: FREE. */
ACL_FUNC_VISIBILITY aclError aclrtMemInvalidate(void* devPtr, size_t size);

/* Gives the free and total bytes of one kind of memory on the current device. Rules: INFO. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total);

/* Lists what the components of the software use on a device, the largest first.
 * [out] memUsageInfo  array of inputNum entries
 * [out] outputNum     entries filled. Rules: INFO. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo,
                                                  size_t inputNum, size_t* outputNum);

/* Tells whether all addresses are of the given kinds.
 * [in] size          number of addresses
 * [in] memType       OR of ACL_RT_MEM_TYPE_*
 * [out] checkResult  1 if so, else 0; reserve must be 0. Rules: INFO. */
ACL_FUNC_VISIBILITY aclError aclrtCheckMemType(void** addrList, uint32_t size, uint32_t memType,
                                               uint32_t* checkResult, uint32_t reserve);

/* ---- Host memory ---- */

/* How aclrtHostRegister makes host memory visible. */
typedef enum aclrtHostRegisterType ACL_ENUM_BASE {
  ACL_HOST_REGISTER_MAPPED = 0,
  ACL_HOST_REGISTER_IOMEMORY = 0x04, /* reserved */
  ACL_HOST_REGISTER_READONLY = 0x08  /* reserved */
} aclrtHostRegisterType;

/* Flags of aclrtHostRegisterV2, may be OR-ed. */
#define ACL_HOST_REG_MAPPED 0x2UL        /* the device can access the range */
#define ACL_HOST_REG_IOMEMORY 0x4UL      /* reserved */
#define ACL_HOST_REG_READONLY 0x8UL      /* reserved */
#define ACL_HOST_REG_PINNED 0x10000000UL /* the range is page-locked */

/* Engines of a device that may access host memory. */
typedef enum aclrtHacType ACL_ENUM_BASE {
  ACL_RT_HAC_TYPE_STARS = 0,
  ACL_RT_HAC_TYPE_AICPU = 1,
  ACL_RT_HAC_TYPE_AIC = 2,
  ACL_RT_HAC_TYPE_AIV = 3,
  ACL_RT_HAC_TYPE_PCIEDMA = 4,
  ACL_RT_HAC_TYPE_RDMA = 5,
  ACL_RT_HAC_TYPE_SDMA = 6,
  ACL_RT_HAC_TYPE_DVPP = 7,
  ACL_RT_HAC_TYPE_UDMA = 8,
  ACL_RT_HAC_TYPE_CCU = 9
} aclrtHacType;

typedef enum aclrtHostMemMapCapability ACL_ENUM_BASE {
  ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED = 0,
  ACL_RT_HOST_MEM_MAP_SUPPORTED = 1
} aclrtHostMemMapCapability;

/* Allocates page-locked host memory; aclrtFreeHost gives it back.
 * [out] hostPtr  start address, a multiple of 64. Rules: HOST. */
ACL_FUNC_VISIBILITY aclError aclrtMallocHost(void** hostPtr, size_t size);

/* As aclrtMallocHost, with attributes.
 * [in] cfg  attributes, or NULL for none. Rules: HOST. */
ACL_FUNC_VISIBILITY aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size,
                                                    aclrtMallocConfig* cfg);

/* Frees page-locked host memory at once.
 * [in] hostPtr  start of the block. Rules: HOST. */
ACL_FUNC_VISIBILITY aclError aclrtFreeHost(void* hostPtr);

/* Waits for all tasks of the current device, then frees. Rules: HOST. */
ACL_FUNC_VISIBILITY aclError aclrtFreeHostWithDevSync(void* hostPtr);

/* Makes a range of host memory visible to the device.
 * [in] ptr      start of the range, a multiple of the page size
 * [out] devPtr  its address for kernels, not for copies. Rules: HREG. */
ACL_FUNC_VISIBILITY aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type,
                                               void** devPtr);

/* Makes a range of host memory visible to the device, page-locked, or both.
 * [in] flag  OR of ACL_HOST_REG_*. Rules: HREG. */
ACL_FUNC_VISIBILITY aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag);

/* Gives the device address of a range registered as MAPPED.
 * [in] pHost  start of the range
 * [in] flag   reserved, 0. Rules: HREG. */
ACL_FUNC_VISIBILITY aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag);

/* Undoes either registration; the host memory itself stays.
 * [in] ptr  start of the range. Rules: HREG. */
ACL_FUNC_VISIBILITY aclError aclrtHostUnregister(void* ptr);

/* Tells whether an engine of the device can access registered host memory. Rules: HREG. */
ACL_FUNC_VISIBILITY aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
                                                         aclrtHostMemMapCapability* capabilities);

/* ---- Copy ---- */

typedef enum aclrtMemcpyKind ACL_ENUM_BASE {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,       /* within one device or between two */
  ACL_MEMCPY_DEFAULT = 4,                /* the addresses decide */
  ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,  /* staged: the source is free on return */
  ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6, /* within one device */
  ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7  /* between two devices */
} aclrtMemcpyKind;

/* Where both sides of some elements of a batch are. */
typedef struct aclrtMemcpyBatchAttr {
  aclrtMemLocation dstLoc;
  aclrtMemLocation srcLoc;
  uint8_t rsv[16]; /* must be 0 */
} aclrtMemcpyBatchAttr;

/* Reductions of the DMA engine. */
typedef enum aclrtReduceKind ACL_ENUM_BASE {
  ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM = 10,
  ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX = 11,
  ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN = 12,
  ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL = 13
} aclrtReduceKind;

/* Copies count bytes; done on return. Streams are not waited for.
 * [in] destMax  room at dst. Rules: COPY. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                                         aclrtMemcpyKind kind);

/* Copies on a stream; with a side in ordinary host memory it is done on return. Rules: ACOPY. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src,
                                              size_t count, aclrtMemcpyKind kind,
                                              aclrtStream stream);

/* Deprecated. As aclrtMemcpyAsync. Rules: ACOPY. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax,
                                                           const void* src, size_t count,
                                                           aclrtMemcpyKind kind,
                                                           aclrtStream stream);

/* Copies numBatches elements between host and device; done on return.
 * [in] attrsIndexes  attrs[k] holds from element attrsIndexes[k] up to the next index
 * [out] failIndex    the element to blame, or SIZE_MAX. Rules: BATCH. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs,
                                              size_t* sizes, size_t numBatches,
                                              aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                                              size_t numAttrs, size_t* failIndex);

/* As aclrtMemcpyBatch, on a stream. Rules: BATCH. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs,
                                                   size_t* sizes, size_t numBatches,
                                                   aclrtMemcpyBatchAttr* attrs,
                                                   size_t* attrsIndexes, size_t numAttrs,
                                                   size_t* failIndex, aclrtStream stream);

/* As aclrtMemcpyBatch, without telling which element failed. Rules: BATCH. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs,
                                                size_t* sizes, size_t numBatches,
                                                aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                                                size_t numAttrs);

/* As aclrtMemcpyBatchAsync, without telling which element failed. Rules: BATCH. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs,
                                                     size_t* sizes, size_t numBatches,
                                                     aclrtMemcpyBatchAttr* attrs,
                                                     size_t* attrsIndexes, size_t numAttrs,
                                                     aclrtStream stream);

/* Combines count bytes of elements on a stream: dst[i] becomes dst[i] op src[i].
 * [in] dst, src  device memory of the stream's device, of any alignment; may be the same
 * [in] reserve   must be NULL. Rules: RED. */
ACL_FUNC_VISIBILITY aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count,
                                              aclrtReduceKind kind, aclDataType type,
                                              aclrtStream stream, void* reserve);

/* Copies height rows of width bytes; done on return.
 * [in] dpitch, spitch  bytes from one row to the next. Rules: COPY2D. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch,
                                           size_t width, size_t height, aclrtMemcpyKind kind);

/* As aclrtMemcpy2d, on a stream. Rules: COPY2D. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src,
                                                size_t spitch, size_t width, size_t height,
                                                aclrtMemcpyKind kind, aclrtStream stream);

/* Gives the size of a copy description for aclrtSetMemcpyDesc. Rules: DESC. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t* descSize);

/* Writes a description of a copy within one device, for use any number of times.
 * [in] desc    device memory aligned to 64
 * [in] config  reserved, NULL. Rules: DESC. */
ACL_FUNC_VISIBILITY aclError aclrtSetMemcpyDesc(void* desc, aclrtMemcpyKind kind, void* srcAddr,
                                                void* dstAddr, size_t count, void* config);

/* Performs a described copy, on a stream; no default stream. Rules: DESC. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithDesc(void* desc, aclrtMemcpyKind kind,
                                                      aclrtStream stream);

/* Copies within one device, on a stream, between addresses read when the task runs.
 * [in] dst, src  device addresses of the cells that hold the real addresses
 * [in] destMax   room at *dst; offsets are added to *dst and *src. Rules: DESC. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithOffset(void** dst, size_t destMax,
                                                        size_t dstDataOffset, const void** src,
                                                        size_t count, size_t srcDataOffset,
                                                        aclrtMemcpyKind kind, aclrtStream stream);

/* ---- Set ---- */

/* Sets count bytes to the low 8 bits of value; done on return.
 * [in] maxCount  room at devPtr. Rules: SET. */
ACL_FUNC_VISIBILITY aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value,
                                         size_t count);

/* As aclrtMemset, on a stream; host memory is set on return. Rules: SET. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value,
                                              size_t count, aclrtStream stream);

/* Sets N 32-bit words; done on return.
 * [in] memSize  room at ptr in bytes. Rules: SET. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N);

/* As aclrtMemsetD32, on a stream; host memory is set on return. Rules: SET. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value,
                                                 size_t N, aclrtStream stream);

/* ---- Pointers ---- */

typedef struct aclrtPtrAttributes {
  aclrtMemLocation location;
  uint32_t pageSize; /* bytes */
  uint32_t rsv[4];
} aclrtPtrAttributes;

/* Tells where an address lies; one unknown to this interface is UNREGISTERED. Rules: PTR. */
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void* ptr,
                                                       aclrtPtrAttributes* attributes);

/* Gives start and size of the allocation or mapping around an address. One output may be NULL.
 * Rules: RANGE. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize);

/* Makes a block reachable from an enabled peer device ahead of its first use there.
 * [in] flags  reserved, 0. Rules: PTR. */
ACL_FUNC_VISIBILITY aclError aclrtMemP2PMap(void* devPtr, size_t size, int32_t dstDevId,
                                            uint64_t flags);

/* ---- Virtual memory: physical blocks ---- */

typedef struct aclrtPhysicalMemProp {
  aclrtMemHandleType handleType;         /* NONE */
  aclrtMemAllocationType allocationType; /* PINNED */
  aclrtMemAttr memAttr;
  aclrtMemLocation location;
  uint64_t reserve; /* 0 */
} aclrtPhysicalMemProp;

typedef enum aclrtMemGranularityOptions ACL_ENUM_BASE {
  ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
  ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
  ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 0xFFFF
} aclrtMemGranularityOptions;

/* Gives the unit of sizes and addresses for blocks with these properties. Rules: GRAN. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                                              aclrtMemGranularityOptions option,
                                                              size_t* granularity);

/* Allocates a block of physical memory, which has no address until it is mapped.
 * [in] size   a multiple of the granularity
 * [in] flags  reserved, 0. Rules: PHYS. */
ACL_FUNC_VISIBILITY aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                                                 const aclrtPhysicalMemProp* prop, uint64_t flags);

/* Gives up one reference to a block. The memory goes back when no reference and no mapping is left
 * in any process. Rules: PFREE. */
ACL_FUNC_VISIBILITY aclError aclrtFreePhysical(aclrtDrvMemHandle handle);

/* Gives the handle of the block mapped at virPtr and adds a reference, to be freed on its own.
 * [in] virPtr  start of a mapping. Rules: RETAIN. */
ACL_FUNC_VISIBILITY aclError aclrtMemRetainAllocationHandle(void* virPtr,
                                                            aclrtDrvMemHandle* handle);

/* Gives the properties of a block, with the attribute in its normal form. Rules: PROP. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
                                                                       aclrtPhysicalMemProp* prop);

/* ---- Virtual memory: reservations ---- */

/* Reserves a range of addresses without memory behind them.
 * [in] alignment  reserved, 0
 * [in] expectPtr  NULL, or the address wished for
 * [in] flags      0 or 1 (huge pages). Rules: RESV. */
ACL_FUNC_VISIBILITY aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment,
                                                    void* expectPtr, uint64_t flags);

/* As aclrtReserveMemAddress, for a range that is never used uncached.
 * [in] expectPtr  required, a multiple of 1 GiB. Rules: RESVN. */
ACL_FUNC_VISIBILITY aclError aclrtReserveMemAddressNoUCMemory(void** virPtr, size_t size,
                                                              size_t alignment, void* expectPtr,
                                                              uint64_t flags);

/* Releases a reservation that has no mapping left.
 * [in] virPtr  its start. Rules: REL. */
ACL_FUNC_VISIBILITY aclError aclrtReleaseMemAddress(void* virPtr);

/* ---- Virtual memory: mappings ---- */

/* Paths between two dies, for aclrtMemMapSelectedLink. */
#define ACL_RT_MEM_LINK_IDX_0 0U /* SIO */
#define ACL_RT_MEM_LINK_IDX_1 1U /* HCCS */

typedef enum aclrtMemLinkType ACL_ENUM_BASE {
  ACL_RT_MEM_ACCESS_LINK_SIO = 0,
  ACL_RT_MEM_ACCESS_LINK_HCCS = 1,
  ACL_RT_MEM_ACCESS_UB_ONE_PORT_PATH = 2,
  ACL_RT_MEM_ACCESS_UB_MULTI_PORT_PATH = 3
} aclrtMemLinkType;

/* Maps a whole block into a reservation; its own device can then read and write it.
 * [in] virPtr         aligned address in a reservation
 * [in] size           the size of the block
 * [in] offset, flags  reserved, 0. Rules: MAP. */
ACL_FUNC_VISIBILITY aclError aclrtMapMem(void* virPtr, size_t size, size_t offset,
                                         aclrtDrvMemHandle handle, uint64_t flags);

/* As aclrtMapMem, but without access until aclrtMemSetAccess grants it. Rules: NOACC. */
ACL_FUNC_VISIBILITY aclError aclrtMemMapNoAccess(void* virPtr, size_t size, size_t offset,
                                                 aclrtDrvMemHandle handle, uint64_t flags);

/* Maps the blocks behind virPtrSrc a second time at virPtrDst, over a chosen path between dies.
 * [in] linkIdx  ACL_RT_MEM_LINK_IDX_*. Rules: LINK. */
ACL_FUNC_VISIBILITY aclError aclrtMemMapSelectedLink(void* virPtrDst, size_t size, void* virPtrSrc,
                                                     uint32_t linkIdx);

/* Advises over which link mappings of a block shall be reached. Rules: LINK. */
ACL_FUNC_VISIBILITY aclError aclrtMemMapSetLink(aclrtDrvMemHandle handle,
                                                aclrtMemLinkType adviceLink);

/* Removes a mapping and its access grants.
 * [in] virPtr  its start. Rules: UNMAP. */
ACL_FUNC_VISIBILITY aclError aclrtUnmapMem(void* virPtr);

/* ---- Virtual memory: access ---- */

typedef enum aclrtMemAccessFlags ACL_ENUM_BASE {
  ACL_RT_MEM_ACCESS_FLAGS_NONE = 0x0,
  ACL_RT_MEM_ACCESS_FLAGS_READ = 0x1,
  ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 0x3
} aclrtMemAccessFlags;

typedef struct aclrtMemAccessDesc {
  aclrtMemAccessFlags flags;
  aclrtMemLocation location;
  uint8_t rsv[12]; /* 0 */
} aclrtMemAccessDesc;

/* Grants devices or the host access to a mapping.
 * [in] virPtr, size  start and size of the mapping
 * [in] desc          array of count grants. Rules: ACCESS. */
ACL_FUNC_VISIBILITY aclError aclrtMemSetAccess(void* virPtr, size_t size, aclrtMemAccessDesc* desc,
                                               size_t count);

/* Gives the access that a location has to a mapping.
 * [out] flag  an aclrtMemAccessFlags number. Rules: ACCESS. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAccess(void* virPtr, aclrtMemLocation* location,
                                               uint64_t* flag);

/* ---- Virtual memory: sharing ---- */

#define ACL_RT_VMM_EXPORT_FLAG_DEFAULT 0x0UL                /* listed processes may import */
#define ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL /* every process may import */

typedef enum aclrtMemSharedHandleType ACL_ENUM_BASE {
  ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT = 0x1, /* within a server: a uint64_t */
  ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 0x2   /* also across servers: an aclrtMemFabricHandle */
} aclrtMemSharedHandleType;

typedef struct aclrtMemFabricHandle {
  uint8_t data[128];
} aclrtMemFabricHandle;

/* Makes a block available to other processes, once.
 * [in] handleType        reserved, ACL_MEM_HANDLE_TYPE_NONE
 * [in] flags             ACL_RT_VMM_EXPORT_FLAG_*
 * [out] shareableHandle  number to send to the other process. Rules: SHARE. */
ACL_FUNC_VISIBILITY aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
                                                             aclrtMemHandleType handleType,
                                                             uint64_t flags,
                                                             uint64_t* shareableHandle);

/* As aclrtMemExportToShareableHandle, for either kind of shareable handle.
 * [out] shareableHandle  room for the kind named by shareType. Rules: SHARE. */
ACL_FUNC_VISIBILITY aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle,
                                                               uint64_t flags,
                                                               aclrtMemSharedHandleType shareType,
                                                               void* shareableHandle);

/* Adds processes, by aclrtDeviceGetBareTgid numbers, to those that may import. Rules: SHARE. */
ACL_FUNC_VISIBILITY aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid,
                                                             size_t pidNum);

/* As aclrtMemSetPidToShareableHandle, for either kind of shareable handle. Rules: SHARE. */
ACL_FUNC_VISIBILITY aclError aclrtMemSetPidToShareableHandleV2(void* shareableHandle,
                                                               aclrtMemSharedHandleType shareType,
                                                               int32_t* pid, size_t pidNum);

/* Opens another process's block, to be mapped and freed like an own one.
 * [in] deviceId  the device that will use it. Rules: SHARE. */
ACL_FUNC_VISIBILITY aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle,
                                                               int32_t deviceId,
                                                               aclrtDrvMemHandle* handle);

/* As aclrtMemImportFromShareableHandle, for either kind of handle and the current device.
 * [in] flags  reserved, 0. Rules: SHARE. */
ACL_FUNC_VISIBILITY aclError aclrtMemImportFromShareableHandleV2(void* shareableHandle,
                                                                 aclrtMemSharedHandleType shareType,
                                                                 uint64_t flags,
                                                                 aclrtDrvMemHandle* handle);

/* ---- IPC memory keys ---- */

/* Flags of aclrtIpcMemGetExportKey. */
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT 0x0UL                /* listed processes may import */
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL /* every process may import */

/* Flags of aclrtIpcMemImportByKey. */
#define ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT 0x0UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS 0x1UL /* enables peer access */

typedef enum aclrtIpcMemAttrType ACL_ENUM_BASE {
  ACL_RT_IPC_MEM_ATTR_ACCESS_LINK = 0
} aclrtIpcMemAttrType;

/* Values of ACL_RT_IPC_MEM_ATTR_ACCESS_LINK. */
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_SIO 0x0UL
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS 0x1UL
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_ONE_PORT_PATH 0x2UL
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH 0x3UL

/* Processes of one server in a super pod. */
typedef struct aclrtServerPid {
  uint32_t sdid; /* super pod device id */
  int32_t* pid;
  size_t num;
} aclrtServerPid;

/* Makes device memory available to other processes under a key.
 * [in] devPtr  start of an allocation
 * [out] key    NUL-terminated name; len is the size of the buffer, 65
 * [in] flags   ACL_RT_IPC_MEM_EXPORT_FLAG_*. Rules: IPC. */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key,
                                                     size_t len, uint64_t flags);

/* Adds processes, by aclrtDeviceGetBareTgid numbers, to those that may import. Rules: IPC. */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num);

/* As aclrtIpcMemSetImportPid, for processes of other servers. Rules: IPC. */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemImportPidInterServer(const char* key,
                                                             aclrtServerPid* serverPids,
                                                             size_t num);

/* The same for an exported notify. Rules: XPROC. */
ACL_FUNC_VISIBILITY aclError aclrtNotifySetImportPidInterServer(aclrtNotify notify,
                                                                aclrtServerPid* serverPids,
                                                                size_t num);

/* Gives an address for the memory another process exported.
 * [in] flags  ACL_RT_IPC_MEM_IMPORT_FLAG_*. Rules: IPC. */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags);

/* Ends the oldest import of the key in this process or, in the exporter, the export. Rules: IPC. */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemClose(const char* key);

/* Sets an attribute of exported memory. Rules: IPC. */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemSetAttr(const char* key, aclrtIpcMemAttrType type,
                                                uint64_t attr);

/* ---- Managed memory ---- */

#define ACL_RT_MEM_ATTACH_GLOBAL 0x01U /* the only flag of aclrtMemAllocManaged */

/* Mind the numbers: not those of aclrtMemLocationType. */
typedef enum aclrtMemManagedLocationType ACL_ENUM_BASE {
  ACL_MEM_LOCATIONTYPE_INVALID = 0,
  ACL_MEM_LOCATIONTYPE_DEVICE = 1,
  ACL_MEM_LOCATIONTYPE_HOST = 2,
  ACL_MEM_LOCATIONTYPE_HOST_NUMA = 3,
  ACL_MEM_LOCATIONTYPE_HOST_NUMA_CURRENT = 4
} aclrtMemManagedLocationType;

/* Mind the order: type first. */
typedef struct aclrtMemManagedLocation {
  aclrtMemManagedLocationType type;
  int32_t id;
} aclrtMemManagedLocation;

typedef enum aclrtMemManagedAdviseType ACL_ENUM_BASE {
  ACL_MEM_ADVISE_SET_READ_MOSTLY = 0,
  ACL_MEM_ADVISE_UNSET_READ_MOSTLY = 1,
  ACL_MEM_ADVISE_SET_PREFERRED_LOCATION = 2,
  ACL_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 3,
  ACL_MEM_ADVISE_SET_ACCESSED_BY = 4,
  ACL_MEM_ADVISE_UNSET_ACCESSED_BY = 5
} aclrtMemManagedAdviseType;

/* All values take 4 bytes, ACCESSED_BY a multiple. A location is a device id, -1 for the host or
 * -2 for none or several. */
typedef enum aclrtMemManagedRangeAttribute ACL_ENUM_BASE {
  ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY = 1,
  ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION = 2,
  ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY = 3,
  ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE = 4, /* an aclrtMemManagedLocationType */
  ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID = 5,
  ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION = 6,
  ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE = 7, /* an aclrtMemManagedLocationType */
  ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID = 8
} aclrtMemManagedRangeAttribute;

/* Allocates memory with one address for host and device; aclrtFree gives it back.
 * [in] flag  ACL_RT_MEM_ATTACH_GLOBAL. Rules: MANAGED. */
ACL_FUNC_VISIBILITY aclError aclrtMemAllocManaged(void** ptr, uint64_t size, uint32_t flag);

/* Advises how a range of managed memory will be used. Rules: MANAGED. */
ACL_FUNC_VISIBILITY aclError aclrtMemManagedAdvise(const void* const ptr, uint64_t size,
                                                   aclrtMemManagedAdviseType advise,
                                                   aclrtMemManagedLocation location);

/* Gives an attribute of a range of managed memory.
 * [out] data  room for dataSize bytes. Rules: MANAGED. */
ACL_FUNC_VISIBILITY aclError aclrtMemManagedGetAttr(aclrtMemManagedRangeAttribute attribute,
                                                    const void* ptr, size_t size, void* data,
                                                    size_t dataSize);

/* Gives several attributes of a range of managed memory. Rules: MANAGED. */
ACL_FUNC_VISIBILITY aclError aclrtMemManagedGetAttrs(aclrtMemManagedRangeAttribute* attributes,
                                                     size_t numAttributes, const void* ptr,
                                                     size_t size, void** data, size_t* dataSizes);

/* Moves a range of managed memory to a location, on a stream.
 * [in] flags  reserved, 0. Rules: MANAGED. */
ACL_FUNC_VISIBILITY aclError aclrtMemManagedPrefetchAsync(const void* ptr, size_t size,
                                                          aclrtMemManagedLocation location,
                                                          uint32_t flags, aclrtStream stream);

/* Moves count ranges of managed memory, on a stream.
 * [in] prefetchLocIdxs  prefetchLocs[k] holds from range prefetchLocIdxs[k] up to the next index
 * [in] flags            reserved, 0. Rules: MANAGED. */
ACL_FUNC_VISIBILITY aclError aclrtMemManagedPrefetchBatchAsync(
    const void** ptrs, size_t* sizes, size_t count, aclrtMemManagedLocation* prefetchLocs,
    size_t* prefetchLocIdxs, size_t numPrefetchLocs, uint64_t flags, aclrtStream stream);

/* ---- Cache maintenance ---- */

#define ACL_RT_CMO_MAX_BARRIER_NUM 6U

typedef enum aclrtCmoType ACL_ENUM_BASE {
  ACL_RT_CMO_TYPE_PREFETCH = 0,
  ACL_RT_CMO_TYPE_WRITEBACK = 1,
  ACL_RT_CMO_TYPE_INVALID = 2,
  ACL_RT_CMO_TYPE_FLUSH = 3
} aclrtCmoType;

typedef struct aclrtBarrierCmoInfo {
  aclrtCmoType cmoType;
  uint32_t barrierId;
} aclrtBarrierCmoInfo;

typedef struct aclrtBarrierTaskInfo {
  size_t barrierNum;
  aclrtBarrierCmoInfo cmoInfo[ACL_RT_CMO_MAX_BARRIER_NUM];
} aclrtBarrierTaskInfo;

/* Performs a cache operation on a range, on a stream; data never changes. Rules: CMO. */
ACL_FUNC_VISIBILITY aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType,
                                           aclrtStream stream);

/* As aclrtCmoAsync, with a barrier to wait for; streams of a model only.
 * [in] barrierId  > 0 for INVALID, else 0. Rules: CMO. */
ACL_FUNC_VISIBILITY aclError aclrtCmoAsyncWithBarrier(void* src, size_t size, aclrtCmoType cmoType,
                                                      uint32_t barrierId, aclrtStream stream);

/* Holds the stream until the barriers are reached; streams of a model only.
 * [in] flag  reserved, 0. Rules: CMO. */
ACL_FUNC_VISIBILITY aclError aclrtCmoWaitBarrier(aclrtBarrierTaskInfo* taskInfo, aclrtStream stream,
                                                 uint32_t flag);

/* Gives the size of a cache operation description. Rules: CMO. */
ACL_FUNC_VISIBILITY aclError aclrtCmoGetDescSize(size_t* size);

/* Writes the description of a range.
 * [in] cmoDesc  device memory of at least aclrtCmoGetDescSize bytes. Rules: CMO. */
ACL_FUNC_VISIBILITY aclError aclrtCmoSetDesc(void* cmoDesc, void* src, size_t size);

/* Performs a cache operation on a described range, on a stream.
 * [in] reserve  NULL. Rules: CMO. */
ACL_FUNC_VISIBILITY aclError aclrtCmoAsyncWithDesc(void* cmoDesc, aclrtCmoType cmoType,
                                                   aclrtStream stream, const void* reserve);

/* ---- Memory operations on a stream ---- */

/* When aclrtValueWait is satisfied, with a for the 64 bits at devAddr. */
#define ACL_STREAM_WAIT_VALUE_GEQ 0x0U /* (int64_t)(a - value) >= 0 */
#define ACL_STREAM_WAIT_VALUE_EQ 0x1U  /* a == value */
#define ACL_STREAM_WAIT_VALUE_AND 0x2U /* (a & value) != 0 */
#define ACL_STREAM_WAIT_VALUE_NOR 0x3U /* ~(a | value) != 0 */

/* Writes 64 bits to device memory, on a stream.
 * [in] devAddr  a multiple of 8
 * [in] flag     reserved, 0. Rules: SMEM. */
ACL_FUNC_VISIBILITY aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag,
                                             aclrtStream stream);

/* Holds the stream until 64 bits in device memory satisfy a condition.
 * [in] flag  ACL_STREAM_WAIT_VALUE_*. Rules: SMEM. */
ACL_FUNC_VISIBILITY aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag,
                                            aclrtStream stream);

/* ---- Stream-ordered pools (experimental) ---- */

typedef struct aclrtMemPoolProps {
  aclrtMemAllocationType allocType; /* PINNED */
  aclrtMemHandleType handleType;
  aclrtMemLocation location;  /* a device */
  size_t maxSize;             /* bytes, 0 for all of the device */
  unsigned char reserved[32]; /* must be 0 */
} aclrtMemPoolProps;

/* The reuse switches are uint32_t (0 or 1), the figures uint64_t bytes. */
typedef enum aclrtMemPoolAttr ACL_ENUM_BASE {
  ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 0x1,
  ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC = 0x2,
  ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 0x3,
  ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD = 0x4,    /* default 0 */
  ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT = 0x5, /* read-only */
  ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH = 0x6,    /* peak; may be set to 0 */
  ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT = 0x7,     /* read-only */
  ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH = 0x8         /* peak; may be set to 0 */
} aclrtMemPoolAttr;

/* Creates a pool. Rules: POOL. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolCreate(aclrtMemPool* memPool,
                                                const aclrtMemPoolProps* poolProps);

/* Destroys a pool and returns its memory. Rules: POOL. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolDestroy(const aclrtMemPool memPool);

/* Sets an attribute of a pool. Rules: POOL. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolSetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr,
                                                 void* value);

/* Reads an attribute of a pool. Rules: POOL. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolGetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr,
                                                 void* value);

/* Takes memory from a pool, for tasks queued later on the stream; no default stream.
 * Rules: POOL. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolMallocAsync(void** ptr, size_t size, aclrtMemPool memPool,
                                                     aclrtStream stream);

/* Returns memory to its pool, on a stream; no default stream. Rules: POOL. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolFreeAsync(void* ptr, aclrtStream stream);

/* Returns a pool's unused memory to the device, down to minBytesToKeep. Rules: POOL. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t minBytesToKeep);

/* ---- Device variables ---- */

/* Gives the device address of a variable of a kernel. Rules: SYM. */
ACL_FUNC_VISIBILITY aclError aclrtGetSymbolAddress(const void* symbol, void** devPtr);

/* Gives the size of a variable of a kernel. Rules: SYM. */
ACL_FUNC_VISIBILITY aclError aclrtGetSymbolSize(const void* symbol, size_t* size);

/* Copies count bytes at offset out of a variable; the Async form on a stream. Rules: SYM. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyFromSymbol(void* dst, size_t dstMax, const void* symbol,
                                                   size_t count, size_t offset,
                                                   aclrtMemcpyKind kind);
ACL_FUNC_VISIBILITY aclError aclrtMemcpyFromSymbolAsync(void* dst, size_t dstMax,
                                                        const void* symbol, size_t count,
                                                        size_t offset, aclrtMemcpyKind kind,
                                                        aclrtStream stream);

/* Copies count bytes into a variable at offset; the Async form on a stream. Rules: SYM. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyToSymbol(const void* symbol, const void* src, size_t count,
                                                 size_t offset, aclrtMemcpyKind kind);
ACL_FUNC_VISIBILITY aclError aclrtMemcpyToSymbolAsync(const void* symbol, const void* src,
                                                      size_t count, size_t offset,
                                                      aclrtMemcpyKind kind, aclrtStream stream);

/* ---- Errors and faults: last error ---- */

typedef enum aclrtLastErrLevel ACL_ENUM_BASE { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;

/* Returns the thread's latest 107xxx, 207xxx or 507xxx code, or 0. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtPeekAtLastError(aclrtLastErrLevel level);

/* As aclrtPeekAtLastError, and forgets the code. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtGetLastError(aclrtLastErrLevel level);

/* ---- Errors and faults: failed tasks ---- */

typedef struct rtExceptionInfo aclrtExceptionInfo; /* opaque */

typedef void (*aclrtExceptionInfoCallback)(aclrtExceptionInfo* exceptionInfo);

/* Has callback called when a task fails. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError
aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback);

/* Undoes aclrtExceptionInfoCallbackRegister. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError
aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback);

/* Deprecated. Sets the one callback of its own; NULL removes it. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);

/* Return one figure of a failure; 0xFFFFFFFF if info is NULL. Rules: ERR. */
ACL_FUNC_VISIBILITY uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info);

/* Gives the id of the task that the thread queued last. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtGetThreadLastTaskId(uint32_t* taskId);

/* ---- Errors and faults: aborting ---- */

typedef enum aclrtDeviceTaskAbortStage ACL_ENUM_BASE {
  ACL_RT_DEVICE_TASK_ABORT_PRE = 0,
  ACL_RT_DEVICE_TASK_ABORT_POST = 1
} aclrtDeviceTaskAbortStage;

typedef int32_t (*aclrtDeviceTaskAbortCallback)(int32_t deviceId, aclrtDeviceTaskAbortStage stage,
                                                uint32_t timeout, void* args);

/* Stops and drops all tasks of a device.
 * [in] timeout  milliseconds, 0 for no limit. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout);

/* Has callback called before and after aclrtDeviceTaskAbort.
 * [in] regName  unique name of the registration. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceTaskAbortCallback(const char* regName,
                                                             aclrtDeviceTaskAbortCallback callback,
                                                             void* args);

/* ---- Errors and faults: time limits of operators ---- */

/* Sets the limit in seconds. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);

/* Sets the limit in microseconds.
 * [out] actualTimeout  the limit in force. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout);

/* Sets the limit in milliseconds. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout);

/* Gives the step between possible limits in microseconds. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtGetOpTimeOutInterval(uint64_t* interval);

/* Gives the limit in milliseconds. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs);

/* ---- Errors and faults: memory errors and repair ---- */

#define MAX_MEM_UCE_INFO_ARRAY_SIZE 128
#define UCE_INFO_RESERVED_SIZE 14
#define ACL_RT_MEM_UCE_INFO_MAX_NUM 20
#define ACL_RT_MAX_RECORD_PA_NUM_PER_DEV 20U

/* A range hit by an uncorrectable memory error. */
typedef struct aclrtMemUceInfo {
  void* addr;
  size_t len;
  size_t reserved[UCE_INFO_RESERVED_SIZE];
} aclrtMemUceInfo;

typedef struct aclrtMemUceInfoArray {
  size_t arraySize; /* entries in use */
  aclrtMemUceInfo memUceInfoArray[ACL_RT_MEM_UCE_INFO_MAX_NUM];
} aclrtMemUceInfoArray;

typedef enum aclrtErrorType ACL_ENUM_BASE {
  ACL_RT_NO_ERROR = 0,
  ACL_RT_ERROR_MEMORY = 1,
  ACL_RT_ERROR_L2 = 2,
  ACL_RT_ERROR_AICORE = 3,
  ACL_RT_ERROR_LINK = 4,
  ACL_RT_ERROR_OTHERS = 0xFFFF
} aclrtErrorType;

typedef enum aclrtAicoreErrorType ACL_ENUM_BASE {
  ACL_RT_AICORE_ERROR_UNKNOWN = 0,
  ACL_RT_AICORE_ERROR_SOFTWARE = 1,
  ACL_RT_AICORE_ERROR_HARDWARE_LOCAL = 2
} aclrtAicoreErrorType;

typedef union aclrtErrorInfoDetail {
  aclrtAicoreErrorType aicoreErrType; /* with ACL_RT_ERROR_AICORE */
  aclrtMemUceInfoArray uceInfo;       /* with ACL_RT_ERROR_MEMORY */
} aclrtErrorInfoDetail;

typedef struct aclrtErrorInfo {
  uint8_t tryRepair; /* 1: aclrtRepairError may help */
  uint8_t hasDetail; /* 1: detail is filled */
  aclrtErrorType errorType;
  aclrtErrorInfoDetail detail;
} aclrtErrorInfo;

/* Lists the ranges of a device hit by memory errors.
 * [out] memUceInfoArray  array of arraySize entries
 * [out] retSize          entries filled. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray,
                                                size_t arraySize, size_t* retSize);

/* Repairs ranges listed by aclrtGetMemUceInfo. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray,
                                               size_t arraySize);

/* Tells what is wrong with a device. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo);

/* Repairs what aclrtGetErrorVerbose reported. Rules: ERR. */
ACL_FUNC_VISIBILITY aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo);

/* ---- Snapshot of a process (experimental) ---- */

typedef enum aclrtSnapShotStage ACL_ENUM_BASE {
  ACL_RT_SNAPSHOT_LOCK_PRE = 0,
  ACL_RT_SNAPSHOT_BACKUP_PRE = 1,
  ACL_RT_SNAPSHOT_BACKUP_POST = 2,
  ACL_RT_SNAPSHOT_RESTORE_PRE = 3,
  ACL_RT_SNAPSHOT_RESTORE_POST = 4,
  ACL_RT_SNAPSHOT_UNLOCK_POST = 5
} aclrtSnapShotStage;

typedef struct aclrtSnapShotBackupArgs {
  uint32_t backupFlags;
  char reserved[60];
} aclrtSnapShotBackupArgs;

typedef struct aclrtSnapShotRestoreArgs {
  uint32_t restoreFlags;
  char reserved[60];
} aclrtSnapShotRestoreArgs;

/* Called once per device in use. Any answer but 0 lets the call fail with 507912. */
typedef uint32_t (*aclrtSnapShotCallBack)(int32_t deviceId, void* args);

/* Holds the process: calls that change what it has wait from now on, also those of this thread.
 * [in] pid      the calling process
 * [in] reserve  must be NULL. Rules: SNAP. */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotProcessLock(int pid, void* reserve);

/* Waits for the streams, keeps the contents of device memory on the host and gives the memory of
 * the devices back.
 * [in] args  must be NULL. Rules: SNAP. */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotProcessBackup(int pid, aclrtSnapShotBackupArgs* args);

/* Takes the memory of the devices again, with its contents and at its addresses.
 * [in] args  must be NULL. Rules: SNAP. */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotProcessRestore(int pid, aclrtSnapShotRestoreArgs* args);

/* Lets the calls go that wait. Rules: SNAP. */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotProcessUnlock(int pid, void* reserve);

/* Has a function called at a stage, after those registered before. Rules: SNAP. */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotCallbackRegister(aclrtSnapShotStage stage,
                                                           aclrtSnapShotCallBack callback,
                                                           void* args);
ACL_FUNC_VISIBILITY aclError aclrtSnapShotCallbackUnregister(aclrtSnapShotStage stage,
                                                             aclrtSnapShotCallBack callback);

#ifdef __cplusplus
}
#endif

#endif /* ACL_ACL_RT_H_ */
