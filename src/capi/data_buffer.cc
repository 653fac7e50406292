// SPDX-License-Identifier: Apache-2.0
//
// Data buffers, and the sizes of data types.
#include "acl/acl_base.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// What a handle names; an empty one, with a sentence for aclGetRecentErrMsg, if it names nothing.
template <typename... T>
DataBuffer buffer_or_nothing(const Called<T...>& called, const aclDataBuffer* handle) {
  DataBuffer found;
  guarded(called, [&]() -> Result<void> {
    US_TRY(require_pointer(handle, "dataBuffer"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(found, runtime->data_buffers().find(handle_number(handle)));
    return {};
  });
  return found;
}

}  // namespace

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  void* created = nullptr;
  guarded(US_CALL(data, size), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    created = handle_pointer(runtime->data_buffers().add({data, size}));
    return {};
  });
  return static_cast<aclDataBuffer*>(created);
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  return guarded(US_CALL(dataBuffer), [&]() -> Result<void> {
    US_TRY(require_pointer(dataBuffer, "dataBuffer"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    return runtime->data_buffers().remove(handle_number(dataBuffer));
  });
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  return guarded(US_CALL(dataBuffer, data, size), [&]() -> Result<void> {
    US_TRY(require_pointer(dataBuffer, "dataBuffer"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    return runtime->data_buffers().update(handle_number(dataBuffer), {data, size});
  });
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  return buffer_or_nothing(US_CALL(dataBuffer), dataBuffer).data;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  return static_cast<uint32_t>(buffer_or_nothing(US_CALL(dataBuffer), dataBuffer).size);
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  return buffer_or_nothing(US_CALL(dataBuffer), dataBuffer).size;
}

size_t aclDataTypeSize(aclDataType dataType) {
  switch (dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
      return 1;
    case ACL_FLOAT16:
    case ACL_INT16:
    case ACL_UINT16:
    case ACL_BF16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
      return 16;
    // Texts have no size of their own, and the others are smaller than a byte.
    case ACL_DT_UNDEFINED:
    case ACL_STRING:
    case ACL_INT4:
    case ACL_UINT1:
    case ACL_FLOAT6_E3M2:
    case ACL_FLOAT6_E2M3:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2:
      return 0;
  }
  return 0;
}
