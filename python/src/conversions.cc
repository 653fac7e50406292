// SPDX-License-Identifier: Apache-2.0
//
// acl.util: addresses of bytes and arrays, and bytes and arrays at addresses. numpy is imported
// when a caller wants an array, not before.
#include <cstdint>
#include <cstdio>

#include "binding.h"
#include "own_memory.h"
#include "tables.h"

namespace understudy::python {
namespace {

// Copies from here on let other threads work meanwhile.
constexpr size_t kLongCopy = 1 << 20;
// For PyMemoryView_FromMemory; the number is stable, its name is in later interfaces only.
constexpr int kWritable = 0x200;

PyObject* refuse_address(const void* address, size_t size) {
  char place[32];  // CPython has no format for it that is the same everywhere
  snprintf(place, sizeof place, "0x%zx", reinterpret_cast<size_t>(address));
  raise_exception(PyExc_ValueError,
                  "the host cannot read %zu bytes at %s; memory of a device is copied to the host "
                  "with acl.rt.memcpy first",
                  size, place);
  return nullptr;
}

PyObject* bytes_to_ptr(const Arguments& arguments) {
  if (!arguments.are_exactly(1)) return nullptr;
  PyObject* const data = arguments.at(0);
  if (!PyBytes_Check(data)) {
    refuse_type(ValueName(0), "bytes", data);
    return nullptr;
  }
  return to_python(static_cast<void*>(PyBytes_AsString(data)));
}

PyObject* ptr_to_bytes(const Arguments& arguments) {
  void* address = nullptr;
  int64_t size = 0;
  if (!arguments.are_exactly(2) || !read_address(arguments.at(0), ValueName(0), address) ||
      !read_bounded(arguments.at(1), ValueName(1), 0, PY_SSIZE_T_MAX, size)) {
    return nullptr;
  }
  const auto count = static_cast<size_t>(size);
  // A length beyond all memory is refused before it is allocated.
  if (!has_readable_ends(address, count)) return refuse_address(address, count);
  PyObject* const bytes = PyBytes_FromStringAndSize(nullptr, size);
  if (bytes == nullptr) return nullptr;
  char* const to = PyBytes_AsString(bytes);
  const auto copy = [&] { return read_own_memory(to, address, count); };
  if (count < kLongCopy ? copy() : without_gil(copy)) return bytes;
  Py_DECREF(bytes);
  return refuse_address(address, count);
}

// ---- numpy

Reference of_numpy(const char* name) {
  const Reference numpy(PyImport_ImportModule("numpy"));
  return Reference(numpy ? PyObject_GetAttrString(numpy.get(), name) : nullptr);
}

bool require_array(PyObject* value) {
  const Reference type = of_numpy("ndarray");
  if (!type) return false;
  const int is_array = PyObject_IsInstance(value, type.get());
  if (is_array == 0) refuse_type(ValueName(0), "numpy.ndarray", value);
  return is_array == 1;
}

// 1 or 0; -1 with an exception set.
int is_contiguous(PyObject* array) {
  const Reference flags(PyObject_GetAttrString(array, "flags"));
  const Reference flag(flags ? PyObject_GetAttrString(flags.get(), "c_contiguous") : nullptr);
  return flag ? PyObject_IsTrue(flag.get()) : -1;
}

// Where the data of an array is, as an int.
Reference data_address(PyObject* array) {
  const Reference interface(PyObject_GetAttrString(array, "__array_interface__"));
  const Reference key(PyUnicode_FromString("data"));
  if (!interface || !key) return {};
  const Reference data(PyObject_GetItem(interface.get(), key.get()));
  return Reference(data ? PySequence_GetItem(data.get(), 0) : nullptr);
}

PyObject* numpy_to_ptr(const Arguments& arguments) {
  if (!arguments.are_exactly(1) || !require_array(arguments.at(0))) return nullptr;
  const int contiguous = is_contiguous(arguments.at(0));
  if (contiguous < 0) return nullptr;
  if (contiguous == 0) {
    PySys_WriteStdout(
        "Warning:The input ndarray is discontiguous. "
        "Please use acl.util.numpy_contiguous_to_ptr instead.\n");
  }
  return data_address(arguments.at(0)).release();
}

PyObject* numpy_contiguous_to_ptr(const Arguments& arguments) {
  if (!arguments.are_exactly(1) || !require_array(arguments.at(0))) return nullptr;
  const int contiguous = is_contiguous(arguments.at(0));
  if (contiguous < 0) return nullptr;
  Reference array = Reference::to(arguments.at(0));
  if (contiguous == 0) {
    const Reference copy = of_numpy("ascontiguousarray");
    array =
        Reference(copy ? PyObject_CallFunctionObjArgs(copy.get(), array.get(), nullptr) : nullptr);
    if (!array) return nullptr;
  }
  Reference address = data_address(array.get());
  if (!address) return nullptr;
  return tuple_of(address.release(), array.release());
}

// The letter by which numpy knows a type of a number; 0 for numbers that are none of these.
char type_letter(int32_t number) {
  constexpr char kLetters[] = "?bBhHiIlLqQfdgFDG";
  constexpr int32_t kHalf = 23;
  if (number == kHalf) return 'e';
  return number >= 0 && number < int32_t{sizeof kLetters} - 1 ? kLetters[number] : '\0';
}

// The data type, and the bytes that one element has.
Reference data_type(int32_t number, size_t& item_size) {
  const char letter[] = {type_letter(number), '\0'};
  if (letter[0] == '\0') {
    raise_exception(PyExc_ValueError, "%d is no type number of numpy that is known here", number);
    return {};
  }
  const Reference make = of_numpy("dtype");
  Reference type(make ? PyObject_CallFunction(make.get(), "s", letter) : nullptr);
  const Reference size(type ? PyObject_GetAttrString(type.get(), "itemsize") : nullptr);
  if (!size || !read_number(size.get(), ValueName("itemsize"), item_size)) return {};
  return type;
}

bool require_tuple(PyObject* value, const ValueName& name) {
  return PyTuple_Check(value) || refuse_type(name, "tuple", value);
}

// How many bytes an array of a shape has; false, with an exception set, for no shape.
bool read_shape(PyObject* shape, size_t item_size, size_t& bytes) {
  bytes = item_size;
  for (Py_ssize_t axis = 0; axis < PyTuple_Size(shape); ++axis) {
    int64_t length = 0;
    if (!read_bounded(PyTuple_GetItem(shape, axis), ValueName("shape"), INT64_MIN, INT64_MAX,
                      length)) {
      return false;
    }
    if (length < 0) {
      return raise_exception(PyExc_ValueError, "shape has a negative length");
    }
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(length), &bytes) ||
        bytes > static_cast<size_t>(PY_SSIZE_T_MAX)) {
      return raise_exception(PyExc_OverflowError, "shape has more bytes than there are addresses");
    }
  }
  return true;
}

