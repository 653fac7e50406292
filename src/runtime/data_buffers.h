// SPDX-License-Identifier: Apache-2.0
//
// Data buffers: an address and a size that programs pass around under one handle. They own no
// memory. A stale, foreign or invented handle is found out, never followed. Any thread may call
// anything.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"
#include "base/result.h"

namespace understudy {

struct DataBuffer {
  void* data = nullptr;
  uint64_t size = 0;
};

class DataBuffers {
 public:
  // Gives its handle.
  uint64_t add(DataBuffer buffer);
  Result<DataBuffer> find(uint64_t handle) const;
  Result<void> update(uint64_t handle, DataBuffer buffer);
  Result<void> remove(uint64_t handle);

 private:
  static Error unknown(uint64_t handle);

  mutable Mutex mutex_{LockRank::kDataBuffers};
  uint32_t latest_ US_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, DataBuffer> by_handle_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
