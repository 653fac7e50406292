// SPDX-License-Identifier: Apache-2.0
//
// How much memory each device has and how much of it is taken, by page kind: the figures that
// decide who gets memory. They have nothing to do with what the host has. Two pools per device,
// normal and huge; giant pages are whole GiB of the huge pool (INFO-08). Each charge also names the
// module of the program it is for (INFO-13).
//
// An interface, because a server-wide ledger will keep the figures of all processes together.
// Every function may be called from any thread; none waits.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "device/page_kind.h"

namespace understudy {

struct PoolFigures {
  uint64_t free = 0;
  uint64_t total = 0;
};

// Programs tag their memory with numbers of modules; memory without a tag is the application's.
inline constexpr unsigned kModules = 256;
inline constexpr uint8_t kApplicationModule = 33;

struct Charge {
  unsigned device = 0;
  PageKind kind = PageKind::kHuge;
  uint64_t bytes = 0;
  uint8_t module = kApplicationModule;
};

struct ModuleUsage {
  uint8_t module = kApplicationModule;
  uint64_t current = 0;
  uint64_t peak = 0;
};

class CapacityLedger {
 public:
  virtual ~CapacityLedger() = default;

  // Takes memory. False, and nothing taken, if there is not enough of that kind.
  [[nodiscard]] virtual bool charge(const Charge& charge) = 0;
  // Gives back what an equal charge took.
  virtual void credit(const Charge& charge) = 0;
  // Free and total of one kind; for giant pages whole GiB of the huge pool.
  virtual PoolFigures figures(unsigned device, PageKind kind) const = 0;
  // The modules that have or had memory of a device.
  virtual std::vector<ModuleUsage> usage(unsigned device) const = 0;
};

// The same as charge(), with a sentence for people if there is not enough.
Result<void> charge_or_explain(CapacityLedger& ledger, const Charge& charge);

// The figures of this process alone.
class LocalCapacity final : public CapacityLedger {
 public:
  // `normal` and `huge` are the sizes of the pools of each device.
  LocalCapacity(unsigned devices, uint64_t normal, uint64_t huge);

  bool charge(const Charge& charge) override;
  void credit(const Charge& charge) override;
  PoolFigures figures(unsigned device, PageKind kind) const override;
  std::vector<ModuleUsage> usage(unsigned device) const override;

 private:
  struct Tagged {
    std::atomic<uint64_t> current{0};
    std::atomic<uint64_t> peak{0};
  };
  // The application's memory is all that other modules do not have, so that the usual charge
  // changes one counter, which shares its cache line with nothing.
  struct Device {
    alignas(64) std::atomic<uint64_t> normal{0};
    alignas(64) std::atomic<uint64_t> huge{0};
    alignas(64) std::atomic<uint64_t> tagged{0};  // of all modules but the application
    std::atomic<uint64_t> tag_changes{0};
    std::atomic<uint64_t> application_peak{0};
    std::array<Tagged, kModules> modules;

    uint64_t application() const;
  };
  static std::atomic<uint64_t>& used(Device& device, PageKind kind) {
    return kind == PageKind::kNormal ? device.normal : device.huge;
  }
  bool charge_pool(Device& device, const Charge& charge, uint64_t& used_now) const;
  bool charge_application(Device& device, const Charge& charge) const;
  uint64_t total(PageKind kind) const { return kind == PageKind::kNormal ? normal_ : huge_; }

  const uint64_t normal_;
  const uint64_t huge_;
  std::vector<Device> devices_;
};

}  // namespace understudy
