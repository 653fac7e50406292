// SPDX-License-Identifier: Apache-2.0
#include "device/capacity.h"

#include "base/invariant.h"

namespace understudy {

LocalCapacity::LocalCapacity(unsigned devices, uint64_t normal, uint64_t huge)
    : normal_(normal), huge_(huge), devices_(devices) {}

bool LocalCapacity::charge(unsigned device, PageKind kind, uint64_t bytes) {
  std::atomic<uint64_t>& used = pool(device, kind).used;
  uint64_t before = used.load(std::memory_order_relaxed);
  do {
    if (bytes > total(kind) - before) return false;
  } while (!used.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

void LocalCapacity::credit(unsigned device, PageKind kind, uint64_t bytes) {
  const uint64_t before = pool(device, kind).used.fetch_sub(bytes, std::memory_order_relaxed);
  US_INVARIANT(before >= bytes, "device %u was credited %llu bytes more than it was charged",
               device, static_cast<unsigned long long>(bytes - before));
}

PoolFigures LocalCapacity::figures(unsigned device, PageKind kind) const {
  const Device& pools = devices_[device];
  const Pool& pool = kind == PageKind::kNormal ? pools.normal : pools.huge;
  const uint64_t free = total(kind) - pool.used.load(std::memory_order_relaxed);
  if (kind == PageKind::kGiant) {
    return {align_down(free, kGiantPage), align_down(total(kind), kGiantPage)};
  }
  return {free, total(kind)};
}

}  // namespace understudy
