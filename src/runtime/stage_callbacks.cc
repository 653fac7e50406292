// SPDX-License-Identifier: Apache-2.0
#include "runtime/stage_callbacks.h"

#include <algorithm>

namespace understudy {

namespace {

unsigned index_of(SnapshotStage stage) { return static_cast<unsigned>(stage); }

}  // namespace

Result<void> StageCallbacks::add(SnapshotStage stage, SnapshotCallback function, void* arguments) {
  MutexLock lock(mutex_);
  List& list = lists_[index_of(stage)];
  if (std::any_of(list.begin(), list.end(),
                  [&](const Entry& entry) { return entry.function == function; })) {
    return Error::format(ErrorCode::kCallbackRegistered,
                         "callback %p is registered for stage %u already",
                         reinterpret_cast<void*>(function), index_of(stage));
  }
  list.push_back({last_number_ + 1, function, arguments});
  ++last_number_;
  return {};
}

Result<void> StageCallbacks::remove(SnapshotStage stage, SnapshotCallback function) {
  MutexLock lock(mutex_);
  if (std::erase_if(lists_[index_of(stage)],
                    [&](const Entry& entry) { return entry.function == function; }) == 0) {
    return Error::format(ErrorCode::kInvalidParam, "callback %p is not registered for stage %u",
                         reinterpret_cast<void*>(function), index_of(stage));
  }
  return {};
}

std::optional<StageCallbacks::Entry> StageCallbacks::next_after(SnapshotStage stage,
                                                                uint64_t number) const {
  MutexLock lock(mutex_);
  for (const Entry& entry : lists_[index_of(stage)]) {
    if (entry.number > number) return entry;
  }
  return std::nullopt;
}

bool StageCallbacks::has(SnapshotStage stage, const Entry& entry) const {
  MutexLock lock(mutex_);
  const List& list = lists_[index_of(stage)];
  return std::any_of(list.begin(), list.end(),
                     [&](const Entry& each) { return each.number == entry.number; });
}

}  // namespace understudy
