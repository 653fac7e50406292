// SPDX-License-Identifier: Apache-2.0
//
// Threads of the runtime, and threads inside it, call functions of Python: callbacks. None may
// begin once the interpreter ends. CPython takes down threads that are in Python then, or come back
// to it, by unwinding them; the frames of the library below a callback do not let that pass, so
// such a thread rests where it is until the process is gone.
#pragma once

#include <cxxabi.h>

#include <atomic>

#include "python_api.h"

namespace understudy::python {

class Interpreter {
 public:
  // Has the end of the interpreter noticed. False, with an exception set, if that cannot be.
  static bool watch_end();

  // Runs `body` with the GIL, on a thread that does not hold it; not once the interpreter ends.
  template <typename Body>
  static void enter(Body&& body) {
    if (ends_.load()) return;
    const PyGILState_STATE state = or_rest([] { return PyGILState_Ensure(); });
    body();
    PyGILState_Release(state);
  }

  // Calls a function of Python's with one argument; what is wrong with it is told as unraisable.
  // REQUIRES: the GIL, in `enter`.
  static void call(PyObject* function, PyObject* argument);

 private:
  // Before any destructor runs that would need the GIL.
  template <typename Body>
  static auto or_rest(Body&& body) {
    try {
      return body();
    } catch (const abi::__forced_unwind&) {
      rest();
    }
  }
  [[noreturn]] static void rest();
  static PyObject* note_end(PyObject* module, PyObject* arguments);

  static std::atomic<bool> ends_;
};

}  // namespace understudy::python
