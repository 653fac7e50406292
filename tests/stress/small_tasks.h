// SPDX-License-Identifier: Apache-2.0
//
// Tasks that take next to no time, and the memory for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rules/host_objects.h"
#include "rules/stream_objects.h"
#include "support/rule_test.h"

namespace understudy_test {

// Words in device memory, all zero.
class DeviceWords {
 public:
  explicit DeviceWords(size_t count) : memory_(count * sizeof(uint64_t)) { clear(); }

  void clear() { EXPECT_SUCCESS(aclrtMemset(memory_.data(), memory_.size(), 0, memory_.size())); }
  void* at(size_t index) const { return memory_.at(index * sizeof(uint64_t)); }
  uint64_t value(size_t index) const { return values(index, 1)[0]; }
  std::vector<uint64_t> values(size_t first, size_t count) const {
    std::vector<uint64_t> words(count);
    const size_t bytes = count * sizeof(uint64_t);
    EXPECT_SUCCESS(aclrtMemcpy(words.data(), bytes, at(first), bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return words;
  }
  // By the host, without a stream.
  void set(size_t index, uint64_t value) const {
    EXPECT_SUCCESS(
        aclrtMemcpy(at(index), sizeof value, &value, sizeof value, ACL_MEMCPY_HOST_TO_DEVICE));
  }

 private:
  MallocedMemory memory_;
};

inline void count_up(void* counter) { ++*static_cast<uint64_t*>(counter); }

// Adds one to a counter in page-locked memory: a worker must do it.
inline void queue_count(aclrtStream stream, uint64_t* counter) {
  EXPECT_SUCCESS(aclrtLaunchHostFunc(stream, count_up, counter));
}

inline void queue_write(aclrtStream stream, void* word, uint64_t value) {
  EXPECT_SUCCESS(aclrtValueWrite(word, value, 0, stream));
}

}  // namespace understudy_test