PyObject* ptr_to_numpy(const Arguments& arguments) {
  void* address = nullptr;
  int32_t type_number = 0;
  size_t item_size = 0;
  size_t bytes = 0;
  if (!arguments.are_exactly(3) || !read_address(arguments.at(0), ValueName(0), address) ||
      !require_tuple(arguments.at(1), ValueName(1)) ||
      !read_number(arguments.at(2), ValueName(2), type_number)) {
    return nullptr;
  }
  const Reference type = data_type(type_number, item_size);
  if (!type || !read_shape(arguments.at(1), item_size, bytes)) return nullptr;
  if (!has_readable_ends(address, bytes)) return refuse_address(address, bytes);
  static char nowhere = 0;  // a view must be somewhere, even without a byte
  const Reference view(PyMemoryView_FromMemory(bytes == 0 ? &nowhere : static_cast<char*>(address),
                                               static_cast<Py_ssize_t>(bytes), kWritable));
  const Reference array = of_numpy("ndarray");
  if (!view || !array) return nullptr;
  return PyObject_CallFunctionObjArgs(array.get(), arguments.at(1), type.get(), view.get(),
                                      nullptr);
}

}  // namespace

PyMethodDef conversion_methods[] = {
    US_METHOD(util, bytes_to_ptr, by_hand<bytes_to_ptr>),
    US_METHOD(util, ptr_to_bytes, by_hand<ptr_to_bytes>),
    US_METHOD(util, numpy_to_ptr, by_hand<numpy_to_ptr>),
    US_METHOD(util, numpy_contiguous_to_ptr, by_hand<numpy_contiguous_to_ptr>),
    US_METHOD(util, ptr_to_numpy, by_hand<ptr_to_numpy>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
