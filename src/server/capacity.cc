// SPDX-License-Identifier: Apache-2.0
#include "server/capacity.h"

#include <algorithm>
#include <utility>

#include "base/kill_point.h"
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
      host_window_(file, slots, kHostWindow, 0) {
  for (const int32_t number : numbers_) {
    devices_.emplace_back(file, slots, static_cast<unsigned>(number));
  }
  slots.add_table(*this);
}

void Capacity::drop_holds(unsigned slot) {
  for (unsigned device = 0; device < file_.header().shape.devices; ++device) {
    PageAccount::clear(file_.use(slot, device));
  }
  PageAccount::clear(file_.use(slot, kHostWindow));
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

uint64_t Capacity::application(const Device& device, uint64_t used) {
  const uint64_t pages = used + device.aside[0].load() + device.aside[1].load();
  return subtract_to_zero(pages * kNormalPage + device.shared.load(), device.tagged.load());
}

inline bool Capacity::charge_pages(PageAccount& account, uint64_t pages,
                                   std::optional<Deadline> deadline) {
  if (!slots_.has_own_slot()) [[unlikely]]
    return false;
  if (account.charge(pages)) [[likely]]
    return true;
  const PageAccount::Demand demand{&account, pages};
  return PageAccount::charge_slow({&demand, 1}, slots_, deadline.value_or(ledger_deadline()));
}

// Unless others took this process for dead: they gave its charges back, and its slot to another.
inline void Capacity::credit_pages(PageAccount& account, uint64_t pages) {
  if (slots_.has_own_slot()) [[likely]]
    account.credit(pages);
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
  PageAccount& account = device.accounts[pool_of(charge.kind)];
  if (!charge_pages(account, normal_pages_of(charge.bytes), deadline)) [[unlikely]] {
    if (is_tagged) device.tagged.fetch_sub(charge.bytes);
    return false;
  }
  const uint64_t used = note_charged(charge.device);
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

uint64_t Capacity::note_charged(unsigned device) const {
  const unsigned number = number_of(device);
  const uint64_t used = own_pages(device);
  raise_to(slots_.own_use(number).peak, used);
  figures_.count_charge(number);
  return used;
}

void Capacity::credit(const Charge& charge) {
  const unsigned pool = pool_of(charge.kind);
  uint64_t pages = normal_pages_of(charge.bytes);
  if (has_aside_.load(std::memory_order_relaxed)) [[unlikely]]
    pages -= take_from_aside(charge.device, pool, pages);
  credit_pages(devices_[charge.device].accounts[pool], pages);
  untag(charge);
}

// ---- Memory of the host ----

bool Capacity::charge_host_window(uint64_t bytes) {
  return charge_pages(host_window_, normal_pages_of(bytes), std::nullopt);
}

void Capacity::credit_host_window(uint64_t bytes) {
  credit_pages(host_window_, normal_pages_of(bytes));
}

PoolFigures Capacity::host_window() const {
  const uint64_t total = file_.header().shape.host_window;
  return {subtract_to_zero(total, host_window_.used() * kNormalPage), total};
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
  for (Device& device : devices_) {
    for (unsigned pool = 0; pool < kPools; ++pool) {
      // First remembered, so that what is credited from now on is found there.
      device.accounts[pool].credit_all(device.aside[pool]);
      US_KILL_POINT("aside.given_back");
    }
  }
}

bool Capacity::bring_back(std::optional<Deadline> deadline) {
  std::array<PageAccount::Demand, kMaxDevices * kPools> demands;
  size_t count = 0;
  for (Device& device : devices_) {
    for (unsigned pool = 0; pool < kPools; ++pool) {
      const uint64_t pages = device.aside[pool].load();
      if (pages > 0) demands[count++] = {&device.accounts[pool], pages};
    }
  }
  if (count > 0) {
    if (!slots_.has_own_slot()) return false;
    const Deadline end = deadline.value_or(ledger_deadline());
    if (!PageAccount::charge_slow({demands.data(), count}, slots_, end)) return false;
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

PoolFigures Capacity::figures(unsigned device, std::span<const PageKind> kinds,
                              std::optional<Deadline> deadline) const {
  const Deadline end = deadline.value_or(ledger_deadline());
  slots_.reclaim_if_any(end);
  const std::atomic<uint64_t>& changes = file_.header().changes;
  while (true) {
    const uint64_t before = changes.load();
    PoolFigures sum;
    for (const PageKind kind : kinds) {
      const PoolFigures each = figures_now(device, kind);
      sum.free += each.free;
      sum.total += each.total;
    }
    if (before % 2 == 0 && changes.load() == before) return sum;
    // The process that changes it has the lock, unless it died then: the lock repairs it.
    if (before % 2 != 0 && !LedgerLock(slots_.mutex(), end).taken().ok()) return sum;
  }
}

PoolFigures Capacity::figures_now(unsigned device, PageKind kind) const {
  const unsigned pool = pool_of(kind);
  const PageAccount& account = devices_[device].accounts[pool];
  uint64_t used = account.used();
  if (shows_set_aside_.load()) used = subtract_to_zero(used, account.own_used());
  const uint64_t total = file_.header().shape.pages(pool) * kNormalPage;
  const uint64_t free = subtract_to_zero(account.usable(), used) * kNormalPage;
  if (kind != PageKind::kGiant) return {free, total};
  return {align_down(free, kGiantPage), align_down(total, kGiantPage)};
}

Capacity::Holder Capacity::largest_holder(unsigned device) const {
  const unsigned number = number_of(device);
  const LedgerHeader& header = file_.header();
  const auto shared = [&](unsigned pool) { return header.shared[number].words[pool].load(); };
  Holder largest{.bytes = (shared(0) + shared(1)) * kNormalPage};
  for (unsigned slot = 0; slot < slots_.count(); ++slot) {
    const auto& words = file_.use(slot, number).words;
    const uint64_t bytes =
        (PoolWord(words[0].load()).used() + PoolWord(words[1].load()).used()) * kNormalPage;
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
