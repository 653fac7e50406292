// SPDX-License-Identifier: Apache-2.0
//
// How much memory each device has and how much of it is taken, by page kind: the figures that
// decide who gets memory. They have nothing to do with what the host has. Two pools per device,
// normal and huge; giant pages are whole GiB of the huge pool (INFO-08).
//
// An interface, because a server-wide ledger will keep the figures of all processes together.
// Every function may be called from any thread; none waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "device/page_kind.h"

namespace understudy {

struct PoolFigures {
  uint64_t free = 0;
  uint64_t total = 0;
};

class CapacityLedger {
 public:
  virtual ~CapacityLedger() = default;

  // Takes `bytes` of a kind. False, and nothing taken, if there is not enough.
  [[nodiscard]] virtual bool charge(unsigned device, PageKind kind, uint64_t bytes) = 0;
  // Gives back what a charge of the same kind took.
  virtual void credit(unsigned device, PageKind kind, uint64_t bytes) = 0;
  // Free and total of one kind; for giant pages whole GiB of the huge pool.
  virtual PoolFigures figures(unsigned device, PageKind kind) const = 0;
};

// The figures of this process alone.
class LocalCapacity final : public CapacityLedger {
 public:
  // `normal` and `huge` are the sizes of the pools of each device.
  LocalCapacity(unsigned devices, uint64_t normal, uint64_t huge);

  bool charge(unsigned device, PageKind kind, uint64_t bytes) override;
  void credit(unsigned device, PageKind kind, uint64_t bytes) override;
  PoolFigures figures(unsigned device, PageKind kind) const override;

 private:
  struct alignas(64) Pool {
    std::atomic<uint64_t> used{0};
  };
  struct Device {
    Pool normal;
    Pool huge;
  };
  Pool& pool(unsigned device, PageKind kind) {
    return kind == PageKind::kNormal ? devices_[device].normal : devices_[device].huge;
  }
  uint64_t total(PageKind kind) const { return kind == PageKind::kNormal ? normal_ : huge_; }

  const uint64_t normal_;
  const uint64_t huge_;
  std::vector<Device> devices_;
};

}  // namespace understudy
