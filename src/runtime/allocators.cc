// SPDX-License-Identifier: Apache-2.0
#include "runtime/allocators.h"

#include <cinttypes>

#include "base/handle.h"

namespace understudy {

namespace {

// What the values lack; null if they are complete.
const char* missing_in(const AllocatorValues& values) {
  if (values.object == nullptr) return "allocator object";
  if (values.allocate == nullptr) return "allocation function";
  if (values.free == nullptr) return "free function";
  if (values.address_of == nullptr) return "function for the address of a block";
  return nullptr;
}

}  // namespace

uint64_t Allocators::create() {
  MutexLock lock(mutex_);
  while (true) {
    // Numbers come again after four billion of them: one may still be in use.
    const uint64_t handle = HandleParts{HandleTag::kAllocator, 0, ++latest_}.pack();
    if (descriptors_.try_emplace(handle).second) return handle;
  }
}

Result<AllocatorValues*> Allocators::find_locked(uint64_t descriptor) {
  const auto found = descriptors_.find(descriptor);
  if (found != descriptors_.end()) return &found->second;
  return Error::format(ErrorCode::kInvalidArgument,
                       "allocatorDesc 0x%" PRIx64 " is no descriptor, or was destroyed",
                       descriptor);
}

Result<void> Allocators::destroy(uint64_t descriptor) {
  MutexLock lock(mutex_);
  US_TRY(find_locked(descriptor));
  descriptors_.erase(descriptor);
  return {};
}

Result<void> Allocators::add(const StreamReference& stream, uint64_t descriptor) {
  MutexLock lock(mutex_);
  US_TRY_ASSIGN(const AllocatorValues* const values, find_locked(descriptor));
  if (const char* const missing = missing_in(*values)) {
    return Error::format(ErrorCode::kInvalidArgument, "allocatorDesc 0x%" PRIx64 " has no %s",
                         descriptor, missing);
  }
  registrations_[stream.id()] = {stream.state, {descriptor, *values}};
  return {};
}

Result<Allocators::Registration> Allocators::find(const StreamReference& stream) const {
  MutexLock lock(mutex_);
  const auto found = registrations_.find(stream.id());
  if (found != registrations_.end() && found->second.state == stream.state) {
    return found->second.registration;
  }
  return Error::format(ErrorCode::kInvalidArgument, "stream %u has no registered allocator",
                       stream.id());
}

void Allocators::remove(const StreamReference& stream) {
  MutexLock lock(mutex_);
  const auto found = registrations_.find(stream.id());
  if (found != registrations_.end() && found->second.state == stream.state) {
    registrations_.erase(found);
  }
}

}  // namespace understudy
