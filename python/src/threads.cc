// SPDX-License-Identifier: Apache-2.0
//
// acl.util: threads of the program's own that are no threads of Python's, for callbacks mostly.
// Their ids are those of the operating system's library, as threading.get_ident gives them.
#include <pthread.h>
#include <unistd.h>

#include <memory>
#include <unordered_set>

#include "acl/acl_base.h"
#include "binding.h"
#include "interpreter.h"
#include "tables.h"

namespace understudy::python {
namespace {

// With a reference to each.
struct ThreadBody {
  PyObject* function;
  PyObject* list;
};

// Threads that were started and not stopped. Under the GIL; never destroyed.
struct StartedThreads {
  pid_t process = 0;
  std::unordered_set<uint64_t> ids;
};

std::unordered_set<uint64_t>& started() {
  static auto* const all = new StartedThreads;
  // A fork child has none of its parent's.
  if (all->process != getpid()) *all = {getpid(), {}};
  return all->ids;
}

void* run_thread(void* argument) {
  const ThreadBody body = *static_cast<ThreadBody*>(argument);
  delete static_cast<ThreadBody*>(argument);
  Interpreter::enter([&] { Interpreter::call_and_drop(body.function, body.list); });
  return nullptr;
}

PyObject* start_thread(const Arguments& arguments) {
  if (!arguments.are_exactly(2) || !require_callable(arguments.at(0)) ||
      !require_list(arguments.at(1), ValueName(1))) {
    return nullptr;
  }
  Reference function = Reference::to(arguments.at(0));
  Reference list = Reference::to(arguments.at(1));
  auto body = std::make_unique<ThreadBody>(ThreadBody{function.get(), list.get()});
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, run_thread, body.get()) != 0) {
    return tuple_of(0, ACL_ERROR_FAILURE);
  }
  // All three are the thread's now.
  function.release();
  list.release();
  body.release();  // NOLINT(bugprone-unused-return-value)
  started().insert(thread);
  return tuple_of(uint64_t{thread}, ACL_SUCCESS);
}

PyObject* stop_thread(const Arguments& arguments) {
  uint64_t thread = 0;
  if (!arguments.are_exactly(1) || !read_number(arguments.at(0), ValueName(0), thread)) {
    return nullptr;
  }
  // The caller that takes it out of the list joins it, so it is joined once. A thread cannot join
  // itself.
  if (thread == pthread_self() || started().erase(thread) == 0) {
    return to_python(ACL_ERROR_INVALID_PARAM);
  }
  const int failure = without_gil([&] { return pthread_join(thread, nullptr); });
  return to_python(failure == 0 ? ACL_SUCCESS : ACL_ERROR_FAILURE);
}

}  // namespace

PyMethodDef thread_methods[] = {
    US_METHOD(util, start_thread, by_hand<start_thread>),
    US_METHOD(util, stop_thread, by_hand<stop_thread>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
