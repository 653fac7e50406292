// SPDX-License-Identifier: Apache-2.0
//
// Whether arithmetic of the device overflowed, which nothing here computes, and the choice of a
// task scheduler. Rules: OVF.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize, aclrtStream stream) {
  return guarded(US_CALL(outputAddr, outputSize, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(outputAddr, "outputAddr"));
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kDeviceArithmetic, stream));
    if (outputSize != kOverflowStatusBytes) {
      return Error::format(ErrorCode::kInvalidParam, "outputSize is %zu and must be %zu",
                           outputSize, static_cast<size_t>(kOverflowStatusBytes));
    }
    return call.runtime->copies().queue_clear(call.stream, to_address(outputAddr), outputSize);
  });
}

aclError aclrtResetOverflowStatus(aclrtStream stream) {
  return guarded(US_CALL(stream), [&]() -> Result<void> {
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kDeviceArithmetic, stream));
    return call.submit(Task(TaskKind::kNothing, call.device()));
  });
}

aclError aclrtCtxGetFloatOverflowAddr(void** overflowAddr) {
  return guarded(US_CALL(out(overflowAddr)), [&]() -> Result<void> {
    US_TRY(require_pointer(overflowAddr, "overflowAddr"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kDeviceArithmetic));
    US_TRY_ASSIGN(const VirtualAddress address, runtime->overflow_status());
    *overflowAddr = to_pointer(address);
    return {};
  });
}

aclError aclrtSetTsDevice(aclrtTsId tsId) {
  return guarded(US_CALL(tsId), [&]() -> Result<void> {
    if (tsId != ACL_TS_ID_AICORE && tsId != ACL_TS_ID_AIVECTOR) {
      return invalid_argument("tsId is %d and must be 0 or 1", static_cast<int>(tsId));
    }
    US_TRY(runtime_with(Feature::kDeviceArithmetic));
    return {};  // the workers serve all tasks
  });
}
