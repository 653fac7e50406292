// SPDX-License-Identifier: Apache-2.0
//
// Memory in place of the program's own, which a recording tells nothing of; and which addresses the
// library has given out to a process of a replay. Any thread may call anything.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace understudy::command {

class ProgramMemory {
 public:
  // `host_bytes`: what calls touch at most. `knows_ranges`: whether to keep in mind what is given
  // out, which takes time.
  ProgramMemory(uint64_t host_bytes, bool knows_ranges);

  // For copies from and to memory that nothing is known of. All of them share it.
  uint64_t host_memory() const { return host_memory_; }
  // Memory of its own for a thing that was at this address; 0 if there is none.
  static uint64_t make(uint64_t size, uint64_t recorded_address);

  void note_begin(uint64_t address, uint64_t size);
  void note_end(uint64_t address);
  // An address that was given out once and is not any more; another one if it is again.
  uint64_t ended(uint64_t address);

 private:
  uint64_t host_memory_ = 0;
  const bool knows_ranges_;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> ranges_;  // guarded by mutex_
};

}  // namespace understudy::command
