// SPDX-License-Identifier: Apache-2.0
#include "runtime/data_buffers.h"

#include <cinttypes>

#include "base/handle.h"

namespace understudy {

uint64_t DataBuffers::add(DataBuffer buffer) {
  MutexLock lock(mutex_);
  while (true) {
    // Numbers come again after four billion of them: one may still be in use.
    const uint64_t handle = HandleParts{HandleTag::kDataBuffer, 0, ++latest_}.pack();
    if (by_handle_.try_emplace(handle, buffer).second) return handle;
  }
}

Result<DataBuffer> DataBuffers::find(uint64_t handle) const {
  MutexLock lock(mutex_);
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end()) return unknown(handle);
  return found->second;
}

Result<void> DataBuffers::update(uint64_t handle, DataBuffer buffer) {
  MutexLock lock(mutex_);
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end()) return unknown(handle);
  found->second = buffer;
  return {};
}

Result<void> DataBuffers::remove(uint64_t handle) {
  MutexLock lock(mutex_);
  if (by_handle_.erase(handle) == 0) return unknown(handle);
  return {};
}

Error DataBuffers::unknown(uint64_t handle) {
  return Error::format(ErrorCode::kInvalidArgument,
                       "dataBuffer 0x%" PRIx64 " is no data buffer, or was destroyed", handle);
}

}  // namespace understudy
