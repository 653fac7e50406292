// SPDX-License-Identifier: Apache-2.0
//
// Reductions on streams. Rules: RED.
#include <cinttypes>
#include <optional>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "device/reduce_profile.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

std::optional<ElementType> element_type(aclDataType type) {
  switch (type) {
    case ACL_FLOAT:
      return ElementType::kFloat32;
    case ACL_FLOAT16:
      return ElementType::kFloat16;
    case ACL_BF16:
      return ElementType::kBfloat16;
    case ACL_INT8:
      return ElementType::kInt8;
    case ACL_INT16:
      return ElementType::kInt16;
    case ACL_INT32:
      return ElementType::kInt32;
    case ACL_UINT32:
      return ElementType::kUint32;
    default:
      return std::nullopt;
  }
}

bool is_type(aclDataType type) {
  switch (type) {
    case ACL_DT_UNDEFINED:
    case ACL_STRING:
    case ACL_INT4:
    case ACL_UINT1:
    case ACL_FLOAT6_E3M2:
    case ACL_FLOAT6_E2M3:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2:
      return true;  // without a size in whole bytes
    default:
      return aclDataTypeSize(type) != 0;
  }
}

Result<void> check_arguments(uint64_t count, aclrtReduceKind kind, aclDataType type,
                             const void* reserve) {
  if (kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM || kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL) {
    return Error::format(ErrorCode::kInvalidParam, "kind is %d and must be 10 to 13",
                         static_cast<int>(kind));
  }
  if (!is_type(type)) {
    return Error::format(ErrorCode::kInvalidParam, "type is %d, which is no data type",
                         static_cast<int>(type));
  }
  const size_t size = aclDataTypeSize(type);
  if (count == 0 || (size != 0 && count % size != 0)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "count is %" PRIu64 " and must be bytes of whole elements, at least one",
                         count);
  }
  if (reserve != nullptr) return Error::format(ErrorCode::kInvalidParam, "reserve must be NULL");
  return {};
}

Result<ReduceOperation> operation_of(const Runtime& runtime, const ReduceProfile& profile,
                                     aclrtReduceKind kind, aclDataType type) {
  const std::optional<ElementType> element = element_type(type);
  if (!element || !profile.has_type(static_cast<unsigned>(type)) ||
      !profile.has_kind(static_cast<unsigned>(kind))) {
    return Error::format(
        ErrorCode::kNotInProduct, "product %s does not reduce elements of type %d by kind %d",
        runtime.settings().product.key.data(), static_cast<int>(type), static_cast<int>(kind));
  }
  switch (kind) {
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX:
      return ReduceOperation{.kind = ReduceKind::kMax, .type = *element};
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN:
      return ReduceOperation{.kind = ReduceKind::kMin, .type = *element};
    default:
      return ReduceOperation{.kind = ReduceKind::kSum, .type = *element};
  }
}

}  // namespace

aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count, aclrtReduceKind kind,
                          aclDataType type, aclrtStream stream, void* reserve) {
  return guarded(
      US_CALL(dst, src, count, kind, type, stream, reserve), count, [&]() -> Result<void> {
        US_TRY(require_pointer(dst, "dst"));
        US_TRY(require_pointer(src, "src"));
        const GatePass pass;
        US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
        const ReduceProfile profile = reduce_profile(runtime->settings().product.key);
        if (profile.types == 0) {
          return Error::format(ErrorCode::kNotInProduct, "product %s has no reductions",
                               runtime->settings().product.key.data());
        }
        US_TRY(check_arguments(count, kind, type, reserve));
        US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
        Reduction reduction{.to = to_address(dst), .from = to_address(src), .count = count};
        US_TRY(runtime->copies().check_reduction(call.stream, reduction));
        US_TRY_ASSIGN(reduction.operation, operation_of(*runtime, profile, kind, type));
        return runtime->copies().queue_reduction(call.stream, reduction);
      });
}
