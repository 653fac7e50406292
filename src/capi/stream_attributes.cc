// SPDX-License-Identifier: Apache-2.0
//
// What is set for a stream and read back. Rules: STREAM-23 to STREAM-26, STREAM-33, STREAM-34.
#include <cstring>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Error unknown_attribute(aclrtStreamAttr attribute) {
  return Error::format(ErrorCode::kInvalidParam, "stmAttrType is %d, which is no attribute",
                       static_cast<int>(attribute));
}

// Some products keep attributes for created streams alone (STREAM-34).
Result<StreamCall> attribute_call(aclrtStream stream) {
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  if (stream == nullptr && !runtime->settings().product.has(Feature::kTaskControl)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "stream is NULL, and the default stream of product %s has no attributes",
                         runtime->settings().product.key.data());
  }
  return stream_call(*runtime, stream);
}

Result<void> set_failure_mode(const StreamCall& call, uint64_t mode) {
  if (mode > ACL_STOP_ON_FAILURE) {
    return Error::format(ErrorCode::kInvalidParam, "mode is %llu and must be 0 or 1",
                         static_cast<unsigned long long>(mode));
  }
  return call.runtime->streams().registry().set_failure_mode(
      call.stream, mode == ACL_STOP_ON_FAILURE ? FailureMode::kStop : FailureMode::kContinue);
}

Result<void> set(const StreamCall& call, aclrtStreamAttr attribute,
                 const aclrtStreamAttrValue& value) {
  Streams& streams = call.runtime->streams();
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return set_failure_mode(call, value.failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      streams.registry().change_settings(call.stream, [&](StreamSettings& settings) {
        settings.overflow_check = value.overflowSwitch;
      });
      return {};
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      streams.registry().change_settings(call.stream, [&](StreamSettings& settings) {
        settings.custom_tag = value.userCustomTag;
      });
      return {};
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      streams.registry().change_settings(call.stream, [&](StreamSettings& settings) {
        settings.cache_operations = value.cacheOpInfoSwitch;
      });
      return {};
    case ACL_STREAM_ATTR_PRIORITY:
      US_TRY(call.runtime->require(Feature::kStreamPriorities));
      streams.registry().set_priority(call.stream, value.streamPriority);
      return {};
  }
  return unknown_attribute(attribute);
}

Result<void> get(const StreamCall& call, aclrtStreamAttr attribute, aclrtStreamAttrValue& out) {
  const StreamSettings settings = call.runtime->streams().registry().settings_of(call.stream);
  aclrtStreamAttrValue value;
  memset(&value, 0, sizeof value);
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      value.failureMode =
          call.stream.stops_on_failure() ? ACL_STOP_ON_FAILURE : ACL_CONTINUE_ON_FAILURE;
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
      US_TRY(call.runtime->require(Feature::kStreamPriorities));
      value.streamPriority = call.stream.priority();
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
  return guarded(US_CALL(stream, stmAttrType, list(value, 1)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(const StreamCall call, attribute_call(stream));
    return set(call, stmAttrType, *value);
  });
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  return guarded(US_CALL(stream, stmAttrType, list(value, 1)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(const StreamCall call, attribute_call(stream));
    return get(call, stmAttrType, *value);
  });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  return guarded(US_CALL(stream, mode), [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, attribute_call(stream));
    return set_failure_mode(call, mode);
  });
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  return guarded(US_CALL(stream, flag), [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kTaskControl, stream));
    call.runtime->streams().registry().change_settings(
        call.stream, [&](StreamSettings& settings) { settings.overflow_check = flag; });
    return {};
  });
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  return guarded(US_CALL(stream, out(flag)), [&]() -> Result<void> {
    US_TRY(require_pointer(flag, "flag"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kTaskControl, stream));
    *flag = call.runtime->streams().registry().settings_of(call.stream).overflow_check;
    return {};
  });
}
