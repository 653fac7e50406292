// SPDX-License-Identifier: Apache-2.0
//
// Streams that write a value to memory, or wait for one. Rules: SMEM.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<void> submit(TaskKind kind, void* address, uint64_t value, uint32_t flag, uint32_t most,
                    aclrtStream stream) {
  US_TRY(require_pointer(address, "devAddr"));
  const GatePass pass;
  US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kStreamValues, stream));
  if (flag > most) {
    return Error::format(ErrorCode::kInvalidParam, "flag is %u and must be at most %u", flag, most);
  }
  return call.runtime->copies().queue_value(
      call.stream, kind, {to_address(address), value, static_cast<ValueCondition>(flag), 0});
}

static_assert(static_cast<int>(ValueCondition::kAtLeast) == ACL_STREAM_WAIT_VALUE_GEQ);
static_assert(static_cast<int>(ValueCondition::kEqual) == ACL_STREAM_WAIT_VALUE_EQ);
static_assert(static_cast<int>(ValueCondition::kAnyBitSet) == ACL_STREAM_WAIT_VALUE_AND);
static_assert(static_cast<int>(ValueCondition::kAnyBitOff) == ACL_STREAM_WAIT_VALUE_NOR);

}  // namespace

aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  return guarded(US_CALL(devAddr, value, flag, stream),
                 [&] { return submit(TaskKind::kWriteValue, devAddr, value, flag, 0, stream); });
}

aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  return guarded(US_CALL(devAddr, value, flag, stream), [&] {
    return submit(TaskKind::kWaitForValue, devAddr, value, flag, ACL_STREAM_WAIT_VALUE_NOR, stream);
  });
}
