// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: callbacks. A function and its list are held from launch_callback until they have run, or
// until they never will: their stream is aborted or destroyed by force, or acl.finalize ends all.
// (A stream that is destroyed otherwise has sent them all, and they still run.) The C side knows
// them by number, so one that comes too late finds nothing instead of a dead object.
#include "callbacks.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "binding.h"
#include "interpreter.h"
#include "tables.h"

namespace understudy::python {
namespace {

struct WaitingCallback {
  Reference function;
  Reference list;
  aclrtStream stream = nullptr;
};

// Under the GIL.
struct WaitingCallbacks {
  std::unordered_map<uint64_t, WaitingCallback> by_number;
  uint64_t latest = 0;
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
    const auto number = reinterpret_cast<uint64_t>(user_data);
    const auto node = waiting().by_number.extract(number);
    if (node.empty()) return;
    Interpreter::call(node.mapped().function.get(), node.mapped().list.get());
  });
}

// The stream itself, where 0 stands for the default stream of the context.
aclrtStream named_stream(aclrtStream stream) {
  if (stream == nullptr) aclrtCtxGetCurrentDefaultStream(&stream);
  return stream;
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
  const uint64_t number = ++waiting().latest;
  waiting().by_number.emplace(
      number, WaitingCallback{Reference::to(arguments.at(0)), Reference::to(arguments.at(1)),
                              named_stream(stream)});
  const aclError status = without_gil(
      [&] { return aclrtLaunchCallback(run_waiting, as_user_data(number), block_type, stream); });
  if (status != ACL_SUCCESS) waiting().by_number.erase(number);
  return to_python(status);
}

template <typename Ends>
void forget_callbacks(Ends ends) {
  // Dropping a reference may run code of the program's: not while the table is being looked at.
  std::vector<WaitingCallback> ended;
  auto& all = waiting().by_number;
  for (auto entry = all.begin(); entry != all.end();) {
    if (ends(entry->second)) {
      ended.push_back(std::move(entry->second));
      entry = all.erase(entry);
    } else {
      ++entry;
    }
  }
}

}  // namespace

void forget_callbacks_of(aclrtStream stream) {
  if (waiting().by_number.empty()) return;
  forget_callbacks([&](const WaitingCallback& callback) { return callback.stream == stream; });
}

void forget_all_callbacks() {
  forget_callbacks([](const WaitingCallback&) { return true; });
}

PyMethodDef callback_methods[] = {
    US_METHOD(rt, subscribe_report, call<aclrtSubscribeReport>),
    US_METHOD(rt, launch_callback, by_hand<launch_callback>),
    US_METHOD(rt, process_report, call<aclrtProcessReport>),
    US_METHOD(rt, unsubscribe_report, call<aclrtUnSubscribeReport>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
