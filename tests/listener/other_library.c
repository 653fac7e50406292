/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libascendcl.so that knows nothing of the software NPU, as a real device's does not: what
 * program.cc calls, and every call of it succeeds but those with arguments that are plainly wrong.
 */
#include "acl/acl.h"

static int object;

aclError aclrtSetDevice(int32_t deviceId) { return deviceId < 8 ? 0 : ACL_ERROR_RT_PARAM_INVALID; }
aclError aclrtResetDeviceForce(int32_t deviceId) { return deviceId < 8 ? 0 : 1; }

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  (void)size;
  (void)policy;
  *devPtr = &object;
  return 0;
}
aclError aclrtFree(void* devPtr) { return devPtr != NULL ? 0 : ACL_ERROR_RT_PARAM_INVALID; }
aclError aclrtFreeHost(void* hostPtr) { return hostPtr != NULL ? 0 : ACL_ERROR_RT_PARAM_INVALID; }

aclError aclrtCreateStream(aclrtStream* stream) {
  *stream = &object;
  return 0;
}
aclError aclrtCreateEvent(aclrtEvent* event) {
  *event = &object;
  return 0;
}
const char* aclGetRecentErrMsg(void) { return NULL; }
