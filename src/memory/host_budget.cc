// SPDX-License-Identifier: Apache-2.0
#include "memory/host_budget.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "base/deadline.h"
#include "base/size_text.h"
#include "platform/host_facts.h"
#include "platform/log.h"

namespace understudy {

// The host as it is, and the processes that the server knows.
class HostBudget::Machine final : public HostProbe {
 public:
  explicit Machine(const Server* server) : server_(server) {
    if (!platform::is_memory_known()) {
      platform::say(
          "the host does not tell how much memory it has; host_budget=auto does not limit");
    }
  }

  HostHeadroomWords& words() { return server_ != nullptr ? server_->host_headroom() : own_words_; }
  std::vector<platform::MemoryLimit> limits() const override { return platform::memory_limits(); }
  uint32_t milliseconds() const override {
    const auto now = Clock::now().time_since_epoch();
    return static_cast<uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  }
  unsigned own_slot() const override {
    return server_ != nullptr ? server_->slots().own_slot() : 0;
  }
  bool is_alive(unsigned slot) const override {
    return server_ != nullptr && server_->slots().is_slot_alive(slot);
  }

 private:
  const Server* const server_;
  HostHeadroomWords own_words_;  // without a server
};

HostBudget::HostBudget(Kind kind, uint64_t limit, const Server* server)
    : kind_(kind),
      limit_(limit),
      machine_(kind == Kind::kMachine ? std::make_unique<Machine>(server) : nullptr) {
  MutexLock lock(mutex_);
  if (machine_ != nullptr) headroom_.emplace(machine_->words(), *machine_);
}

HostBudget::~HostBudget() = default;

Result<void> HostBudget::take(uint64_t bytes, Source source) {
  MutexLock lock(mutex_);
  if (kind_ == Kind::kFixed && bytes > limit_ - std::min(limit_, taken_)) {
    return Error::format(
        ErrorCode::kOutOfMemory, "%s more would pass the host budget of %s, of which %s are taken",
        SizeText(bytes).c_str(), SizeText(limit_).c_str(), SizeText(taken_).c_str());
  }
  if (headroom_ && source == Source::kMachine) {
    try {
      US_TRY(headroom_->take(bytes));
    } catch (const std::bad_alloc&) {
      return Error::format(ErrorCode::kOutOfMemory,
                           "the process has no memory to read the host's figures");
    }
  }
  taken_ += bytes;
  return {};
}

void HostBudget::note_committed(uint64_t bytes, Source source) {
  if (source == Source::kPool) return;
  MutexLock lock(mutex_);
  if (headroom_) headroom_->note_committed(bytes);
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
