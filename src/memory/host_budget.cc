// SPDX-License-Identifier: Apache-2.0
#include "memory/host_budget.h"

#include <algorithm>

#include "base/size_text.h"
#include "base/sizes.h"
#include "platform/host_facts.h"

namespace understudy {

namespace {

// Enough for the program itself and its neighbours to go on working.
uint64_t machine_reserve() {
  return std::clamp(align_down(platform::total_memory() / 32, kMiB), 16 * kMiB, kGiB);
}

// No more than this is taken on one answer of the machine, which others share.
constexpr uint64_t kMaxAllowance = 256 * kMiB;

}  // namespace

HostBudget::HostBudget(Kind kind, uint64_t limit)
    : kind_(kind), limit_(limit), reserve_(kind == Kind::kMachine ? machine_reserve() : 0) {}

Result<void> HostBudget::take(uint64_t bytes, Source source) {
  MutexLock lock(mutex_);
  switch (kind_) {
    case Kind::kUnlimited:
      break;
    case Kind::kFixed:
      if (bytes > limit_ - std::min(limit_, taken_)) {
        return Error::format(ErrorCode::kOutOfMemory,
                             "%s more would pass the host budget of %s, of which %s are taken",
                             SizeText(bytes).c_str(), SizeText(limit_).c_str(),
                             SizeText(taken_).c_str());
      }
      break;
    case Kind::kMachine:
      if (source == Source::kPool) break;
      if (bytes > allowance_) US_TRY(ask_machine_locked(bytes));
      allowance_ -= bytes;
      break;
  }
  taken_ += bytes;
  if (source == Source::kMachine) in_flight_ += bytes;
  return {};
}

Result<void> HostBudget::ask_machine_locked(uint64_t bytes) {
  const uint64_t available = platform::available_memory();
  const uint64_t spare = available - std::min(available, reserve_ + in_flight_);
  if (bytes > spare) {
    allowance_ = 0;
    return Error::format(ErrorCode::kOutOfMemory,
                         "the host has %s available and keeps %s of it, too little for %s more",
                         SizeText(align_down(available, kMiB)).c_str(), SizeText(reserve_).c_str(),
                         SizeText(bytes).c_str());
  }
  allowance_ = std::max(bytes, std::min(spare / 4, kMaxAllowance));
  return {};
}

void HostBudget::note_committed(uint64_t bytes, Source source) {
  if (source == Source::kPool) return;
  MutexLock lock(mutex_);
  in_flight_ -= bytes;
}

void HostBudget::give_back(uint64_t bytes) {
  MutexLock lock(mutex_);
  taken_ -= bytes;
}

uint64_t HostBudget::taken() const {
  MutexLock lock(mutex_);
  return taken_;
}

}  // namespace understudy
