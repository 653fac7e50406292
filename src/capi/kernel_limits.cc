// SPDX-License-Identifier: Apache-2.0
//
// Sizes that kernels get. Rules: LIMIT.
#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

static_assert(static_cast<int>(KernelLimit::kThreadStack) == ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE);
static_assert(static_cast<int>(KernelLimit::kDivergenceStack) ==
              ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE);
static_assert(static_cast<int>(KernelLimit::kCoreStack) == ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE);
static_assert(static_cast<int>(KernelLimit::kCoreOutput) ==
              ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE);
static_assert(static_cast<int>(KernelLimit::kThreadOutput) ==
              ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE);

Result<KernelLimit> limit_argument(aclrtDeviceLimit limit) {
  const int number = limit;
  if (number >= 0 && number < static_cast<int>(kKernelLimits)) {
    return static_cast<KernelLimit>(number);
  }
  return Error::format(ErrorCode::kInvalidParam, "limit is %d, which is no limit", number);
}

}  // namespace

aclError aclrtDeviceSetLimit(aclrtDeviceLimit limit, size_t value) {
  return guarded(US_CALL(limit, value), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kKernelLimits));
    US_TRY_ASSIGN(const KernelLimit known, limit_argument(limit));
    return runtime->kernel_limits().set(known, value);
  });
}

aclError aclrtDeviceGetLimit(aclrtDeviceLimit limit, size_t* value) {
  return guarded(US_CALL(limit, out(value)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kKernelLimits));
    US_TRY_ASSIGN(const KernelLimit known, limit_argument(limit));
    US_TRY_ASSIGN(*value, runtime->kernel_limits().get(known));
    return {};
  });
}
