// SPDX-License-Identifier: Apache-2.0
//
// CPython's stable interface, as of version 3.8, and the little that makes it safe to use from C++.
// Everything in this folder uses this interface and the public C headers alone.
#pragma once

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace understudy::python {

// Owns a reference to a Python object, or nothing. REQUIRES: the GIL, for everything.
// No Reference may be alive while the GIL is released: a thread that wants it back while the
// interpreter ends is taken down by CPython, and unwinding would drop the reference without the
// GIL.
class Reference {
 public:
  Reference() = default;
  // Takes over a new reference.
  explicit Reference(PyObject* object) : object_(object) {}
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Reference() { Py_XDECREF(object_); }

  // One more reference to an object that another reference holds.
  static Reference to(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Reference(borrowed);
  }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Runs `body` without the GIL. Not a scope guard, for the reason above.
template <typename Body>
auto without_gil(Body&& body) {
  PyThreadState* const state = PyEval_SaveThread();
  const auto result = body();
  PyEval_RestoreThread(state);
  return result;
}

}  // namespace understudy::python
