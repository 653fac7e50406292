// SPDX-License-Identifier: Apache-2.0
//
// Cache operations of a device. The caches of the software device are the host's, which are
// coherent: an operation is a task that keeps its place in the stream and changes nothing.
// Rules: CMO. Any thread may call anything, without a lock.
#pragma once

#include "base/result.h"
#include "base/virtual_range.h"
#include "memory/memory_class.h"
#include "stream/copies.h"
#include "stream/streams.h"

namespace understudy {

class CacheOperations {
 public:
  CacheOperations(MemoryClasses classes, Copies& copies, Streams& streams)
      : classes_(classes), copies_(copies), streams_(streams) {}

  // REQUIRES, for ranges: they are not empty.
  Result<void> check_range(VirtualRange range, unsigned device) const;
  Result<void> queue(const StreamReference& stream, VirtualRange range);
  // Writes the description of a range of the device's memory, into memory of the device.
  Result<void> describe(VirtualAddress description, VirtualRange range, unsigned device);
  Result<void> queue_described(const StreamReference& stream, VirtualAddress description);

 private:
  Result<void> check_description(VirtualAddress description, unsigned device) const;
  Result<void> submit(const StreamReference& stream, VirtualAddress description);

  const MemoryClasses classes_;
  Copies& copies_;
  Streams& streams_;
};

}  // namespace understudy
