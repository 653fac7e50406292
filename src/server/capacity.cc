// SPDX-License-Identifier: Apache-2.0
#include "server/capacity.h"

#include <algorithm>
#include <utility>

#include "base/invariant.h"
#include "base/kill_point.h"
#include "base/pause.h"
#include "server/shortage.h"

namespace understudy {

namespace {

void raise_to(std::atomic<uint64_t>& peak, uint64_t value) {
  uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

Result<void> charge_or_explain(Capacity& capacity, const Charge& charge,
                               std::optional<Deadline> deadline) {
  if (capacity.charge(charge, deadline)) [[likely]]
    return {};
  return shortage(capacity, charge);
}

Capacity::Capacity(LedgerFile& file, ProcessSlots& slots, std::vector<int32_t> numbers)
    : file_(file),
      slots_(slots),
      figures_(slots),
      numbers_(std::move(numbers)),
      devices_(numbers_.size()) {
  slots.add_table(*this);
}

void Capacity::drop_holds(unsigned slot) {
  for (DeviceUse& device : file_.slot(slot).devices) {
    for (auto& word : device.words) word.store(0);
    device.peak.store(0);
  }
}

void Capacity::repair() {
  for (PoolWords& device : file_.header().held_back) {
    for (auto& word : device.words) word.store(0);
  }
}

std::optional<unsigned> Capacity::device_of(unsigned number) const {
  const auto found = std::find(numbers_.begin(), numbers_.end(), static_cast<int32_t>(number));
  if (found == numbers_.end()) return std::nullopt;
  return static_cast<unsigned>(found - numbers_.begin());
}

inline uint64_t Capacity::pages(unsigned number, unsigned pool, Count count) const {
  const LedgerHeader& header = file_.header();
  // First: a charge under the lock is in its slot before it is no longer held back.
  uint64_t sum = count == Count::kUsedAndPending ? header.held_back[number].words[pool].load() : 0;
  const ProcessSlot* const first = &file_.slot(0);
  const ProcessSlot* const end = first + header.slots.load();
  for (const ProcessSlot* slot = first; slot != end; ++slot) {
    const PoolWord word(slot->devices[number].words[pool].load());
    sum += word.used();
    if (count == Count::kUsedAndPending) sum += word.pending();
  }
  // Last: a charge that goes from a slot to a share meanwhile may count twice, but never not at
  // all.
  return sum + header.shared[number].words[pool].load();
}

uint64_t Capacity::application(const Device& device, uint64_t used) {
  const uint64_t pages = used + device.aside[0].load() + device.aside[1].load();
  return subtract_to_zero(pages * kNormalPage + device.shared.load(), device.tagged.load());
}

uint64_t Capacity::own_pages(unsigned device) const {
  const unsigned number = number_of(device);
  return PoolWord(own_word(number, 0).load()).used() + PoolWord(own_word(number, 1).load()).used();
}

inline bool Capacity::charge_pages(const Demand& demand, std::optional<Deadline> deadline) {
  if (!slots_.has_own_slot()) [[unlikely]]
    return false;
  const auto& [number, pool, pages, usable] = demand;
  // The pending charges of hundreds of threads at a time fit the word.
  constexpr uint64_t kMostPending = 16 * kGiB / kNormalPage;
  if (pages <= kMostPending) [[likely]] {
    // First pending, so that of two processes that want the last memory at least one sees the
    // other; then taken if all that is used and pending is there.
    std::atomic<uint64_t>& word = own_word(number, pool);
    word.fetch_add(PoolWord::pending_of(pages));
    US_KILL_POINT("charge.pending");
    const bool fits = this->pages(number, pool, Count::kUsedAndPending) <= usable;
    if (settle_pending(word, pages, fits)) [[likely]]
      return true;
  }
  const Demand asked = demand;  // a copy, so that the quick way needs none in memory
  return charge_slow({&asked, 1}, deadline.value_or(ledger_deadline()));
}

// Turns a pending charge into use, or takes it back. False if it was taken back, or did not count
// any more.
bool Capacity::settle_pending(std::atomic<uint64_t>& word, uint64_t pages, bool fits) {
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (true) {
    const bool takes = fits && !PoolWord(seen).is_invalidated();
    uint64_t settled = seen - PoolWord::pending_of(pages) + (takes ? pages : 0);
    // The last pending charge that did not count leaves a word that is as good as new.
    if (!PoolWord(settled).has_pending()) settled &= ~PoolWord::kInvalidated;
    if (word.compare_exchange_weak(seen, settled)) return takes;
  }
}

// Pending charges that do not come to an end, because their process was stopped or killed, do not
// count any more.
void Capacity::invalidate_pending(unsigned number, unsigned pool) {
  const uint32_t slots = file_.header().slots.load();
  for (unsigned slot = 0; slot < slots; ++slot) {
    std::atomic<uint64_t>& word = file_.slot(slot).devices[number].words[pool];
    uint64_t seen = word.load();
    while (PoolWord(seen).has_pending() && !PoolWord(seen).is_invalidated() &&
           !word.compare_exchange_weak(seen, seen | PoolWord::kInvalidated)) {
    }
  }
}

// Whether there is room for what is used and, if it is counted, pending. What this process wants
// is either among the pending pages, because it is held back, or comes on top.
bool Capacity::fit(std::span<const Demand> demands, Count count) const {
  return std::all_of(demands.begin(), demands.end(), [&](const Demand& each) {
    const uint64_t wanted = count == Count::kUsed ? each.pages : 0;
    return pages(each.number, each.pool, count) + wanted <= each.usable;
  });
}

// When memory is short, or when several charges are to succeed together: what dead processes had
// comes first, and pending charges of others do not count in the end. One at a time.
bool Capacity::charge_slow(std::span<const Demand> demands, Deadline deadline) {
  constexpr std::chrono::milliseconds kPatience(1);
  for (const Demand& each : demands) {
    if (each.pages > each.usable) return false;
  }
  const LedgerLock lock(slots_.mutex(), deadline);
  if (!lock.taken().ok()) return false;
  for (const Demand& each : demands) {
    if (pages(each.number, each.pool, Count::kUsedAndPending) + each.pages > each.usable) {
      slots_.reclaim();
      break;
    }
  }
  const auto held_back = [&](const Demand& each) -> std::atomic<uint64_t>& {
    return file_.header().held_back[each.number].words[each.pool];
  };
  for (const Demand& each : demands) held_back(each).store(each.pages);
  US_KILL_POINT("charge.held_back");
  const Deadline patience_end = Clock::now() + kPatience;
  bool taken = false;
  while (fit(demands, Count::kUsed)) {
    if (fit(demands, Count::kUsedAndPending)) {
      for (const Demand& each : demands) own_word(each.number, each.pool).fetch_add(each.pages);
      US_KILL_POINT("charge.taken");
      taken = true;
      break;
    }
    // Other processes see what is held back here, and give way; unless they are stopped or dead.
    if (has_passed(patience_end)) {
      for (const Demand& each : demands) invalidate_pending(each.number, each.pool);
    }
    pause_briefly();
  }
  for (const Demand& each : demands) held_back(each).store(0);
  return taken;
}

bool Capacity::charge(const Charge& charge, std::optional<Deadline> deadline) {
  Device& device = devices_[charge.device];
  const bool is_tagged = charge.module != kApplicationModule;
  if (is_tagged) [[unlikely]] {
    // First of all, and when credited last of all: bytes of a module are never the application's.
    device.tag_changes.fetch_add(1);
    device.tagged.fetch_add(charge.bytes);
  }
  const uint64_t changes = device.tag_changes.load();
  const Demand demand =
      demand_of(charge.device, pool_of(charge.kind), normal_pages_of(charge.bytes));
  if (!charge_pages(demand, deadline)) [[unlikely]] {
    if (is_tagged) device.tagged.fetch_sub(charge.bytes);
    return false;
  }
  const uint64_t used = note_charged(demand.number);
  if (is_tagged) [[unlikely]] {
    Tagged& module = device.modules[charge.module];
    raise_to(module.peak,
             module.current.fetch_add(charge.bytes, std::memory_order_relaxed) + charge.bytes);
    return true;
  }
  const uint64_t now = application(device, used);
  // The figures belong together only if no module was charged or credited meanwhile. The
  // application has what it was charged just now in any case.
  const bool is_known = device.tag_changes.load() == changes;
  raise_to(device.application_peak, is_known ? std::max(now, charge.bytes) : charge.bytes);
  return true;
}

uint64_t Capacity::note_charged(unsigned number) const {
  DeviceUse& own = slots_.own().devices[number];
  const uint64_t used = PoolWord(own.words[0].load()).used() + PoolWord(own.words[1].load()).used();
  raise_to(own.peak, used);
  figures_.count_charge(number);
  return used;
}

void Capacity::credit(const Charge& charge) {
  // Unless others took this process for dead: they gave its charges back, and its slot to another.
  if (slots_.has_own_slot()) [[likely]] {
    uint64_t pages = normal_pages_of(charge.bytes);
    if (has_aside_.load(std::memory_order_relaxed)) [[unlikely]]
      pages -= take_from_aside(charge.device, pool_of(charge.kind), pages);
    const PoolWord before(
        own_word(number_of(charge.device), pool_of(charge.kind)).fetch_sub(pages));
    US_INVARIANT(before.used() >= pages || !slots_.has_own_slot(),
                 "device %u was credited %llu pages more than it was charged", charge.device,
                 static_cast<unsigned long long>(pages - before.used()));
  }
  untag(charge);
}

// ---- Memory of the host ----

bool Capacity::charge_host_window(uint64_t bytes) {
  const uint64_t usable = file_.header().shape.host_window / kNormalPage;
  return charge_pages({kHostWindow, 0, normal_pages_of(bytes), usable}, std::nullopt);
}

void Capacity::credit_host_window(uint64_t bytes) {
  if (slots_.has_own_slot()) own_word(kHostWindow, 0).fetch_sub(normal_pages_of(bytes));
}

PoolFigures Capacity::host_window() const {
  const uint64_t total = file_.header().shape.host_window;
  return {subtract_to_zero(total, pages(kHostWindow, 0, Count::kUsed) * kNormalPage), total};
}

// ---- Set aside ----

uint64_t Capacity::charged() const {
  uint64_t pages = 0;
  for (unsigned device = 0; device < devices_.size(); ++device) pages += own_pages(device);
  return pages * kNormalPage;
}

void Capacity::set_aside() {
  if (!slots_.has_own_slot()) return;  // others gave it back already
  has_aside_.store(true);
  for (unsigned device = 0; device < devices_.size(); ++device) {
    for (unsigned pool = 0; pool < kPools; ++pool) {
      std::atomic<uint64_t>& word = own_word(number_of(device), pool);
      // First remembered, so that what is credited from now on is found there.
      uint64_t seen = word.load();
      uint64_t remembered = 0;
      do {
        const uint64_t used = PoolWord(seen).used();
        devices_[device].aside[pool].fetch_add(used - std::exchange(remembered, used));
      } while (!word.compare_exchange_weak(seen, seen - remembered));
      US_KILL_POINT("aside.given_back");
    }
  }
}

bool Capacity::bring_back(std::optional<Deadline> deadline) {
  std::array<Demand, kMaxDevices * kPools> demands;
  size_t count = 0;
  for (unsigned device = 0; device < devices_.size(); ++device) {
    for (unsigned pool = 0; pool < kPools; ++pool) {
      const uint64_t pages = devices_[device].aside[pool].load();
      if (pages > 0) demands[count++] = demand_of(device, pool, pages);
    }
  }
  if (count > 0) {
    if (!slots_.has_own_slot()) return false;
    if (!charge_slow({demands.data(), count}, deadline.value_or(ledger_deadline()))) return false;
  }
  for (Device& device : devices_) {
    for (auto& aside : device.aside) aside.store(0);
  }
  has_aside_.store(false);
  return true;
}

// Pages that were not charged need not be credited: of a process that ends while its memory is set
// aside. Returns how many of them were not.
uint64_t Capacity::take_from_aside(unsigned device, unsigned pool, uint64_t pages) {
  std::atomic<uint64_t>& aside = devices_[device].aside[pool];
  uint64_t seen = aside.load();
  while (!aside.compare_exchange_weak(seen, seen - std::min(seen, pages))) {
  }
  return std::min(seen, pages);
}

void Capacity::untag(const Charge& charge) {
  if (charge.module == kApplicationModule) return;
  Device& device = devices_[charge.device];
  device.modules[charge.module].current.fetch_sub(charge.bytes, std::memory_order_relaxed);
  device.tag_changes.fetch_add(1);
  device.tagged.fetch_sub(charge.bytes);
}

void Capacity::note_shared(const Charge& charge) {
  devices_[charge.device].shared.fetch_add(charge.bytes);
}

void Capacity::note_share_ended(const Charge& charge) {
  devices_[charge.device].shared.fetch_sub(charge.bytes);
  untag(charge);
}

PoolFigures Capacity::figures(unsigned device, PageKind kind,
                              std::optional<Deadline> deadline) const {
  const Deadline end = deadline.value_or(ledger_deadline());
  slots_.reclaim_if_any(end);
  const unsigned number = number_of(device);
  const unsigned pool = pool_of(kind);
  const std::atomic<uint64_t>& changes = file_.header().changes;
  uint64_t used = 0;
  while (true) {
    const uint64_t before = changes.load();
    used = pages(number, pool, Count::kUsed);
    if (before % 2 == 0 && changes.load() == before) break;
    // The process that changes it has the lock, unless it died then: the lock repairs it.
    if (before % 2 != 0 && !LedgerLock(slots_.mutex(), end).taken().ok()) break;
  }
  if (shows_set_aside_.load())
    used = subtract_to_zero(used, PoolWord(own_word(number, pool).load()).used());
  const uint64_t total = file_.header().shape.pages(pool) * kNormalPage;
  const uint64_t free = subtract_to_zero(usable_pages(pool), used) * kNormalPage;
  if (kind != PageKind::kGiant) return {free, total};
  return {align_down(free, kGiantPage), align_down(total, kGiantPage)};
}

Capacity::Holder Capacity::largest_holder(unsigned device) const {
  const unsigned number = number_of(device);
  const LedgerHeader& header = file_.header();
  const auto shared = [&](unsigned pool) { return header.shared[number].words[pool].load(); };
  Holder largest{.bytes = (shared(0) + shared(1)) * kNormalPage};
  for (unsigned slot = 0; slot < slots_.count(); ++slot) {
    const DeviceUse& pools = file_.slot(slot).devices[number];
    const uint64_t bytes =
        (PoolWord(pools.words[0].load()).used() + PoolWord(pools.words[1].load()).used()) *
        kNormalPage;
    if (bytes <= largest.bytes) continue;
    largest = {slots_.process_id(slots_.tag_of(slot)), slot == slots_.own_slot(), bytes};
  }
  return largest;
}

std::vector<ModuleUsage> Capacity::usage(unsigned device) const {
  const Device& pools = devices_[device];
  std::vector<ModuleUsage> found;
  for (unsigned module = 0; module < kModules; ++module) {
    const Tagged& tagged = pools.modules[module];
    ModuleUsage one{static_cast<uint8_t>(module), tagged.current.load(std::memory_order_relaxed),
                    tagged.peak.load(std::memory_order_relaxed)};
    if (module == kApplicationModule) {
      one.current = application(pools, own_pages(device));
      one.peak = pools.application_peak.load(std::memory_order_relaxed);
    }
    if (one.peak != 0) found.push_back(one);
  }
  return found;
}

}  // namespace understudy
