// SPDX-License-Identifier: Apache-2.0
//
// Cache operations. Rules: CMO.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "stream/descriptions.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// CMO-02, CMO-10
Result<void> check_type(aclrtCmoType type) {
  if (type >= ACL_RT_CMO_TYPE_PREFETCH && type <= ACL_RT_CMO_TYPE_FLUSH) return {};
  return Error::format(ErrorCode::kNotSupported, "cmoType is %d and must be 0 to 3",
                       static_cast<int>(type));
}

// The functions with descriptions check pointers in the inner layer (CMO-07).
Result<void> check_pointer(const void* pointer, const char* name) {
  if (pointer != nullptr) return {};
  return Error::format(ErrorCode::kInvalidParam, "%s is NULL", name);
}

// CMO-06
Error no_model() {
  return Error::format(ErrorCode::kNotSupported,
                       "barriers are for streams of a model, which do not exist here");
}

}  // namespace

aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType, aclrtStream stream) {
  return guarded(US_CALL(src, size, cmoType, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(src, "src"));
    US_TRY(require_size(size, "size"));
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kCacheOperations, stream));
    US_TRY(check_type(cmoType));
    return call.runtime->cache_operations().queue(call.stream, {to_address(src), size});
  });
}

aclError aclrtCmoAsyncWithBarrier(void* src, size_t size, aclrtCmoType cmoType, uint32_t barrierId,
                                  aclrtStream stream) {
  return guarded(US_CALL(src, size, cmoType, barrierId, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(src, "src"));
    US_TRY(require_size(size, "size"));
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kCacheBarriers, stream));
    US_TRY(check_type(cmoType));
    if ((cmoType == ACL_RT_CMO_TYPE_INVALID) != (barrierId > 0)) {
      return Error::format(ErrorCode::kInvalidParam,
                           "barrierId is %u with cmoType %d; INVALID (2) needs one above 0, every "
                           "other type 0",
                           barrierId, static_cast<int>(cmoType));
    }
    US_TRY(call.runtime->cache_operations().check_range({to_address(src), size}, call.device()));
    return no_model();
  });
}

aclError aclrtCmoWaitBarrier(aclrtBarrierTaskInfo* taskInfo, aclrtStream stream, uint32_t flag) {
  return guarded(US_CALL(taskInfo, stream, flag), [&]() -> Result<void> {
    US_TRY(require_pointer(taskInfo, "taskInfo"));
    const GatePass pass;
    US_TRY(stream_call(Feature::kCacheBarriers, stream));
    if (taskInfo->barrierNum == 0 || taskInfo->barrierNum > ACL_RT_CMO_MAX_BARRIER_NUM) {
      return Error::format(ErrorCode::kInvalidParam, "barrierNum is %zu and must be 1 to %u",
                           taskInfo->barrierNum, ACL_RT_CMO_MAX_BARRIER_NUM);
    }
    if (flag != 0) {
      return Error::format(ErrorCode::kInvalidParam, "flag is %u and must be 0", flag);
    }
    return no_model();
  });
}

aclError aclrtCmoGetDescSize(size_t* size) {
  return guarded(US_CALL(out(size)), [&]() -> Result<void> {
    US_TRY(runtime_with(Feature::kCacheOperations));
    US_TRY(check_pointer(size, "size"));
    *size = sizeof(RangeDescription);
    return {};
  });
}

aclError aclrtCmoSetDesc(void* cmoDesc, void* src, size_t size) {
  return guarded(US_CALL(cmoDesc, src, size), [&]() -> Result<void> {
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kCacheOperations));
    US_TRY(check_pointer(cmoDesc, "cmoDesc"));
    US_TRY(check_pointer(src, "src"));
    if (size == 0) return Error::format(ErrorCode::kInvalidParam, "size is 0");
    US_TRY_ASSIGN(const unsigned device, runtime->current_device());
    return runtime->cache_operations().describe(to_address(cmoDesc), {to_address(src), size},
                                                device);
  });
}

aclError aclrtCmoAsyncWithDesc(void* cmoDesc, aclrtCmoType cmoType, aclrtStream stream,
                               const void* reserve) {
  return guarded(US_CALL(cmoDesc, cmoType, stream, reserve), [&]() -> Result<void> {
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kCacheOperations));
    US_TRY(check_pointer(cmoDesc, "cmoDesc"));
    if (reserve != nullptr) {
      return Error::format(ErrorCode::kInvalidParam, "reserve is %p and must be NULL", reserve);
    }
    US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
    US_TRY(check_type(cmoType));
    return runtime->cache_operations().queue_described(call.stream, to_address(cmoDesc));
  });
}
