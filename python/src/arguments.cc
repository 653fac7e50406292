// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <cstring>

namespace understudy::python {
namespace {

// The number that an object stands for, as an int; nothing, with a TypeError, if it is no number or
// one with a fraction.
Reference as_integer(PyObject* value, const ValueName& name) {
  if (PyLong_Check(value)) return Reference::to(value);
  if (PyIndex_Check(value)) return Reference(PyNumber_Index(value));
  refuse_type(name, "int", value);
  return {};
}

}  // namespace

bool Arguments::refuse(const char* how, Py_ssize_t wanted) const {
  PyErr_Format(PyExc_TypeError, "function takes %s %zd argument%s (%zd given)", how, wanted,
               wanted == 1 ? "" : "s", count_);
  return false;
}

std::string ValueName::text() const {
  return key_ != nullptr ? key_ : "argument " + std::to_string(index_ + 1);
}

bool refuse_type(const ValueName& name, const char* wanted, PyObject* value) {
  if (value == Py_None) {
    PyErr_Format(PyExc_TypeError, "%s must be %s, not None", name.text().c_str(), wanted);
    return false;
  }
  const Reference type_name(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(value)), "__name__"));
  if (!type_name) return false;
  if (!PyUnicode_Check(type_name.get())) {  // a metaclass may say anything
    PyErr_Format(PyExc_TypeError, "%s must be %s", name.text().c_str(), wanted);
    return false;
  }
  PyErr_Format(PyExc_TypeError, "%s must be %s, not %U", name.text().c_str(), wanted,
               type_name.get());
  return false;
}

bool read_word(PyObject* value, const ValueName& name, uint64_t& word) {
  const Reference integer = as_integer(value, name);
  if (!integer) return false;
  word = PyLong_AsUnsignedLongLongMask(integer.get());
  return word != UINT64_MAX || PyErr_Occurred() == nullptr;
}

bool read_bounded(PyObject* value, const ValueName& name, int64_t least, int64_t most,
                  int64_t& number) {
  const Reference integer = as_integer(value, name);
  if (!integer) return false;
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(integer.get(), &overflow);
  if (overflow == 0 && number == -1 && PyErr_Occurred() != nullptr) return false;
  if (overflow == 0 && number >= least && number <= most) return true;
  PyErr_Format(PyExc_OverflowError, "%s must be %lld to %lld", name.text().c_str(),
               static_cast<long long>(least), static_cast<long long>(most));
  return false;
}

bool read_address(PyObject* value, const ValueName& name, void*& address) {
  uint64_t word = 0;
  if (!read_word(value, name, word)) return false;
  address = reinterpret_cast<void*>(word);  // NOLINT(performance-no-int-to-ptr)
  return true;
}

bool read_text(PyObject* value, const ValueName& name, TextEncoding encoding, std::string& text) {
  if (!PyUnicode_Check(value)) return refuse_type(name, "str", value);
  const Reference bytes(encoding == TextEncoding::kFileName ? PyUnicode_EncodeFSDefault(value)
                                                            : PyUnicode_AsUTF8String(value));
  if (!bytes) return false;
  text.assign(PyBytes_AsString(bytes.get()), static_cast<size_t>(PyBytes_Size(bytes.get())));
  if (text.find('\0') == std::string::npos) return true;
  PyErr_SetString(PyExc_ValueError, "embedded null character");
  return false;
}

bool read_process_ids(PyObject* value, const ValueName& name, std::vector<int32_t>& ids) {
  if (!require_list(value, name)) return false;
  // One more, because an empty list is no null pointer.
  ids.reserve(static_cast<size_t>(PyList_Size(value)) + 1);
  // The size again each time: __index__ may be code of the program's that changes the list.
  for (Py_ssize_t index = 0; index < PyList_Size(value); ++index) {
    const Reference item = Reference::to(PyList_GetItem(value, index));
    int32_t id = 0;
    if (!read_number(item.get(), ValueName("pid"), id)) return false;
    ids.push_back(id);
  }
  return true;
}

bool require_list(PyObject* value, const ValueName& name) {
  return PyList_Check(value) || refuse_type(name, "list", value);
}

bool require_callable(PyObject* value) {
  if (PyCallable_Check(value) != 0) return true;
  PyErr_SetString(PyExc_TypeError, "parameter must be callable");
  return false;
}

}  // namespace understudy::python
