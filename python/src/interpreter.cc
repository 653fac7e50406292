// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <pthread.h>
#include <unistd.h>

// In the stable interface from 3.9 on; Python 3.8 has no means to ask.
extern "C" [[gnu::weak]] PyInterpreterState* PyInterpreterState_Get();

namespace understudy::python {
namespace {

bool is_main_interpreter() {
  return PyInterpreterState_Get == nullptr ||
         PyInterpreterState_GetID(PyInterpreterState_Get()) == 0;
}

}  // namespace

std::atomic<bool> Interpreter::ends_{false};
std::atomic<int> Interpreter::entering_{0};

bool Interpreter::watch_end() {
  if (!is_main_interpreter()) {
    PyErr_SetString(PyExc_ImportError, "acl works in the main interpreter of a process only");
    return false;
  }
  static const int registered = pthread_atfork(nullptr, nullptr, [] { entering_.store(0); });
  static_cast<void>(registered);  // it fails for lack of memory, and then forks are a risk
  static PyMethodDef method = {"note_end", note_end, METH_NOARGS, nullptr};
  const Reference function(PyCFunction_New(&method, nullptr));
  const Reference atexit(PyImport_ImportModule("atexit"));
  if (!function || !atexit) return false;
  return bool(Reference(PyObject_CallMethod(atexit.get(), "register", "O", function.get())));
}

// Counted before the flag is read, so that note_end() sees every thread that did not see the end.
bool Interpreter::begin_to_enter() {
  entering_.fetch_add(1);
  if (!ends_.load()) return true;
  has_entered();
  return false;
}

void Interpreter::has_entered() {
  if (entering_.fetch_sub(1) == 1 && ends_.load()) entering_.notify_all();
}

// Threads that want the GIL get it before it is gone; what they do then is up to CPython.
PyObject* Interpreter::note_end(PyObject* /*module*/, PyObject* /*arguments*/) {
  ends_.store(true);
  without_gil([] {
    for (int left = entering_.load(); left != 0; left = entering_.load()) entering_.wait(left);
    return 0;
  });
  Py_RETURN_NONE;
}

void Interpreter::call_and_drop(PyObject* function, PyObject* argument) {
  PyObject* const result = PyObject_CallFunctionObjArgs(function, argument, nullptr);
  if (result == nullptr) PyErr_WriteUnraisable(function);
  Py_XDECREF(result);
  Py_DECREF(function);
  Py_DECREF(argument);
}

void Interpreter::rest() {
  while (true) pause();
}

}  // namespace understudy::python
