// SPDX-License-Identifier: Apache-2.0
#include "sharing/release_queue.h"

#include <algorithm>
#include <array>
#include <utility>

namespace understudy {

namespace {

constexpr uint8_t bit_of(HoldUser user) { return static_cast<uint8_t>(user); }

}  // namespace

void ReleaseQueue::enter_export(uint32_t number, ExportedMemory memory) {
  MutexLock lock(mutex_);
  Hold& hold = holds_[number];
  hold.exported = memory;
  hold.needs |= bit_of(HoldUser::kExporter);
  hold.held = true;
}

void ReleaseQueue::change_export(uint32_t number, ExportedMemory memory) {
  MutexLock lock(mutex_);
  holds_[number].exported = memory;
}

ExportedMemory ReleaseQueue::exported(uint32_t number) const {
  MutexLock lock(mutex_);
  return holds_[number].exported;
}

bool ReleaseQueue::need_for_import(uint32_t number) {
  MutexLock lock(mutex_);
  Hold& hold = holds_[number];
  const bool was_on_its_way = hold.queued && hold.needs == 0 && !hold.exported.exists();
  hold.needs |= bit_of(HoldUser::kImporter);
  return was_on_its_way;
}

void ReleaseQueue::note_held(uint32_t number) {
  MutexLock lock(mutex_);
  holds_[number].held = true;
}

bool ReleaseQueue::end_need(uint32_t number, HoldUser user) noexcept {
  MutexLock lock(mutex_);
  Hold& hold = holds_[number];
  hold.needs &= static_cast<uint8_t>(~bit_of(user));
  if (hold.needs != 0 || !hold.held) return false;
  if (!hold.queued) push_back_locked(number);
  return true;
}

void ReleaseQueue::push_back_locked(uint32_t number) {
  Hold& hold = holds_[number];
  hold.queued = true;
  hold.next = 0;
  (last_ != 0 ? holds_[last_ - 1].next : first_) = number + 1;
  last_ = number + 1;
  queued_.fetch_add(1);
}

void ReleaseQueue::push_front_locked(uint32_t number) {
  Hold& hold = holds_[number];
  hold.queued = true;
  hold.next = first_;
  first_ = number + 1;
  if (last_ == 0) last_ = first_;
  queued_.fetch_add(1);
}

uint32_t ReleaseQueue::pop_locked() {
  const uint32_t number = first_ - 1;
  Hold& hold = holds_[number];
  first_ = hold.next;
  if (first_ == 0) last_ = 0;
  hold.queued = false;
  queued_.fetch_sub(1);
  return number;
}

std::optional<size_t> ReleaseQueue::release_some(std::span<ReleasedHold> room) noexcept {
  std::array<Release, kBatch> batch;
  const size_t most = std::min(room.size(), batch.size());
  size_t count = 0;
  MutexLock lock(mutex_);
  while (first_ != 0 && count < most) {
    const uint32_t number = pop_locked();
    if (holds_[number].needs != 0) continue;  // needed again
    batch[count++] = {.number = number, .drop = true};
  }
  if (count == 0) return 0;
  if (!table_.try_release({batch.data(), count})) {
    while (count > 0) push_front_locked(batch[--count].number);
    return std::nullopt;
  }
  for (size_t i = 0; i < count; ++i) {
    Hold& hold = holds_[batch[i].number];
    hold.held = false;
    room[i] = {batch[i].number, batch[i].after, hold.exported.exists(), {}};
    if (batch[i].after == AfterDrop::kOwnAgain) room[i].exported = std::exchange(hold.exported, {});
  }
  return count;
}

size_t ReleaseQueue::take_returned(std::span<ExportedMemory> room) noexcept {
  std::array<uint32_t, kBatch> numbers;
  const size_t most = std::min(room.size(), numbers.size());
  MutexLock lock(mutex_);
  const Result<size_t> taken = table_.take_returns({numbers.data(), most}, kOneAttempt);
  const size_t count = taken.ok() ? taken.value() : 0;
  for (size_t i = 0; i < count; ++i) {
    room[i] = std::exchange(holds_[numbers[i]].exported, {});
  }
  return count;
}

}  // namespace understudy
