// SPDX-License-Identifier: Apache-2.0
//
// Memory that several processes have mapped: a file, or for one process alone, nothing. Fork
// children do not inherit it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

class SharedMapping {
 public:
  SharedMapping() = default;
  // The first `size` bytes of a file; bytes it does not have yet must not be touched.
  static Result<SharedMapping> of_file(int file, uint64_t size);
  // Zeroed memory of this process.
  static Result<SharedMapping> without_file(uint64_t size);
  SharedMapping(SharedMapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();

  char* data() const { return static_cast<char*>(data_); }
  uint64_t size() const { return size_; }

 private:
  SharedMapping(void* data, uint64_t size) : data_(data), size_(size) {}
  static Result<SharedMapping> make(int file, uint64_t size, int flags);

  void* data_ = nullptr;
  uint64_t size_ = 0;
};

// Gives a file its size; bytes beyond the old one are zero and cost nothing until they are used.
Result<void> resize_file(int file, uint64_t size);
uint64_t file_size(int file);
// Makes all bytes of a file zero, and gives back what they cost. Every process that has it mapped
// sees zeros.
Result<void> clear_file(int file);
// Makes sure that a range of a file can be touched: where there is no room for it, that would be a
// signal.
Result<void> back_file(int file, uint64_t offset, uint64_t size);

}  // namespace understudy::platform
