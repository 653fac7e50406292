// SPDX-License-Identifier: Apache-2.0
//
// What calls give to Python: a bare status, or one flat tuple with the status last.
#pragma once

#include <cstdint>
#include <type_traits>

#include "acl/acl_base.h"
#include "python_api.h"

namespace understudy::python {

// New references; null with an exception set if memory is short.
inline PyObject* to_python(const char* text) {
  if (text == nullptr) Py_RETURN_NONE;
  const Reference bytes(PyBytes_FromString(text));
  return bytes ? PyUnicode_FromEncodedObject(bytes.get(), "utf-8", "replace") : nullptr;
}
inline PyObject* to_python(PyObject* owned) { return owned; }
template <typename T>
PyObject* to_python(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return PyLong_FromUnsignedLongLong(reinterpret_cast<uint64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return PyFloat_FromDouble(static_cast<double>(value));
  } else if constexpr (std::is_unsigned_v<T>) {
    return PyLong_FromUnsignedLongLong(value);
  } else {
    return PyLong_FromLongLong(static_cast<long long>(value));
  }
}

// A tuple of values, which the status is to be the last of.
template <typename... Values>
PyObject* tuple_of(Values... values) {
  PyObject* const items[] = {to_python(values)...};
  constexpr Py_ssize_t kCount = sizeof...(values);
  PyObject* tuple = PyTuple_New(kCount);
  bool complete = tuple != nullptr;
  for (PyObject* const item : items) complete = complete && item != nullptr;
  for (Py_ssize_t index = 0; index < kCount; ++index) {
    if (complete) {
      PyTuple_SetItem(tuple, index, items[index]);
    } else {
      Py_XDECREF(items[index]);
    }
  }
  if (complete) return tuple;
  Py_XDECREF(tuple);
  return nullptr;
}

}  // namespace understudy::python
