// SPDX-License-Identifier: Apache-2.0
//
// Custom allocators: what a program describes, and which of it is registered for which stream. The
// library never calls them; operator libraries look them up. Rules: ALLOC. A stale, foreign or
// invented descriptor is found out, never followed. Any thread may call anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"
#include "base/result.h"
#include "stream/stream.h"

namespace understudy {

// The program's allocator object and its functions, as it set them.
struct AllocatorValues {
  void* object = nullptr;
  void* (*allocate)(void* object, size_t size) = nullptr;
  void (*free)(void* object, void* block) = nullptr;
  void* (*allocate_at)(void* object, size_t size, void* address) = nullptr;  // optional
  void* (*address_of)(void* block) = nullptr;
};

class Allocators {
 public:
  // What a stream has: a copy of the values, and the descriptor they came from.
  struct Registration {
    uint64_t descriptor = 0;
    AllocatorValues values;
  };

  // Gives the handle of an empty descriptor.
  uint64_t create();
  Result<void> destroy(uint64_t descriptor);
  template <typename Change>
  Result<void> change(uint64_t descriptor, Change change) {
    MutexLock lock(mutex_);
    US_TRY_ASSIGN(AllocatorValues* const values, find_locked(descriptor));
    change(*values);
    return {};
  }

  // In place of what the stream had. Refuses incomplete values.
  Result<void> add(const StreamReference& stream, uint64_t descriptor);
  Result<Registration> find(const StreamReference& stream) const;
  void remove(const StreamReference& stream);

 private:
  // A stream that ends leaves its registration behind, until its slot has another one.
  struct Kept {
    uint32_t state = 0;
    Registration registration;
  };

  Result<AllocatorValues*> find_locked(uint64_t descriptor) US_REQUIRES(mutex_);

  mutable Mutex mutex_{LockRank::kAllocators};
  uint32_t latest_ US_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, AllocatorValues> descriptors_ US_GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, Kept> registrations_ US_GUARDED_BY(mutex_);  // by number of stream
};

}  // namespace understudy
