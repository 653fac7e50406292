// SPDX-License-Identifier: Apache-2.0
//
// The functions of the modules, one table per chapter.
#pragma once

#include <new>

#include "arguments.h"
#include "python_api.h"

namespace understudy::python {

// acl
extern PyMethodDef top_level_methods[];
// acl.rt
extern PyMethodDef device_methods[];
extern PyMethodDef context_methods[];
extern PyMethodDef stream_methods[];
extern PyMethodDef event_methods[];
extern PyMethodDef notify_methods[];
extern PyMethodDef callback_methods[];
extern PyMethodDef memory_methods[];
extern PyMethodDef pool_methods[];
extern PyMethodDef virtual_memory_methods[];
extern PyMethodDef sharing_methods[];
extern PyMethodDef error_methods[];
// acl.util
extern PyMethodDef conversion_methods[];
extern PyMethodDef thread_methods[];
// acl.media
extern PyMethodDef media_methods[];

// Makes an entry of a table out of a function that was written by hand.
template <PyObject* (*kFunction)(const Arguments& arguments)>
PyObject* by_hand(PyObject* /*module*/, PyObject* tuple) {
  try {
    return kFunction(Arguments(tuple));
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

}  // namespace understudy::python
