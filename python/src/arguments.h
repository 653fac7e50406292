// SPDX-License-Identifier: Apache-2.0
//
// Arguments from Python: how many there are, and what they are. Each function answers false, with a
// Python exception set, for what a caller may not pass.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "acl/acl_understudy.h"
#include "python_api.h"

namespace understudy::python {

// The function of the module that the calling thread is in, for the texts of exceptions. Calls may
// be nested: __index__ of an argument may be code of the program's.
class FunctionScope {
 public:
  // Literals: of which module, and its name there.
  FunctionScope(const char* module, const char* name) : module_(module), name_(name) {
    current_ = this;
    if (aclUnderstudyWantsPlaces() != 0) name_place();
  }
  ~FunctionScope() {
    current_ = outer_;
    if (has_place_) aclUnderstudySetPlace(nullptr);
  }
  FunctionScope(const FunctionScope&) = delete;
  FunctionScope& operator=(const FunctionScope&) = delete;

  // "acl.rt.malloc"; "acl" outside of all functions.
  static std::string current_name();

 private:
  // Tells the library's checks which lines of Python call it.
  void name_place();

  static thread_local constinit const FunctionScope* current_;

  const FunctionScope* const outer_ = current_;
  const char* const module_;
  const char* const name_;
  bool has_place_ = false;
};

// Sets an exception whose text starts with the name of the function. Returns false.
bool raise_exception(PyObject* type, const char* format, ...);

// The positional arguments of a call.
class Arguments {
 public:
  explicit Arguments(PyObject* tuple) : tuple_(tuple), count_(PyTuple_Size(tuple)) {}

  Py_ssize_t count() const { return count_; }
  // Borrowed. REQUIRES: index < count().
  PyObject* at(Py_ssize_t index) const { return PyTuple_GetItem(tuple_, index); }

  bool are_exactly(Py_ssize_t wanted) const {
    return count_ == wanted || refuse("exactly", wanted);
  }
  bool are_at_most(Py_ssize_t wanted) const {
    return count_ <= wanted || refuse("at most", wanted);
  }

 private:
  bool refuse(const char* how, Py_ssize_t wanted) const;

  PyObject* const tuple_;
  const Py_ssize_t count_;
};

// What a value is called in an exception: "argument 2", or the key of a dictionary.
class ValueName {
 public:
  explicit ValueName(int index) : index_(index) {}
  explicit ValueName(const char* key) : key_(key) {}
  std::string text() const;

 private:
  int index_ = 0;  // from 0 on
  const char* key_ = nullptr;
};

// Sets a TypeError: "argument 2 must be int, not str". Returns false.
bool refuse_type(const ValueName& name, const char* wanted, PyObject* value);

// Anything with __index__, modulo 2^64.
bool read_word(PyObject* value, const ValueName& name, uint64_t& word);
// The same within bounds; an OverflowError outside of them.
bool read_bounded(PyObject* value, const ValueName& name, int64_t least, int64_t most,
                  int64_t& number);

// A number for a parameter of type T of the C interface: 64-bit ones take any number, so that odd
// ones are the C function's to refuse; smaller ones take what fits.
template <typename T>
bool read_number(PyObject* value, const ValueName& name, T& number) {
  static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
  if constexpr (sizeof(T) == sizeof(uint64_t)) {
    uint64_t word = 0;
    if (!read_word(value, name, word)) return false;
    number = static_cast<T>(word);
  } else {
    using Bounds =
        std::numeric_limits<typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>,
                                                        std::type_identity<T>>::type>;
    int64_t within = 0;
    if (!read_bounded(value, name, Bounds::min(), Bounds::max(), within)) return false;
    number = static_cast<T>(within);
  }
  return true;
}

// An address or a handle.
bool read_address(PyObject* value, const ValueName& name, void*& address);

enum class TextEncoding { kUtf8, kFileName };
// A str without NUL characters.
bool read_text(PyObject* value, const ValueName& name, TextEncoding encoding, std::string& text);
// A list of handles. Has room for one at least, because an empty list is no null pointer; so has
// the next one.
bool read_handles(PyObject* value, const ValueName& name, std::vector<void*>& handles);
// A list of process ids.
bool read_process_ids(PyObject* value, const ValueName& name, std::vector<int32_t>& ids);

bool require_list(PyObject* value, const ValueName& name);
bool require_callable(PyObject* value);

// Room for the key of something that processes share, of the length that a program wants.
class KeyBuffer {
 public:
  explicit KeyBuffer(size_t length) : length_(length < sizeof text_ ? length : sizeof text_) {}

  char* data() { return text_; }
  const char* text() const { return text_; }
  size_t length() const { return length_; }

 private:
  // Longer than any key, so that a length beyond all memory is no different from a long one.
  char text_[256] = "";
  size_t length_;
};

}  // namespace understudy::python
