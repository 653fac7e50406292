// SPDX-License-Identifier: Apache-2.0
#include "server/page_account.h"

#include <algorithm>
#include <utility>

#include "base/invariant.h"
#include "base/kill_point.h"
#include "base/pause.h"
#include "base/sizes.h"

namespace understudy {

namespace {

constexpr uint64_t kMostLeased = 256 * kMiB / kNormalPage;
constexpr uint64_t kLeasesPerPool = 16;
// A process is granted ahead what it asks for once more, or a part of what it uses: how often it
// asks grows with the logarithm of what it uses.
constexpr uint64_t kPartAhead = 8;
static_assert(kMostLeased <= PoolWord::kMostLeased);

}  // namespace

template <typename Visit>
inline void PageAccount::for_each_use(Visit visit) const {
  unsigned left = slots_.count();
  for (unsigned group = 0; left > 0; ++group) {
    DeviceUse* const uses = file_.uses(group, device_);
    const unsigned here = std::min(left, UseGroup::kSlots);
    for (unsigned i = 0; i < here; ++i) visit(uses[i]);
    left -= here;
  }
}

PageAccount::Count PageAccount::count() const {
  Count sum;
  // First: what is charged under the lock is in its slot before it is no longer held back.
  sum.claimed = held_back().load();
  for_each_use([&](const DeviceUse& use) {
    // First: what is granted is in its word before it is no longer pending.
    const uint64_t pending = use.pending[pool_].load();
    const PoolWord word(use.words[pool_].load());
    sum.used += word.used();
    sum.claimed += word.granted() + (word.is_invalidated() ? 0 : pending);
  });
  // Last: a charge that goes from a slot to a share meanwhile may count twice, but never not at
  // all.
  const uint64_t in_shares = shared().load();
  sum.used += in_shares;
  sum.claimed += in_shares;
  return sum;
}

uint64_t PageAccount::most_leased() const {
  return std::min(kMostLeased, usable() / kLeasesPerPool);
}

bool PageAccount::ask(uint64_t pages) {
  if (pages > usable()) return false;
  const MutexLock lock(asking_);
  // Another thread may have asked meanwhile.
  if (spend(pages)) return true;
  const uint64_t ahead = std::min(std::max(pages, own_used() / kPartAhead), most_leased());
  if (request(pages, ahead)) return true;
  if (!fits(used() + pages)) return false;
  revoke_leases();
  return request(pages, 0);
}

// Asks for pages, and for more of them ahead, which it does without where they do not fit.
bool PageAccount::request(uint64_t pages, uint64_t ahead) {
  std::atomic<uint64_t>& pending = slots_.own_use(device_).pending[pool_];
  // That was about what was pending before. Others may still set it because of that; then this
  // request fails for no reason, and charge_slow repeats it.
  own_word().fetch_and(~PoolWord::kInvalidated);
  pending.store(pages + ahead);
  US_KILL_POINT("request.pending");
  const uint64_t claimed = count().claimed;
  bool taken = false;
  if (fits(claimed)) {
    taken = take_granted(pages, ahead);
  } else if (claimed <= usable() + ahead) {
    taken = take_granted(pages, 0);
  }
  US_KILL_POINT("request.granted");
  pending.store(0);
  return taken;
}

bool PageAccount::take_granted(uint64_t pages, uint64_t ahead) {
  std::atomic<uint64_t>& word = own_word();
  uint64_t seen = word.load();
  while (!PoolWord(seen).is_invalidated()) {
    const PoolWord granted = PoolWord(seen).with_grant(pages, ahead, most_leased());
    if (word.compare_exchange_weak(seen, granted.word())) return true;
  }
  return false;
}

void PageAccount::credit(uint64_t pages) {
  std::atomic<uint64_t>& word = own_word();
  const uint64_t most = most_leased();
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(seen, PoolWord(seen).credited(pages, most).word())) {
  }
  US_INVARIANT(PoolWord(seen).used() >= pages || !slots_.has_own_slot(),
               "device %u was credited %llu pages more than it was charged", device_,
               static_cast<unsigned long long>(pages - PoolWord(seen).used()));
}

void PageAccount::credit_all(std::atomic<uint64_t>& remembered) {
  std::atomic<uint64_t>& word = own_word();
  uint64_t seen = word.load();
  uint64_t before = 0;
  do {
    const uint64_t used = PoolWord(seen).used();
    remembered.fetch_add(used - std::exchange(before, used));
  } while (!word.compare_exchange_weak(seen, PoolWord(seen).credited(before, 0).word()));
}

void PageAccount::revoke_leases() {
  for_each_use([&](DeviceUse& use) {
    std::atomic<uint64_t>& word = use.words[pool_];
    uint64_t seen = word.load();
    while (PoolWord(seen).leased() != 0) {
      if (!word.compare_exchange_weak(seen, PoolWord(seen).revoked().word())) continue;
      US_KILL_POINT("lease.revoked");
      return;
    }
  });
}

// What is pending and does not come to an end, because its process was stopped or killed, does not
// count any more.
void PageAccount::invalidate_pending() {
  for_each_use([&](DeviceUse& use) {
    if (use.pending[pool_].load() != 0) use.words[pool_].fetch_or(PoolWord::kInvalidated);
  });
}

bool PageAccount::charge_slow(std::span<const Demand> demands, ProcessSlots& slots,
                              Deadline deadline) {
  constexpr std::chrono::milliseconds kPatience(1);
  const auto all = [&](auto holds) { return std::all_of(demands.begin(), demands.end(), holds); };
  if (!all([](const Demand& each) { return each.pages <= each.account->usable(); })) return false;
  const LedgerLock lock(slots.mutex(), deadline);
  if (!lock.taken().ok()) return false;
  const auto all_fit = [&] {
    return all(
        [](const Demand& each) { return each.account->fits(each.account->used() + each.pages); });
  };
  if (!all_fit()) slots.reclaim();
  for (const Demand& each : demands) each.account->held_back().store(each.pages);
  US_KILL_POINT("charge.held_back");
  const Deadline patience_end = Clock::now() + kPatience;
  bool taken = false;
  while (all_fit()) {
    // What this process wants is among what is held back.
    if (all([](const Demand& each) { return each.account->fits(each.account->count().claimed); })) {
      for (const Demand& each : demands) each.account->own_word().fetch_add(each.pages);
      US_KILL_POINT("charge.taken");
      taken = true;
      break;
    }
    // Other processes see what is held back here, and give way; unless they are stopped or dead.
    for (const Demand& each : demands) each.account->revoke_leases();
    if (has_passed(patience_end)) {
      for (const Demand& each : demands) each.account->invalidate_pending();
    }
    pause_briefly();
  }
  for (const Demand& each : demands) each.account->held_back().store(0);
  return taken;
}

void PageAccount::clear(DeviceUse& use) {
  for (auto& word : use.words) word.store(0);
  for (auto& pending : use.pending) pending.store(0);
  use.peak.store(0);
}

}  // namespace understudy
