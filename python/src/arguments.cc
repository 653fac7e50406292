// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <cstdarg>
#include <cstring>

namespace understudy::python {

thread_local constinit const FunctionScope* FunctionScope::current_ = nullptr;

std::string FunctionScope::current_name() {
  if (current_ == nullptr) return "acl";
  const bool is_nested = strcmp(current_->module_, "acl") != 0;
  return "acl." + (is_nested ? current_->module_ + std::string(".") : "") + current_->name_;
}

namespace {

// An attribute as text; empty if there is none.
std::string text_attribute(PyObject* object, const char* name) {
  const Reference value(PyObject_GetAttrString(object, name));
  const Reference bytes(value ? PyUnicode_AsEncodedString(value.get(), "utf-8", "replace")
                              : nullptr);
  const char* const text = bytes ? PyBytes_AsString(bytes.get()) : nullptr;
  return text == nullptr ? "" : text;
}

struct PythonFrame {
  std::string file;
  std::string line;  // "kv.py:41 fill"
};

PythonFrame described(PyObject* frame) {
  const Reference code(PyObject_GetAttrString(frame, "f_code"));
  const Reference number(PyObject_GetAttrString(frame, "f_lineno"));
  if (!code || !number) return {};
  const std::string file = text_attribute(code.get(), "co_filename");
  return {file, file.substr(file.rfind('/') + 1) + ":" +
                    std::to_string(PyLong_AsLong(number.get())) + " " +
                    text_attribute(code.get(), "co_name")};
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// The helpers for tests stand between a program and the functions that it calls.
bool is_of_helpers(const PythonFrame& frame) {
  return frame.file.ends_with("/understudy/calls.py") ||
         frame.file.ends_with("/understudy/growth.py");
}

// What runs the tests of a program is of no interest.
bool is_of_test_runner(const PythonFrame& frame) {
  return has(frame.file, "/_pytest/") || has(frame.file, "/pluggy/");
}

}  // namespace

void FunctionScope::name_place() {
  constexpr int kMostFrames = 16;
  std::string place;
  Reference frame = Reference::to(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  for (int i = 0; i < kMostFrames && frame && frame.get() != Py_None; ++i) {
    const PythonFrame found = described(frame.get());
    if (!place.empty() && is_of_test_runner(found)) break;
    if (!is_of_helpers(found)) place += (place.empty() ? "" : "\n") + found.line;
    frame = Reference(PyObject_GetAttrString(frame.get(), "f_back"));
  }
  PyErr_Clear();  // the call itself is what may fail
  if (place.empty()) return;
  aclUnderstudySetPlace(place.c_str());
  has_place_ = true;
}

bool raise_exception(PyObject* type, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const Reference text(PyUnicode_FromFormatV(format, values));
  va_end(values);
  if (text) PyErr_Format(type, "%s: %U", FunctionScope::current_name().c_str(), text.get());
  return false;
}

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
  return raise_exception(PyExc_TypeError, "function takes %s %zd argument%s (%zd given)", how,
                         wanted, wanted == 1 ? "" : "s", count_);
}

std::string ValueName::text() const {
  return key_ != nullptr ? key_ : "argument " + std::to_string(index_ + 1);
}

bool refuse_type(const ValueName& name, const char* wanted, PyObject* value) {
  if (value == Py_None) {
    return raise_exception(PyExc_TypeError, "%s must be %s, not None", name.text().c_str(), wanted);
  }
  const Reference type_name(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(value)), "__name__"));
  if (!type_name) return false;
  if (!PyUnicode_Check(type_name.get())) {  // a metaclass may say anything
    return raise_exception(PyExc_TypeError, "%s must be %s", name.text().c_str(), wanted);
  }
  return raise_exception(PyExc_TypeError, "%s must be %s, not %U", name.text().c_str(), wanted,
                         type_name.get());
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
  return raise_exception(PyExc_OverflowError, "%s must be %lld to %lld", name.text().c_str(),
                         static_cast<long long>(least), static_cast<long long>(most));
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
  return raise_exception(PyExc_ValueError, "embedded null character");
}

namespace {

template <typename Item, typename Read>
bool read_items(PyObject* value, const ValueName& name, std::vector<Item>& items, Read read) {
  if (!require_list(value, name)) return false;
  // One more, because an empty list is no null pointer.
  items.reserve(static_cast<size_t>(PyList_Size(value)) + 1);
  // The size again each time: __index__ may be code of the program's that changes the list.
  for (Py_ssize_t index = 0; index < PyList_Size(value); ++index) {
    const Reference reference = Reference::to(PyList_GetItem(value, index));
    Item item{};
    if (!read(reference.get(), item)) return false;
    items.push_back(item);
  }
  return true;
}

}  // namespace

bool read_handles(PyObject* value, const ValueName& name, std::vector<void*>& handles) {
  return read_items(value, name, handles, [](PyObject* item, void*& handle) {
    return read_address(item, ValueName("handle"), handle);
  });
}

bool read_process_ids(PyObject* value, const ValueName& name, std::vector<int32_t>& ids) {
  return read_items(value, name, ids, [](PyObject* item, int32_t& id) {
    return read_number(item, ValueName("pid"), id);
  });
}

bool require_list(PyObject* value, const ValueName& name) {
  return PyList_Check(value) || refuse_type(name, "list", value);
}

bool require_callable(PyObject* value) {
  if (PyCallable_Check(value) != 0) return true;
  return raise_exception(PyExc_TypeError, "parameter must be callable");
}

}  // namespace understudy::python
