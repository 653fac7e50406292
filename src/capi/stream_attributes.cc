// SPDX-License-Identifier: Apache-2.0
//
// What is set for a stream and read back. Rules: STREAM-23 to STREAM-26.
#include <cstring>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Error unknown_attribute(aclrtStreamAttr attribute) {
  return Error::format(ErrorCode::kRefused, "stmAttrType is %d, which is no attribute",
                       static_cast<int>(attribute));
}

Result<void> set_failure_mode(const StreamCall& call, uint64_t mode) {
  if (mode > ACL_STOP_ON_FAILURE) {
    return Error::format(ErrorCode::kRefused, "mode is %llu and must be 0 or 1",
                         static_cast<unsigned long long>(mode));
  }
  return call.runtime->streams().set_failure_mode(
      call.stream, mode == ACL_STOP_ON_FAILURE ? FailureMode::kStop : FailureMode::kContinue);
}

Result<void> set(const StreamCall& call, aclrtStreamAttr attribute,
                 const aclrtStreamAttrValue& value) {
  Streams& streams = call.runtime->streams();
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return set_failure_mode(call, value.failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      streams.change_settings(call.stream, [&](StreamSettings& settings) {
        settings.overflow_check = value.overflowSwitch;
      });
      return {};
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      streams.change_settings(call.stream, [&](StreamSettings& settings) {
        settings.custom_tag = value.userCustomTag;
      });
      return {};
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      streams.change_settings(call.stream, [&](StreamSettings& settings) {
        settings.cache_operations = value.cacheOpInfoSwitch;
      });
      return {};
    case ACL_STREAM_ATTR_PRIORITY:
      streams.set_priority(call.stream, value.priority);
      return {};
  }
  return unknown_attribute(attribute);
}

Result<void> get(const StreamCall& call, aclrtStreamAttr attribute, aclrtStreamAttrValue& out) {
  const StreamSettings settings = call.runtime->streams().settings_of(call.stream);
  const Stream& stream = *call.stream.stream;
  aclrtStreamAttrValue value;
  memset(&value, 0, sizeof value);
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      value.failureMode =
          stream.stops_on_failure.load() ? ACL_STOP_ON_FAILURE : ACL_CONTINUE_ON_FAILURE;
      break;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      value.overflowSwitch = settings.overflow_check;
      break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      value.userCustomTag = settings.custom_tag;
      break;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      value.cacheOpInfoSwitch = settings.cache_operations;
      break;
    case ACL_STREAM_ATTR_PRIORITY:
      value.priority = stream.priority.load();
      break;
    default:
      return unknown_attribute(attribute);
  }
  out = value;
  return {};
}

}  // namespace

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    return set(call, stmAttrType, *value);
  });
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    return get(call, stmAttrType, *value);
  });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    return set_failure_mode(call, mode);
  });
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    call.runtime->streams().change_settings(
        call.stream, [&](StreamSettings& settings) { settings.overflow_check = flag; });
    return {};
  });
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(flag, "flag"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    *flag = call.runtime->streams().settings_of(call.stream).overflow_check;
    return {};
  });
}
