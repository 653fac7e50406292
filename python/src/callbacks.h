// SPDX-License-Identifier: Apache-2.0
//
// Functions of Python that wait on streams for their turn.
#pragma once

#include "binding.h"
#include "python_api.h"

namespace understudy::python {

// Drops functions that will never run. REQUIRES: the GIL.
void forget_dropped_callbacks();

// For a function after which some of those that wait may never run.
template <auto kFunction>
PyObject* call_and_forget(PyObject* module, PyObject* tuple) {
  PyObject* const result = Binding<kFunction, Gil::kReleased>::run(module, tuple);
  if (result != nullptr) forget_dropped_callbacks();
  return result;
}

}  // namespace understudy::python
