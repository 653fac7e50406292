// SPDX-License-Identifier: Apache-2.0
#include "memory/registered_memory.h"

#include <iterator>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "platform/host_memory.h"
#include "platform/log.h"

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
      return Error::format(ErrorCode::kInvalidParam, "size %s is too large",
                           SizeText(range.size).c_str());
    }
    US_TRY_ASSIGN(const Arena place, addresses_.take(*size, kGranule));
    registration.taken = place.range;
    registration.device = place.range.base;
  }
  ScopeExit undo([&] {
    if (registration.taken.size != 0) addresses_.give_back(registration.taken);
  });
  registration.state = request.lock ? State::kLocking : State::kUnlocked;
  {
    MutexLock lock(mutex_);
    if (const auto other = around_locked(range); other != by_base_.end()) {
      return Error::format(ErrorCode::kAlreadyRegistered,
                           "the range of %s at %p overlaps registered memory at %p",
                           SizeText(range.size).c_str(), to_pointer(range.base),
                           to_pointer(other->second.range.base));
    }
    // What needs memory comes first; an edge with a count of 0 does no harm.
    if (request.lock) {
      edge_locks_.try_emplace(first_page(range), 0);
      edge_locks_.try_emplace(last_page(range), 0);
    }
    by_base_.emplace(range.base, registration);
    if (request.lock) count_edges_locked(range);
    count_.store(by_base_.size(), std::memory_order_relaxed);
  }
  if (request.lock) US_TRY(lock(range));
  undo.dismiss();
  return registration.device;
}

Result<void> RegisteredMemory::remove(VirtualAddress base) {
  VirtualRange range;
  VirtualRange taken;
  {
    MutexLock lock(mutex_);
    const auto found = at_locked(base);
    if (found == by_base_.end()) return not_registered(base, ErrorCode::kNotRegistered);
    if (found->second.state == State::kLocked) unlock_locked(found->second.range);
    range = found->second.range;
    taken = found->second.taken;
    leave_locked(found);
  }
  wait_until_unpinned(to_pointer(range.base), to_pointer(range.end()));
  if (taken.size != 0) addresses_.give_back(taken);
  return {};
}

Result<VirtualAddress> RegisteredMemory::device_address(VirtualAddress base) {
  MutexLock lock(mutex_);
  const auto found = at_locked(base);
  if (found == by_base_.end()) return not_registered(base, ErrorCode::kInvalidParam);
  if (found->second.device == 0) {
    return Error::format(ErrorCode::kInvalidParam, "the memory at %p is registered but not mapped",
                         to_pointer(base));
  }
  return found->second.device;
}

bool RegisteredMemory::pin(VirtualRange range, HazardPin& pin) {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  pin.publish(to_pointer(range.base));
  MutexLock lock(mutex_);
  const auto found = around_locked({range.base, 1});
  return found != by_base_.end() && found->second.state != State::kLocking &&
         found->second.range.contains(range);
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

RegisteredMemory::Registrations::iterator RegisteredMemory::around_locked(VirtualRange range) {
  const auto behind = by_base_.lower_bound(range.end());
  if (behind == by_base_.begin()) return by_base_.end();
  const auto before = std::prev(behind);
  return before->second.range.end() > range.base ? before : by_base_.end();
}

RegisteredMemory::Registrations::iterator RegisteredMemory::at_locked(VirtualAddress base) {
  const auto found = by_base_.find(base);
  const bool complete = found != by_base_.end() && found->second.state != State::kLocking;
  return complete ? found : by_base_.end();
}

void RegisteredMemory::leave_locked(Registrations::iterator registration) {
  by_base_.erase(registration);
  count_.store(by_base_.size(), std::memory_order_relaxed);
}

Result<void> RegisteredMemory::lock(VirtualRange range) {
  const VirtualAddress first = first_page(range);
  const VirtualRange pages{first, last_page(range) + kNormalPage - first};
  Result<void> locked = platform::lock_pages(pages);
  // What is cached counts against the same limit.
  if (!locked.ok() && pinned_.trim_locked_cache()) locked = platform::lock_pages(pages);

  MutexLock lock(mutex_);
  const auto registration = by_base_.find(range.base);
  registration->second.state = locked.ok() ? State::kLocked : State::kUnlocked;
  if (locked.ok()) return {};
  unlock_locked(range);  // a lock that failed half-way still counts
  if (settings_.host_lock == HostLock::kBestEffort) {
    platform::log_note("host_lock=best_effort: %s at %p; it is registered and not locked",
                       locked.error().text(), to_pointer(range.base));
    return {};
  }
  leave_locked(registration);
  return Error::format(ErrorCode::kOutOfMemory,
                       "host_lock is strict and the host does not lock %s at %p",
                       SizeText(range.size).c_str(), to_pointer(range.base));
}

void RegisteredMemory::count_edges_locked(VirtualRange range) {
  unsigned& first = edge_locks_[first_page(range)];
  unsigned& last = edge_locks_[last_page(range)];
  ++first;
  if (&first != &last) ++last;
}

void RegisteredMemory::unlock_locked(VirtualRange range) {
  const VirtualAddress first = first_page(range);
  const VirtualAddress last = last_page(range);
  drop_edge_locked(first);
  if (last == first) return;
  drop_edge_locked(last);
  if (last - first > kNormalPage) {
    platform::unlock_pages({first + kNormalPage, last - first - kNormalPage});
  }
}

void RegisteredMemory::drop_edge_locked(VirtualAddress page) {
  const auto found = edge_locks_.find(page);
  if (--found->second != 0) return;
  edge_locks_.erase(found);
  platform::unlock_pages({page, kNormalPage});
}

}  // namespace understudy
