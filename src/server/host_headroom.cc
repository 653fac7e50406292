// SPDX-License-Identifier: Apache-2.0
#include "server/host_headroom.h"

#include <algorithm>
#include <optional>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "base/sizes.h"

namespace understudy {

namespace {

// A grant is spent without another look at the host, which programs outside the server change as
// well: it is short-lived, and far smaller than what is kept free.
constexpr uint32_t kGrantMilliseconds = 100;
constexpr uint64_t kMaxGrant = 64 * kMiB;
constexpr uint64_t kGrantsPerReserve = 4;
constexpr uint64_t kGrantsPerSpare = 4;
static_assert(kMaxGrant / kNormalPage < uint64_t{1} << GrantWord::kPageBits);

constexpr uint64_t kMinReserve = 32 * kMiB;
constexpr uint64_t kMaxReserve = kGiB;

bool has_expired(GrantWord grant, uint32_t now) {
  return static_cast<int32_t>(now - grant.expiry) >= 0;
}

}  // namespace

uint64_t HostHeadroom::reserve_of(uint64_t total) {
  if (total == platform::kUnknownMemory) return 0;
  // A small cgroup keeps no more than a quarter.
  return std::min(std::clamp(align_down(total / 32, kMiB), kMinReserve, kMaxReserve), total / 4);
}

HostHeadroom::HostHeadroom(HostHeadroomWords& words, const HostProbe& probe)
    : words_(words), probe_(probe) {
  publish_in_flight();
}

void HostHeadroom::publish_in_flight() {
  words_.in_flight[probe_.own_slot()].store(InFlightWord{in_flight_, grant_}.pack());
}

Result<void> HostHeadroom::take(uint64_t bytes) {
  const uint64_t pages = normal_pages_of(bytes);
  // Before the grant gets smaller: a process that measures reads the grant first and then what is
  // in flight, so that it sees this take in one of them.
  in_flight_ += pages;
  publish_in_flight();
  ScopeExit undo([&] { note_committed(bytes); });
  if (!try_take_granted(pages)) US_TRY(measure_and_take(pages));
  undo.dismiss();
  return {};
}

void HostHeadroom::note_committed(uint64_t bytes) {
  in_flight_ -= normal_pages_of(bytes);
  publish_in_flight();
}

bool HostHeadroom::try_take_granted(uint64_t pages) {
  if (grant_ == InFlightWord::kNoGrant) return false;
  std::atomic<uint64_t>& word = words_.grants[grant_].word;
  uint64_t seen = word.load();
  while (true) {
    GrantWord grant = GrantWord::unpack(seen);
    if (grant.pages < pages || has_expired(grant, probe_.milliseconds())) return false;
    grant.pages -= static_cast<uint32_t>(pages);
    if (word.compare_exchange_weak(seen, grant.pack())) return true;
  }
}

Result<void> HostHeadroom::measure_and_take(uint64_t pages) {
  while (true) {
    std::array<GrantWord, HostHeadroomWords::kGrants> before;
    for (unsigned i = 0; i < before.size(); ++i) {
      before[i] = GrantWord::unpack(words_.grants[i].word.load());
    }
    const Spare spare = measure(pages);
    const auto refuse = [&] {
      return Error::format(ErrorCode::kOutOfMemory,
                           "the %s has %s available and keeps %s of it, too little for %s",
                           spare.limit.id == 0 ? "host" : "memory cgroup",
                           SizeText(align_down(spare.limit.available, kMiB)).c_str(),
                           SizeText(spare.reserve).c_str(), SizeText(pages * kNormalPage).c_str());
    };
    if (pages > spare.pages) return refuse();
    const unsigned index = find_or_add_grant(spare.limit.id);
    if (index != grant_) {
      grant_ = index;
      publish_in_flight();
    }
    if (index == InFlightWord::kNoGrant) return {};

    std::atomic<uint64_t>& word = words_.grants[index].word;
    uint64_t seen = word.load();
    while (GrantWord::unpack(seen).sequence == before[index].sequence) {
      // What others took from the old grant meanwhile may or may not be in the figures.
      const uint64_t taken = subtract_to_zero(before[index].pages, GrantWord::unpack(seen).pages);
      if (pages + taken > spare.pages) return refuse();
      const uint64_t most = std::min(kMaxGrant, spare.reserve / kGrantsPerReserve) / kNormalPage;
      const GrantWord next{
          (before[index].sequence + 1) & ((1U << GrantWord::kSequenceBits) - 1),
          probe_.milliseconds() + kGrantMilliseconds,
          static_cast<uint32_t>(std::min(most, (spare.pages - pages - taken) / kGrantsPerSpare))};
      if (word.compare_exchange_weak(seen, next.pack())) return {};
    }
    // Another process measured at the same time: its grant may do, or this one measures again.
    if (try_take_granted(pages)) return {};
  }
}

HostHeadroom::Spare HostHeadroom::measure(uint64_t pages) const {
  // Before the host is asked: what is committed in between counts twice rather than not at all.
  std::array<uint64_t, HostHeadroomWords::kSlots> in_flight;
  for (unsigned slot = 0; slot < in_flight.size(); ++slot) {
    in_flight[slot] = words_.in_flight[slot].load();
  }
  std::optional<Spare> closest;
  for (const platform::MemoryLimit& limit : probe_.limits()) {
    const uint64_t reserve = reserve_of(limit.total);
    const uint64_t taken = in_flight_ - pages + in_flight_of_others(in_flight, limit);
    const uint64_t spare =
        subtract_to_zero(subtract_to_zero(limit.available, reserve) / kNormalPage, taken);
    if (!closest || spare < closest->pages) closest = {limit, reserve, spare};
  }
  return *closest;
}

uint64_t HostHeadroom::in_flight_of_others(
    const std::array<uint64_t, HostHeadroomWords::kSlots>& seen,
    const platform::MemoryLimit& limit) const {
  const unsigned grant = find_grant(limit.id);
  uint64_t pages = 0;
  for (unsigned slot = 0; slot < seen.size(); ++slot) {
    const InFlightWord word = InFlightWord::unpack(seen[slot]);
    if (word.pages == 0 || slot == probe_.own_slot()) continue;
    // The machine is the limit of all; of a cgroup that has no grant nothing is known.
    const bool below = limit.id == 0 || word.grant == grant;
    if (below && probe_.is_alive(slot)) pages += word.pages;
  }
  return pages;
}

unsigned HostHeadroom::find_grant(uint64_t limit) const {
  if (limit == 0) return 0;
  for (unsigned i = 1; i < HostHeadroomWords::kGrants; ++i) {
    if (words_.grants[i].limit.load() == limit) return i;
  }
  return InFlightWord::kNoGrant;
}

unsigned HostHeadroom::find_or_add_grant(uint64_t limit) {
  if (limit == 0) return 0;
  for (unsigned i = 1; i < HostHeadroomWords::kGrants; ++i) {
    uint64_t seen = words_.grants[i].limit.load();
    if (seen == 0 && words_.grants[i].limit.compare_exchange_strong(seen, limit)) return i;
    if (seen == limit) return i;
  }
  return InFlightWord::kNoGrant;
}

}  // namespace understudy
