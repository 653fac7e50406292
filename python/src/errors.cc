// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: errors, time limits, and the function that is told of tasks that failed.
#include <algorithm>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "binding.h"
#include "callbacks.h"
#include "interpreter.h"
#include "tables.h"

namespace understudy::python {
namespace {

constexpr uint32_t kNoInformation = 0xFFFFFFFF;
// Failures that are being told: more than there are threads of the runtime.
constexpr size_t kMostAtOnce = 4096;

// Under the GIL.
struct FailureObserver {
  PyObject* function = nullptr;      // with a reference to it
  std::vector<const void*> current;  // what is being told at the moment
};

// Never destroyed: tasks may fail while the interpreter ends.
FailureObserver& observer() {
  static auto* const one = new FailureObserver;
  one->current.reserve(kMostAtOnce);  // so that telling cannot fail
  return *one;
}

// In a thread of the runtime.
void tell(aclrtExceptionInfo* info) {
  Interpreter::enter([&] {
    PyObject* const function = observer().function;
    PyObject* const address = function == nullptr ? nullptr : to_python(info);
    if (address == nullptr) return PyErr_Clear();
    auto& current = observer().current;
    if (current.size() == kMostAtOnce) return Py_DECREF(address);
    current.push_back(info);
    Py_INCREF(function);
    Interpreter::call_and_drop(function, address);
    current.erase(std::find(current.begin(), current.end(), info));
  });
}

PyObject* set_exception_info_callback(const Arguments& arguments) {
  if (!arguments.are_at_most(1)) return nullptr;
  PyObject* function = arguments.count() == 1 ? arguments.at(0) : Py_None;
  if (function != Py_None && !require_callable(function)) return nullptr;
  if (function == Py_None) function = nullptr;
  const aclError status = aclrtSetExceptionInfoCallback(function == nullptr ? nullptr : tell);
  if (status == ACL_SUCCESS) {
    Py_XINCREF(function);
    // The one before goes when this one is in place, since that may run code of the program's.
    Py_XDECREF(std::exchange(observer().function, function));
  }
  return to_python(status);
}

// A figure of a failure. The information is there while its callback runs, and not after.
template <uint32_t (*kFunction)(const aclrtExceptionInfo*)>
PyObject* figure_of_failure(const Arguments& arguments) {
  void* info = nullptr;
  if (!arguments.are_exactly(1) || !read_address(arguments.at(0), ValueName(0), info)) {
    return nullptr;
  }
  const auto& current = observer().current;
  if (std::find(current.begin(), current.end(), info) == current.end()) {
    return to_python(kNoInformation);
  }
  return to_python(kFunction(static_cast<const aclrtExceptionInfo*>(info)));
}

}  // namespace

PyMethodDef error_methods[] = {
    US_METHOD(rt, peek_at_last_error, ask<aclrtPeekAtLastError>),
    US_METHOD(rt, get_last_error, ask<aclrtGetLastError>),
    US_METHOD(rt, set_exception_info_callback, by_hand<set_exception_info_callback>),
    US_METHOD(rt, get_task_id_from_exception_info,
              by_hand<figure_of_failure<aclrtGetTaskIdFromExceptionInfo>>),
    US_METHOD(rt, get_stream_id_from_exception_info,
              by_hand<figure_of_failure<aclrtGetStreamIdFromExceptionInfo>>),
    US_METHOD(rt, get_thread_id_from_exception_info,
              by_hand<figure_of_failure<aclrtGetThreadIdFromExceptionInfo>>),
    US_METHOD(rt, get_device_id_from_exception_info,
              by_hand<figure_of_failure<aclrtGetDeviceIdFromExceptionInfo>>),
    US_METHOD(rt, get_error_code_from_exception_info,
              by_hand<figure_of_failure<aclrtGetErrorCodeFromExceptionInfo>>),
    US_METHOD(rt, device_task_abort, call_and_forget<aclrtDeviceTaskAbort>),
    US_METHOD(rt, set_op_execute_time_out, ask<aclrtSetOpExecuteTimeOut>),
    US_METHOD(rt, set_op_execute_timeout_v2, ask<aclrtSetOpExecuteTimeOutV2>),
    US_METHOD(rt, get_op_execute_timeout, ask<aclrtGetOpExecuteTimeout>),
    US_METHOD(rt, get_op_timeout_interval, ask<aclrtGetOpTimeOutInterval>),
    US_METHOD(rt, get_thread_last_task_id, ask<aclrtGetThreadLastTaskId>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
