// SPDX-License-Identifier: Apache-2.0
#include "device/capacity.h"

#include <algorithm>
#include <utility>

#include "base/invariant.h"
#include "base/pause.h"
#include "base/size_text.h"

namespace understudy {

namespace {

void raise_to(std::atomic<uint64_t>& peak, uint64_t value) {
  uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

uint64_t pages_of(uint64_t bytes) { return bytes / kNormalPage + (bytes % kNormalPage != 0); }

// Never below 0: another thread may be between its two counters.
uint64_t less(uint64_t all, uint64_t part) { return all - std::min(all, part); }

}  // namespace

Result<void> charge_or_explain(Capacity& capacity, const Charge& charge) {
  if (capacity.charge(charge)) [[likely]]
    return {};
  const PoolFigures figures = capacity.figures(charge.device, charge.kind);
  return Error::format(ErrorCode::kOutOfMemory, "device %u has %s of %s in %s pages free, not %s",
                       charge.device, SizeText(figures.free).c_str(),
                       SizeText(figures.total).c_str(), name_of(charge.kind),
                       SizeText(charge.bytes).c_str());
}

Capacity::Capacity(Ledger& ledger, std::vector<int32_t> numbers)
    : ledger_(ledger), numbers_(std::move(numbers)), devices_(numbers_.size()) {}

std::optional<unsigned> Capacity::device_of(unsigned number) const {
  const auto found = std::find(numbers_.begin(), numbers_.end(), static_cast<int32_t>(number));
  if (found == numbers_.end()) return std::nullopt;
  return static_cast<unsigned>(found - numbers_.begin());
}

uint64_t Capacity::total_pages(unsigned pool) const {
  const ServerShape& shape = ledger_.shape();
  return (pool == 0 ? shape.normal_memory : shape.memory - shape.normal_memory) / kNormalPage;
}

uint64_t Capacity::pages(unsigned number, unsigned pool, Count count) const {
  const LedgerHeader& header = ledger_.header();
  // First: a charge under the lock is in its slot before it is no longer held back.
  uint64_t sum = count == Count::kUsedAndAsked ? header.held_back[number].words[pool].load() : 0;
  const uint32_t slots = header.slots.load();
  for (unsigned slot = 0; slot < slots; ++slot) {
    const PoolWord word(ledger_.slot(slot).devices[number].words[pool].load());
    sum += word.used();
    if (count == Count::kUsedAndAsked) sum += word.asked();
  }
  // Last: a charge that goes from a slot to a share meanwhile may count twice, but never not at
  // all.
  return sum + header.shared[number].words[pool].load();
}

uint64_t Capacity::application(unsigned device) const {
  const Device& own = devices_[device];
  const unsigned number = number_of(device);
  const uint64_t pages =
      PoolWord(own_word(number, 0).load()).used() + PoolWord(own_word(number, 1).load()).used();
  return less(pages * kNormalPage + own.shared.load(), own.tagged.load());
}

bool Capacity::charge_pool(const Charge& charge) {
  if (!ledger_.has_own_slot()) [[unlikely]]
    return false;
  const unsigned number = number_of(charge.device);
  const unsigned pool = pool_of(charge.kind);
  const uint64_t pages = pages_of(charge.bytes);
  // The asks of hundreds of threads at a time fit the word.
  constexpr uint64_t kMostAsked = 16 * kGiB / kNormalPage;
  if (pages <= kMostAsked) [[likely]] {
    // First asked for, so that of two who want the last memory at least one sees the other; then
    // taken if all that is used and asked for is there.
    std::atomic<uint64_t>& word = own_word(number, pool);
    word.fetch_add(PoolWord::asking(pages));
    const bool fits = this->pages(number, pool, Count::kUsedAndAsked) <= total_pages(pool);
    if (settle_ask(word, pages, fits)) [[likely]]
      return true;
  }
  return charge_carefully(number, pool, pages);
}

// Turns an ask into use, or takes it back. False if it was taken back, or did not count any more.
bool Capacity::settle_ask(std::atomic<uint64_t>& word, uint64_t pages, bool fits) {
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (true) {
    const bool takes = fits && !PoolWord(seen).is_void();
    uint64_t settled = seen - PoolWord::asking(pages) + (takes ? pages : 0);
    // The last one whose ask did not count leaves a word that is as good as new.
    if (!PoolWord(settled).has_asks()) settled &= ~PoolWord::kVoid;
    if (word.compare_exchange_weak(seen, settled)) return takes;
  }
}

// Asks that do not come to an end, because who asks was stopped or killed, do not count any more.
void Capacity::void_asks(unsigned number, unsigned pool) {
  const uint32_t slots = ledger_.header().slots.load();
  for (unsigned slot = 0; slot < slots; ++slot) {
    std::atomic<uint64_t>& word = ledger_.slot(slot).devices[number].words[pool];
    uint64_t seen = word.load();
    while (PoolWord(seen).has_asks() && !PoolWord(seen).is_void() &&
           !word.compare_exchange_weak(seen, seen | PoolWord::kVoid)) {
    }
  }
}

// When memory is short: what dead processes had comes first, and others who only asked do not
// count in the end. One at a time.
bool Capacity::charge_carefully(unsigned number, unsigned pool, uint64_t pages) {
  constexpr std::chrono::milliseconds kPatience(1);
  const uint64_t total = total_pages(pool);
  if (pages > total) return false;
  const Result<LedgerLock> lock = ledger_.lock();
  if (!lock.ok()) return false;
  if (this->pages(number, pool, Count::kUsedAndAsked) + pages > total) {
    ledger_.reclaim(lock.value());
  }
  std::atomic<uint64_t>& held_back = ledger_.header().held_back[number].words[pool];
  held_back.store(pages);
  const Deadline deadline = Clock::now() + kPatience;
  bool taken = false;
  while (this->pages(number, pool, Count::kUsed) + pages <= total) {
    if (this->pages(number, pool, Count::kUsedAndAsked) <= total) {
      own_word(number, pool).fetch_add(pages);
      taken = true;
      break;
    }
    // Whoever asks sees what is held back here, and gives way; unless it is stopped or dead.
    if (has_passed(deadline)) void_asks(number, pool);
    pause_briefly();
  }
  held_back.store(0);
  return taken;
}

bool Capacity::charge(const Charge& charge) {
  Device& device = devices_[charge.device];
  if (charge.module == kApplicationModule) [[likely]] {
    const uint64_t changes = device.tag_changes.load();
    if (!charge_pool(charge)) return false;
    const uint64_t now = application(charge.device);
    // The figures belong together only if no module was charged or credited meanwhile.
    if (device.tag_changes.load() == changes) raise_to(device.application_peak, now);
    return true;
  }
  // First of all, and when credited last of all: bytes of a module are never the application's.
  device.tag_changes.fetch_add(1);
  device.tagged.fetch_add(charge.bytes);
  if (!charge_pool(charge)) {
    device.tagged.fetch_sub(charge.bytes);
    return false;
  }
  Tagged& module = device.modules[charge.module];
  raise_to(module.peak,
           module.current.fetch_add(charge.bytes, std::memory_order_relaxed) + charge.bytes);
  return true;
}

void Capacity::credit(const Charge& charge) {
  // Unless others took this process for dead: they gave its charges back, and its slot to another.
  if (ledger_.has_own_slot()) [[likely]] {
    const uint64_t pages = pages_of(charge.bytes);
    const PoolWord before(
        own_word(number_of(charge.device), pool_of(charge.kind)).fetch_sub(pages));
    US_INVARIANT(before.used() >= pages || !ledger_.has_own_slot(),
                 "device %u was credited %llu pages more than it was charged", charge.device,
                 static_cast<unsigned long long>(pages - before.used()));
  }
  untag(charge);
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

PoolFigures Capacity::figures(unsigned device, PageKind kind) const {
  ledger_.reclaim_if_any();
  const unsigned number = number_of(device);
  const unsigned pool = pool_of(kind);
  const std::atomic<uint64_t>& changes = ledger_.header().changes;
  uint64_t used = 0;
  while (true) {
    const uint64_t before = changes.load();
    used = pages(number, pool, Count::kUsed);
    if (before % 2 == 0 && changes.load() == before) break;
    // Whoever changes it has the lock, unless it died then: the lock repairs it.
    if (before % 2 != 0 && !ledger_.lock().ok()) break;
  }
  const uint64_t total = total_pages(pool) * kNormalPage;
  const uint64_t free = less(total, used * kNormalPage);
  if (kind != PageKind::kGiant) return {free, total};
  return {align_down(free, kGiantPage), align_down(total, kGiantPage)};
}

std::vector<ModuleUsage> Capacity::usage(unsigned device) const {
  const Device& pools = devices_[device];
  std::vector<ModuleUsage> found;
  for (unsigned module = 0; module < kModules; ++module) {
    const Tagged& tagged = pools.modules[module];
    ModuleUsage one{static_cast<uint8_t>(module), tagged.current.load(std::memory_order_relaxed),
                    tagged.peak.load(std::memory_order_relaxed)};
    if (module == kApplicationModule) {
      one.current = application(device);
      one.peak = pools.application_peak.load(std::memory_order_relaxed);
    }
    if (one.peak != 0) found.push_back(one);
  }
  return found;
}

}  // namespace understudy
