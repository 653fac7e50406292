/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole interface in one header. Declared here: start and end of a process's use of the
 * library, error texts, package versions and capabilities. The runtime itself is in acl_rt.h.
 * "Rules: X" names a rule group of the specification.
 */
#ifndef ACL_ACL_H_
#define ACL_ACL_H_

#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"
#include "acl_rt.h"
#include "acl_rt_allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Start and end ---- */

/* Starts the library for this process and counts the call. A second call answers
 * ACL_ERROR_REPEAT_INITIALIZE, yet counts.
 * [in] configPath  JSON file; NULL or "" for the defaults. Rules: INIT. */
ACL_FUNC_VISIBILITY aclError aclInit(const char* configPath);

/* Ends the library's use at once, however often aclInit was called, and releases everything.
 * Rules: INIT. */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);

/* Takes back one aclInit; the last one ends the library's use.
 * [out] refCount  calls still counted; may be NULL. Rules: INIT. */
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t* refCount);

/* ---- Start and end callbacks ---- */

/* The component on whose behalf a callback is registered. Only OTHER takes more than one. */
typedef enum aclRegisterCallbackType ACL_ENUM_BASE {
  ACL_REG_TYPE_ACL_MODEL = 0,
  ACL_REG_TYPE_ACL_OP_EXECUTOR = 1,
  ACL_REG_TYPE_ACL_OP_CBLAS = 2,
  ACL_REG_TYPE_ACL_OP_COMPILER = 3,
  ACL_REG_TYPE_ACL_TDT_CHANNEL = 4,
  ACL_REG_TYPE_ACL_TDT_QUEUE = 5,
  ACL_REG_TYPE_ACL_DVPP = 6,
  ACL_REG_TYPE_ACL_RETR = 7,
  ACL_REG_TYPE_OTHER = 0xFFFF
} aclRegisterCallbackType;

/* Receives the text of the configuration and its length; an error becomes aclInit's result. */
typedef aclError (*aclInitCallbackFunc)(const char* configStr, size_t len, void* userData);
typedef aclError (*aclFinalizeCallbackFunc)(void* userData);

/* Has cbFunc called by aclInit, or right now if that is over. Rules: INIT. */
ACL_FUNC_VISIBILITY aclError aclInitCallbackRegister(aclRegisterCallbackType type,
                                                     aclInitCallbackFunc cbFunc, void* userData);

/* Undoes aclInitCallbackRegister. Rules: INIT. */
ACL_FUNC_VISIBILITY aclError aclInitCallbackUnRegister(aclRegisterCallbackType type,
                                                       aclInitCallbackFunc cbFunc);

/* Has cbFunc called when the library's use ends. Rules: INIT. */
ACL_FUNC_VISIBILITY aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type,
                                                         aclFinalizeCallbackFunc cbFunc,
                                                         void* userData);

/* Undoes aclFinalizeCallbackRegister. Rules: INIT. */
ACL_FUNC_VISIBILITY aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
                                                           aclFinalizeCallbackFunc cbFunc);

/* ---- Error texts ---- */

/* Returns and clears the texts of the thread's (or the process's) errors since the last call, the
 * newest first; NULL if there were none. Valid until the thread's next call. Rules: ERR. */
ACL_FUNC_VISIBILITY const char* aclGetRecentErrMsg(void);

/* ---- Package versions ---- */

#define ACL_PKG_VERSION_MAX_SIZE 128
#define ACL_PKG_VERSION_PARTS_MAX_SIZE 64

typedef enum aclCANNPackageName ACL_ENUM_BASE {
  ACL_PKG_NAME_CANN = 0,
  ACL_PKG_NAME_RUNTIME = 1,
  ACL_PKG_NAME_COMPILER = 2,
  ACL_PKG_NAME_HCCL = 3,
  ACL_PKG_NAME_TOOLKIT = 4,
  ACL_PKG_NAME_OPP = 5,
  ACL_PKG_NAME_OPP_KERNEL = 6,
  ACL_PKG_NAME_DRIVER = 7
} aclCANNPackageName;

/* A version as a whole and in parts; all texts end in NUL. */
typedef struct aclCANNPackageVersion {
  char version[ACL_PKG_VERSION_MAX_SIZE];
  char majorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char minorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char releaseVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char patchVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char reserved[ACL_PKG_VERSION_MAX_SIZE];
} aclCANNPackageVersion;

/* Deprecated. Gives the version of an installed package, whole and in parts. Rules: VER. */
ACL_FUNC_VISIBILITY aclError aclsysGetCANNVersion(aclCANNPackageName name,
                                                  aclCANNPackageVersion* version);

/* Gives the version text of an installed package.
 * [in] pkgName      '-' and '_' are interchangeable
 * [out] versionStr  room for ACL_PKG_VERSION_MAX_SIZE bytes. Rules: VER. */
ACL_FUNC_VISIBILITY aclError aclsysGetVersionStr(char* pkgName, char* versionStr);

/* Gives the version of an installed package as one number that grows with every release.
 * Rules: VER. */
ACL_FUNC_VISIBILITY aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum);

/* ---- Capabilities ---- */

/* Features of the software stack. */
typedef enum aclCannAttr ACL_ENUM_BASE {
  ACL_CANN_ATTR_UNDEFINED = -1,
  ACL_CANN_ATTR_INF_NAN = 0,
  ACL_CANN_ATTR_BF16 = 1,
  ACL_CANN_ATTR_JIT_COMPILE = 2
} aclCannAttr;

/* Figures of a device. */
typedef enum aclDeviceInfo ACL_ENUM_BASE {
  ACL_DEVICE_INFO_UNDEFINED = -1,
  ACL_DEVICE_INFO_AI_CORE_NUM = 0,
  ACL_DEVICE_INFO_VECTOR_CORE_NUM = 1,
  ACL_DEVICE_INFO_L2_SIZE = 2
} aclDeviceInfo;

/* Lists the features that aclGetCannAttribute knows.
 * [out] cannAttrList  array owned by the library. Rules: VER. */
ACL_FUNC_VISIBILITY aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num);

/* Tells whether a feature is supported (1) or not (0). Rules: VER. */
ACL_FUNC_VISIBILITY aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value);

/* Gives a figure of a device. Rules: VER. */
ACL_FUNC_VISIBILITY aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo,
                                                    int64_t* value);

#ifdef __cplusplus
}
#endif

#endif /* ACL_ACL_H_ */
