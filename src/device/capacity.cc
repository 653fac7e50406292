// SPDX-License-Identifier: Apache-2.0
#include "device/capacity.h"

#include <algorithm>

#include "base/invariant.h"
#include "base/size_text.h"

namespace understudy {

namespace {

void raise_to(std::atomic<uint64_t>& peak, uint64_t value) {
  uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// Never below 0: another thread may be between its two counters.
uint64_t less(uint64_t all, uint64_t part) { return all - std::min(all, part); }

}  // namespace

Result<void> charge_or_explain(CapacityLedger& ledger, const Charge& charge) {
  if (ledger.charge(charge)) [[likely]]
    return {};
  const PoolFigures figures = ledger.figures(charge.device, charge.kind);
  return Error::format(ErrorCode::kOutOfMemory, "device %u has %s of %s in %s pages free, not %s",
                       charge.device, SizeText(figures.free).c_str(),
                       SizeText(figures.total).c_str(), name_of(charge.kind),
                       SizeText(charge.bytes).c_str());
}

LocalCapacity::LocalCapacity(unsigned devices, uint64_t normal, uint64_t huge)
    : normal_(normal), huge_(huge), devices_(devices) {}

uint64_t LocalCapacity::Device::application() const {
  return less(normal.load(std::memory_order_relaxed) + huge.load(std::memory_order_relaxed),
              tagged.load(std::memory_order_relaxed));
}

bool LocalCapacity::charge(const Charge& charge) {
  Device& device = devices_[charge.device];
  if (charge.module == kApplicationModule) [[likely]]
    return charge_application(device, charge);
  // First of all, and when credited last of all: bytes of a module are never the application's.
  device.tag_changes.fetch_add(1);
  device.tagged.fetch_add(charge.bytes);
  uint64_t used_now = 0;
  if (!charge_pool(device, charge, used_now)) {
    device.tagged.fetch_sub(charge.bytes);
    return false;
  }
  Tagged& module = device.modules[charge.module];
  raise_to(module.peak,
           module.current.fetch_add(charge.bytes, std::memory_order_relaxed) + charge.bytes);
  return true;
}

bool LocalCapacity::charge_pool(Device& device, const Charge& charge, uint64_t& used_now) const {
  std::atomic<uint64_t>& counter = used(device, charge.kind);
  uint64_t before = counter.load(std::memory_order_relaxed);
  do {
    if (charge.bytes > total(charge.kind) - before) return false;
  } while (!counter.compare_exchange_weak(before, before + charge.bytes));
  used_now = before + charge.bytes;
  return true;
}

bool LocalCapacity::charge_application(Device& device, const Charge& charge) const {
  const uint64_t changes = device.tag_changes.load();
  uint64_t used_now = 0;
  if (!charge_pool(device, charge, used_now)) return false;
  const auto& other = charge.kind == PageKind::kNormal ? device.huge : device.normal;
  const uint64_t all = used_now + other.load(std::memory_order_relaxed);
  const uint64_t application = less(all, device.tagged.load());
  // The two figures belong together only if no module was charged or credited meanwhile.
  if (device.tag_changes.load() == changes) raise_to(device.application_peak, application);
  return true;
}

void LocalCapacity::credit(const Charge& charge) {
  Device& device = devices_[charge.device];
  const uint64_t before = used(device, charge.kind).fetch_sub(charge.bytes);
  US_INVARIANT(before >= charge.bytes, "device %u was credited %llu bytes more than it was charged",
               charge.device, static_cast<unsigned long long>(charge.bytes - before));
  if (charge.module == kApplicationModule) return;
  device.modules[charge.module].current.fetch_sub(charge.bytes, std::memory_order_relaxed);
  device.tag_changes.fetch_add(1);
  device.tagged.fetch_sub(charge.bytes);
}

PoolFigures LocalCapacity::figures(unsigned device, PageKind kind) const {
  const Device& pools = devices_[device];
  const std::atomic<uint64_t>& taken = kind == PageKind::kNormal ? pools.normal : pools.huge;
  const uint64_t free = total(kind) - taken.load(std::memory_order_relaxed);
  if (kind == PageKind::kGiant) {
    return {align_down(free, kGiantPage), align_down(total(kind), kGiantPage)};
  }
  return {free, total(kind)};
}

std::vector<ModuleUsage> LocalCapacity::usage(unsigned device) const {
  const Device& pools = devices_[device];
  std::vector<ModuleUsage> found;
  for (unsigned module = 0; module < kModules; ++module) {
    const Tagged& tagged = pools.modules[module];
    ModuleUsage one{static_cast<uint8_t>(module), tagged.current.load(std::memory_order_relaxed),
                    tagged.peak.load(std::memory_order_relaxed)};
    if (module == kApplicationModule) {
      one.current = pools.application();
      one.peak = pools.application_peak.load(std::memory_order_relaxed);
    }
    if (one.peak != 0) found.push_back(one);
  }
  return found;
}

}  // namespace understudy
