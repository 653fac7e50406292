// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: streams and events.
#include "acl/acl_rt.h"
#include "binding.h"
#include "callbacks.h"
#include "dictionaries.h"
#include "tables.h"

namespace understudy::python {
namespace {

PyObject* set_stream_attribute(const Arguments& arguments) {
  aclrtStream stream = nullptr;
  aclrtStreamAttr attribute{};
  aclrtStreamAttrValue value{};
  if (!arguments.are_exactly(3) || !read_address(arguments.at(0), ValueName(0), stream) ||
      !read_number(arguments.at(1), ValueName(1), attribute) ||
      !read_stream_attribute(arguments.at(2), ValueName(2), attribute, value)) {
    return nullptr;
  }
  return to_python(aclrtSetStreamAttribute(stream, attribute, &value));
}

PyObject* get_stream_attribute(const Arguments& arguments) {
  aclrtStream stream = nullptr;
  aclrtStreamAttr attribute{};
  if (!arguments.are_exactly(2) || !read_address(arguments.at(0), ValueName(0), stream) ||
      !read_number(arguments.at(1), ValueName(1), attribute)) {
    return nullptr;
  }
  aclrtStreamAttrValue value{};
  const aclError status = aclrtGetStreamAttribute(stream, attribute, &value);
  return tuple_of(
      status == ACL_SUCCESS ? stream_attribute_to_python(attribute, value) : PyDict_New(), status);
}

}  // namespace

PyMethodDef stream_methods[] = {
    US_METHOD(rt, create_stream, call<aclrtCreateStream>),
    US_METHOD(rt, create_stream_with_config, call<aclrtCreateStreamWithConfig>),
    US_METHOD(rt, destroy_stream, call_and_forget<aclrtDestroyStream>),
    US_METHOD(rt, destroy_stream_force, call_and_forget<aclrtDestroyStreamForce>),
    US_METHOD(rt, synchronize_stream, call<aclrtSynchronizeStream>),
    US_METHOD(rt, synchronize_stream_with_timeout, call<aclrtSynchronizeStreamWithTimeout>),
    US_METHOD(rt, stream_query, ask<aclrtStreamQuery>),
    US_METHOD(rt, stream_abort, call_and_forget<aclrtStreamAbort>),
    US_METHOD(rt, stream_get_id, ask<aclrtStreamGetId>),
    US_METHOD(rt, get_stream_available_num, ask<aclrtGetStreamAvailableNum>),
    US_METHOD(rt, set_stream_attribute, by_hand<set_stream_attribute>),
    US_METHOD(rt, get_stream_attribute, by_hand<get_stream_attribute>),
    US_METHOD(rt, set_stream_failure_mode, ask<aclrtSetStreamFailureMode>),
    US_METHOD(rt, set_stream_overflow_switch, ask<aclrtSetStreamOverflowSwitch>),
    US_METHOD(rt, get_stream_overflow_switch, ask<aclrtGetStreamOverflowSwitch>),
    US_METHOD(rt, get_stream_res_limit, ask<aclrtGetStreamResLimit>),
    US_METHOD(rt, set_stream_res_limit, ask<aclrtSetStreamResLimit>),
    US_METHOD(rt, reset_stream_res_limit, ask<aclrtResetStreamResLimit>),
    US_METHOD(rt, use_stream_res_in_current_thread, ask<aclrtUseStreamResInCurrentThread>),
    US_METHOD(rt, unuse_stream_res_in_current_thread, ask<aclrtUnuseStreamResInCurrentThread>),
    US_METHOD(rt, get_res_in_current_thread, ask<aclrtGetResInCurrentThread>),
    US_END_OF_METHODS,
};

PyMethodDef event_methods[] = {
    US_METHOD(rt, create_event, call<aclrtCreateEvent>),
    US_METHOD(rt, create_event_with_flag, call<aclrtCreateEventWithFlag>),
    US_METHOD(rt, create_event_ex_with_flag, call<aclrtCreateEventExWithFlag>),
    US_METHOD(rt, destroy_event, call<aclrtDestroyEvent>),
    US_METHOD(rt, record_event, call<aclrtRecordEvent>),
    US_METHOD(rt, reset_event, call<aclrtResetEvent>),
    US_METHOD(rt, query_event, ask<aclrtQueryEvent>),
    US_METHOD(rt, query_event_status, ask<aclrtQueryEventStatus>),
    US_METHOD(rt, query_event_wait_status, ask<aclrtQueryEventWaitStatus>),
    US_METHOD(rt, synchronize_event, call<aclrtSynchronizeEvent>),
    US_METHOD(rt, synchronize_event_with_timeout, call<aclrtSynchronizeEventWithTimeout>),
    US_METHOD(rt, event_elapsed_time, ask<aclrtEventElapsedTime>),
    US_METHOD(rt, stream_wait_event, call<aclrtStreamWaitEvent>),
    US_METHOD(rt, event_get_timestamp, ask<aclrtEventGetTimestamp>),
    US_METHOD(rt, get_event_id, ask<aclrtGetEventId>),
    US_METHOD(rt, get_event_avail_num, ask<aclrtGetEventAvailNum>),
    US_METHOD(rt, set_op_wait_timeout, ask<aclrtSetOpWaitTimeout>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
