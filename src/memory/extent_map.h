// SPDX-License-Identifier: Apache-2.0
//
// The free parts of a backing file: taken best fit, so that recently used pieces are used again
// before untouched ones, and merged with their neighbours when they come back. Not synchronized.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace understudy {

class ExtentMap {
 public:
  // Everything from 0 to `size` is free.
  explicit ExtentMap(uint64_t size);

  // Offset of a free part of `size` bytes, now taken; a multiple of `alignment`, a power of two.
  std::optional<uint64_t> take(uint64_t size, uint64_t alignment);
  // REQUIRES: no byte of the part is free.
  // Both may throw std::bad_alloc and have changed nothing then.
  void give_back(uint64_t offset, uint64_t size);

  // Forgets what lies behind `size`. REQUIRES: everything is free.
  void shrink(uint64_t size);

  uint64_t free_bytes() const { return free_bytes_; }
  // Calls visit(offset, size) for each free part from front to back.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [offset, size] : by_offset_) visit(offset, size);
  }

 private:
  using Part = std::map<uint64_t, uint64_t>::iterator;

  void add(uint64_t offset, uint64_t size);
  // These two cannot fail.
  void change(Part part, uint64_t offset, uint64_t size);
  void remove(Part part);

  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // (size, offset) of the same parts
  uint64_t free_bytes_ = 0;
};

}  // namespace understudy
