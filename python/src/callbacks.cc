// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: callbacks. A function and its list are held from launch_callback until they have run, or
// until the runtime says that they never will. It knows them by number, so one that comes too late
// finds nothing instead of a dead object.
#include "callbacks.h"

#include <array>
#include <cstdint>
#include <unordered_map>

#include "acl/acl_rt.h"
#include "acl/acl_understudy.h"
#include "binding.h"
#include "interpreter.h"
#include "tables.h"

namespace understudy::python {
namespace {

// With a reference to each.
struct WaitingCallback {
  PyObject* function;
  PyObject* list;
};

// Under the GIL.
struct WaitingCallbacks {
  std::unordered_map<uint64_t, WaitingCallback> by_number;
  uint64_t latest = 0;

  // Null pointers if there is none of that number.
  WaitingCallback take(uint64_t number) {
    const auto found = by_number.find(number);
    if (found == by_number.end()) return {};
    const WaitingCallback callback = found->second;
    by_number.erase(found);
    return callback;
  }
};

// Never destroyed: streams may outlive the interpreter.
WaitingCallbacks& waiting() {
  static auto* const all = new WaitingCallbacks;
  return *all;
}

void* as_user_data(uint64_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
}

// In the thread that processes reports.
void run_waiting(void* user_data) {
  Interpreter::enter([&] {
    const WaitingCallback callback = waiting().take(reinterpret_cast<uint64_t>(user_data));
    if (callback.function != nullptr) Interpreter::call_and_drop(callback.function, callback.list);
  });
}

// It will not run. May run code of the program's, as dropping a reference does.
void forget(uint64_t number) {
  const WaitingCallback callback = waiting().take(number);
  Py_XDECREF(callback.function);
  Py_XDECREF(callback.list);
}

PyObject* launch_callback(const Arguments& arguments) {
  aclrtCallbackBlockType block_type{};
  aclrtStream stream = nullptr;
  if (!arguments.are_exactly(4) || !require_callable(arguments.at(0)) ||
      !require_list(arguments.at(1), ValueName(1)) ||
      !read_number(arguments.at(2), ValueName(2), block_type) ||
      !read_address(arguments.at(3), ValueName(3), stream)) {
    return nullptr;
  }
  if (Interpreter::ends()) return to_python(ACL_ERROR_UNINITIALIZE);  // it would never be called
  forget_dropped_callbacks();
  // In place before it is launched, since it may run before that call returns.
  const uint64_t number = ++waiting().latest;
  waiting().by_number.emplace(number, WaitingCallback{arguments.at(0), arguments.at(1)});
  Py_INCREF(arguments.at(0));
  Py_INCREF(arguments.at(1));
  const aclError status = without_gil(
      [&] { return aclrtLaunchCallback(run_waiting, as_user_data(number), block_type, stream); });
  if (status != ACL_SUCCESS) forget(number);
  return to_python(status);
}

}  // namespace

void forget_dropped_callbacks() {
  // The first launch asks as well: the runtime remembers from then on.
  if (waiting().by_number.empty() && waiting().latest != 0) return;
  std::array<void*, 64> dropped{};
  size_t count = dropped.size();
  while (count == dropped.size() && aclUnderstudyTakeDroppedCallbacks(
                                        run_waiting, dropped.data(), dropped.size(), &count) == 0) {
    for (size_t i = 0; i < count; ++i) forget(reinterpret_cast<uint64_t>(dropped[i]));
  }
}

PyMethodDef callback_methods[] = {
    US_METHOD(rt, subscribe_report, call<aclrtSubscribeReport>),
    US_METHOD(rt, launch_callback, by_hand<launch_callback>),
    US_METHOD(rt, process_report, call<aclrtProcessReport>),
    US_METHOD(rt, unsubscribe_report, call_and_forget<aclrtUnSubscribeReport>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
