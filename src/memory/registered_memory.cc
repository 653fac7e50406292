// SPDX-License-Identifier: Apache-2.0
#include "memory/registered_memory.h"

#include <utility>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "platform/host_memory.h"

namespace understudy {

namespace {

VirtualAddress first_page(VirtualRange range) { return align_down(range.base, kNormalPage); }
VirtualAddress last_page(VirtualRange range) { return align_down(range.end() - 1, kNormalPage); }

Error not_registered(VirtualAddress base, ErrorCode code) {
  return Error::format(code, "no registered memory starts at %p", to_pointer(base));
}

}  // namespace

Result<VirtualAddress> RegisteredMemory::add(const RegistrationRequest& request) {
  const VirtualRange range = request.range;
  Registration registration;
  registration.range = range;
  if (request.mapped && request.same_address) {
    registration.device = range.base;
  } else if (request.mapped) {
    // An address for kernels. The software MMU has nothing there: copies take the host's address.
    const std::optional<uint64_t> size = align_up(range.size, kGranule);
    if (!size) {
      return Error::format(ErrorCode::kRefused, "size %s is too large",
                           SizeText(range.size).c_str());
    }
    US_TRY_ASSIGN(const Arena place, addresses_.take(*size, kGranule));
    registration.taken = place.range;
    registration.device = place.range.base;
  }
  ScopeExit undo([&] {
    if (registration.taken.size != 0) addresses_.give_back(registration.taken);
  });
  MutexLock lock(mutex_);
  if (const auto other = around_locked(range); other != by_base_.end()) {
    return Error::format(ErrorCode::kAlreadyRegistered, "%s at %p overlap registered memory at %p",
                         SizeText(range.size).c_str(), to_pointer(range.base),
                         to_pointer(other->second.range.base));
  }
  const auto entered = by_base_.emplace(range.base, registration).first;
  ScopeExit leave([&] { by_base_.erase(entered); });
  if (request.lock) {
    US_TRY_ASSIGN(entered->second.locked, lock_locked(range));
  }
  leave.dismiss();
  undo.dismiss();
  count_.store(by_base_.size(), std::memory_order_relaxed);
  return registration.device;
}

Result<void> RegisteredMemory::remove(VirtualAddress base) {
  VirtualRange taken;
  {
    MutexLock lock(mutex_);
    const auto found = by_base_.find(base);
    if (found == by_base_.end()) return not_registered(base, ErrorCode::kNotRegistered);
    if (found->second.locked) unlock_locked(found->second.range);
    taken = found->second.taken;
    by_base_.erase(found);
    count_.store(by_base_.size(), std::memory_order_relaxed);
  }
  if (taken.size != 0) addresses_.give_back(taken);
  return {};
}

Result<VirtualAddress> RegisteredMemory::device_address(VirtualAddress base) {
  MutexLock lock(mutex_);
  const auto found = by_base_.find(base);
  if (found == by_base_.end()) return not_registered(base, ErrorCode::kRefused);
  if (found->second.device == 0) {
    return Error::format(ErrorCode::kRefused, "the memory at %p is registered but not mapped",
                         to_pointer(base));
  }
  return found->second.device;
}

std::optional<VirtualRange> RegisteredMemory::find(VirtualAddress address) {
  if (count_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  MutexLock lock(mutex_);
  const auto found = around_locked({address, 1});
  if (found == by_base_.end()) return std::nullopt;
  return found->second.range;
}

bool RegisteredMemory::overlaps(VirtualRange range) {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  MutexLock lock(mutex_);
  return around_locked(range) != by_base_.end();
}

// A registration that has bytes in the range, or the end.
RegisteredMemory::Registrations::iterator RegisteredMemory::around_locked(VirtualRange range) {
  const auto behind = by_base_.lower_bound(range.end());
  if (behind == by_base_.begin()) return by_base_.end();
  const auto before = std::prev(behind);
  return before->second.range.end() > range.base ? before : by_base_.end();
}

Result<bool> RegisteredMemory::lock_locked(VirtualRange range) {
  const VirtualAddress first = first_page(range);
  const VirtualAddress last = last_page(range);
  // Entered first, so that nothing can fail once the pages are locked.
  unsigned& first_count = edge_locks_[first];
  unsigned& last_count = edge_locks_[last];
  const Result<void> locked = platform::lock_pages({first, last + kNormalPage - first});
  if (!locked.ok()) {
    if (first_count == 0) edge_locks_.erase(first);
    if (last != first && last_count == 0) edge_locks_.erase(last);
    if (settings_.host_lock == HostLock::kBestEffort) return false;
    return Error::format(ErrorCode::kOutOfMemory,
                         "host_lock is strict and the host does not lock %s at %p",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  ++first_count;
  if (last != first) ++last_count;
  return true;
}

void RegisteredMemory::unlock_locked(VirtualRange range) {
  const VirtualAddress first = first_page(range);
  const VirtualAddress last = last_page(range);
  const auto release_edge = [this](VirtualAddress page) US_NO_THREAD_SAFETY_ANALYSIS {
    const auto found = edge_locks_.find(page);
    if (--found->second != 0) return;
    edge_locks_.erase(found);
    platform::unlock_pages({page, kNormalPage});
  };
  release_edge(first);
  if (last == first) return;
  release_edge(last);
  if (last - first > kNormalPage) {
    platform::unlock_pages({first + kNormalPage, last - first - kNormalPage});
  }
}

}  // namespace understudy
