// SPDX-License-Identifier: Apache-2.0
//
// Which allocations lie in a segment of a pool. The segment is one mapping; this tells its parts
// apart, so that an address can be checked against the allocation that the program has there. In
// whole granules, by their numbers in the segment.
//
// One thread at a time adds and removes, under the lock of the pool. Any thread reads, without a
// lock; one that races with a change sees the allocation before or after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace understudy {

class SubAllocations {
 public:
  // `pool` is the number of the pool that the segment belongs to.
  SubAllocations(uint32_t pool, uint64_t granules);

  uint32_t pool() const { return pool_; }

  void add(uint64_t first, uint64_t count);
  void remove(uint64_t first);

  struct Part {
    uint64_t first;
    uint64_t count;
  };
  // The allocation around a granule. REQUIRES: the granule is one of the segment.
  std::optional<Part> around(uint64_t granule) const;

 private:
  static constexpr unsigned kWordBits = 64;

  const uint32_t pool_;
  std::unique_ptr<std::atomic<uint64_t>[]> starts_;  // a bit where an allocation starts
  std::unique_ptr<std::atomic<uint32_t>[]> counts_;  // granules of the one that starts there
};

}  // namespace understudy
