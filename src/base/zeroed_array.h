// SPDX-License-Identifier: Apache-2.0
//
// A large array that costs memory only where it is used: the allocator takes it zeroed from the
// kernel and is not touched in advance. For types whose initial state is all zero bytes.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace understudy {

template <typename T>
class ZeroedArray {
 public:
  explicit ZeroedArray(size_t count) : data_(static_cast<T*>(std::calloc(count, sizeof(T)))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  ~ZeroedArray() { std::free(data_); }
  ZeroedArray(const ZeroedArray&) = delete;
  ZeroedArray& operator=(const ZeroedArray&) = delete;

  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }

 private:
  T* data_;
};

}  // namespace understudy
