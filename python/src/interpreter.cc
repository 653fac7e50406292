// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <unistd.h>

namespace understudy::python {

std::atomic<bool> Interpreter::ends_{false};

bool Interpreter::watch_end() {
  static PyMethodDef method = {"note_end", note_end, METH_NOARGS, nullptr};
  const Reference function(PyCFunction_New(&method, nullptr));
  const Reference atexit(PyImport_ImportModule("atexit"));
  if (!function || !atexit) return false;
  return bool(Reference(PyObject_CallMethod(atexit.get(), "register", "O", function.get())));
}

void Interpreter::call(PyObject* function, PyObject* argument) {
  const Reference result(
      or_rest([&] { return PyObject_CallFunctionObjArgs(function, argument, nullptr); }));
  if (!result) PyErr_WriteUnraisable(function);
}

void Interpreter::rest() {
  while (true) pause();
}

PyObject* Interpreter::note_end(PyObject* /*module*/, PyObject* /*arguments*/) {
  ends_.store(true);
  Py_RETURN_NONE;
}

}  // namespace understudy::python
