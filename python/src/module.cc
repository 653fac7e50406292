// SPDX-License-Identifier: Apache-2.0
//
// The module acl with its parts acl.rt, acl.util and acl.media, which are modules as well.
#include <initializer_list>

#include "docstrings.h"
#include "interpreter.h"
#include "python_api.h"
#include "tables.h"

namespace understudy::python {
namespace {

PyModuleDef make_definition(const char* name, const char* doc) {
  // -1: its state is the process's, so there is one of it.
  return {PyModuleDef_HEAD_INIT, name, doc, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
}

Reference make_module(PyModuleDef& definition, std::initializer_list<PyMethodDef*> tables) {
  Reference module(PyModule_Create(&definition));
  for (PyMethodDef* const table : tables) {
    if (!module || PyModule_AddFunctions(module.get(), table) != 0) return {};
  }
  return module;
}

// Lets `import acl.rt` find it as well as `acl.rt`.
bool add_part(PyObject* module, const char* name, const char* full_name, const Reference& part) {
  return part && PyObject_SetAttrString(module, name, part.get()) == 0 &&
         PyDict_SetItemString(PyImport_GetModuleDict(), full_name, part.get()) == 0;
}

PyObject* make_all() {
  static PyModuleDef acl = make_definition("acl", doc::acl_module);
  static PyModuleDef rt = make_definition("acl.rt", doc::rt_module);
  static PyModuleDef util = make_definition("acl.util", doc::util_module);
  static PyModuleDef media = make_definition("acl.media", doc::media_module);
  Reference module = make_module(acl, {top_level_methods});
  const bool complete =
      module &&
      add_part(module.get(), "rt", "acl.rt",
               make_module(rt, {device_methods, context_methods, stream_methods, event_methods,
                                callback_methods, memory_methods, virtual_memory_methods,
                                sharing_methods, error_methods})) &&
      add_part(module.get(), "util", "acl.util",
               make_module(util, {conversion_methods, thread_methods})) &&
      add_part(module.get(), "media", "acl.media", make_module(media, {media_methods})) &&
      Interpreter::watch_end();
  return complete ? module.release() : nullptr;
}

}  // namespace
}  // namespace understudy::python

PyMODINIT_FUNC PyInit_acl() { return understudy::python::make_all(); }
