// SPDX-License-Identifier: Apache-2.0
//
// Threads of the runtime, and threads inside it, call functions of Python. None may begin once the
// interpreter ends. CPython takes down threads that are in Python by then by unwinding them as soon
// as they want the GIL again; frames of Python's own that it passes need not be ready for that, so
// such a thread rests where it is until the process is gone.
#pragma once

#include <atomic>

#include "python_api.h"

namespace understudy::python {

class Interpreter {
 public:
  // Has the end of the interpreter noticed. False, with an exception set, if that cannot be, or if
  // this is not the main interpreter, which alone can be called from other threads.
  static bool watch_end();
  // No function of Python is called any more.
  static bool ends() { return ends_.load(); }

  // Runs `body` with the GIL, on any thread; not once the interpreter ends. Whatever the body calls
  // may be the last thing the thread does: it owns references as plain pointers, because a
  // destructor does not let unwinding pass either. It throws nothing.
  template <typename Body>
  static void enter(Body&& body) {
    if (!begin_to_enter()) return;
    try {
      const PyGILState_STATE state = PyGILState_Ensure();
      has_entered();
      body();
      PyGILState_Release(state);
    } catch (...) {  // unwinding is caught like an exception, and there is no other
      rest();
    }
  }

  // Calls a function of Python's with one argument, and drops the reference to each. What is wrong
  // with it is told as unraisable. REQUIRES: the GIL.
  static void call_and_drop(PyObject* function, PyObject* argument);

 private:
  static bool begin_to_enter();
  static void has_entered();
  [[noreturn]] static void rest();
  static PyObject* note_end(PyObject* module, PyObject* arguments);

  static std::atomic<bool> ends_;
  static std::atomic<int> entering_;  // threads that want the GIL
};

}  // namespace understudy::python
