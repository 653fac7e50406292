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

PyModuleDef make_definition(const char* name, const char* doc, PyModuleDef_Slot* slots = nullptr) {
  // What state there is, is the process's.
  return {PyModuleDef_HEAD_INIT, name, doc, 0, nullptr, slots, nullptr, nullptr, nullptr};
}

bool add_functions(PyObject* module, std::initializer_list<PyMethodDef*> tables) {
  for (PyMethodDef* const table : tables) {
    if (PyModule_AddFunctions(module, table) != 0) return false;
  }
  return true;
}

// Lets `import acl.rt` find it as well as `acl.rt`.
bool add_part(PyObject* acl, const char* name, PyModuleDef& definition,
              std::initializer_list<PyMethodDef*> tables) {
  const Reference part(PyModule_Create(&definition));
  return part && add_functions(part.get(), tables) &&
         PyObject_SetAttrString(acl, name, part.get()) == 0 &&
         PyDict_SetItemString(PyImport_GetModuleDict(), definition.m_name, part.get()) == 0;
}

int fill(PyObject* acl) {
  static PyModuleDef rt = make_definition("acl.rt", doc::rt_module);
  static PyModuleDef util = make_definition("acl.util", doc::util_module);
  static PyModuleDef media = make_definition("acl.media", doc::media_module);
  const bool complete = Interpreter::watch_end() && add_functions(acl, {top_level_methods}) &&
                        add_part(acl, "rt", rt,
                                 {device_methods, context_methods, stream_methods, event_methods,
                                  notify_methods, callback_methods, memory_methods, pool_methods,
                                  virtual_memory_methods, sharing_methods, error_methods}) &&
                        add_part(acl, "util", util, {conversion_methods, thread_methods}) &&
                        add_part(acl, "media", media, {media_methods});
  return complete ? 0 : -1;
}

}  // namespace
}  // namespace understudy::python

// In two phases, so that a program that imports it anew gets all of its parts anew.
PyMODINIT_FUNC PyInit_acl() {
  using namespace understudy::python;  // NOLINT: the one function outside
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)}, {0, nullptr}};
  static PyModuleDef acl = make_definition("acl", doc::acl_module, slots);
  return PyModuleDef_Init(&acl);
}
