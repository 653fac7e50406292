// SPDX-License-Identifier: Apache-2.0
//
// How much memory each device has and how much of it is taken, by page kind: the figures that
// decide who gets memory. They have nothing to do with what the host has. Two pools per device,
// normal and huge; giant pages are whole GiB of the huge pool (INFO-08). Each charge also names the
// module of the program it is for (INFO-13).
//
// The figures are those of all processes of the server together; the ledger keeps them. Which
// module has how much is known of this process alone. Every function may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/ledger.h"
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

class Capacity {
 public:
  // `numbers` are those the devices of this process have on the server, in its own order.
  Capacity(Ledger& ledger, std::vector<int32_t> numbers);

  // Takes memory. False, and nothing taken, if there is not enough of that kind.
  [[nodiscard]] bool charge(const Charge& charge);
  // Gives back what an equal charge took.
  void credit(const Charge& charge);
  // A charge now belongs to memory that processes share, or no longer does: it is not in this
  // process's part of the ledger, but its module still has it.
  void note_shared(const Charge& charge);
  void note_share_ended(const Charge& charge);
  // Free and total of one kind; for giant pages whole GiB of the huge pool.
  PoolFigures figures(unsigned device, PageKind kind) const;
  // The modules of this process that have or had memory of a device.
  std::vector<ModuleUsage> usage(unsigned device) const;

  // The number of a device on the server, and the other way round; nothing if it is not visible.
  unsigned number_of(unsigned device) const { return static_cast<unsigned>(numbers_[device]); }
  std::optional<unsigned> device_of(unsigned number) const;

 private:
  struct Tagged {
    std::atomic<uint64_t> current{0};
    std::atomic<uint64_t> peak{0};
  };
  // The application's memory is all that other modules do not have, so that the usual charge
  // changes one word.
  struct Device {
    alignas(64) std::atomic<uint64_t> tagged{0};  // of all modules but the application
    std::atomic<uint64_t> shared{0};              // charged, but not in the process's slot
    std::atomic<uint64_t> tag_changes{0};
    std::atomic<uint64_t> application_peak{0};
    std::array<Tagged, kModules> modules;
  };
  static unsigned pool_of(PageKind kind) { return kind == PageKind::kNormal ? 0 : 1; }

  bool charge_pool(const Charge& charge);
  void untag(const Charge& charge);
  static bool settle_ask(std::atomic<uint64_t>& word, uint64_t pages, bool fits);
  void void_asks(unsigned number, unsigned pool);
  bool charge_carefully(unsigned number, unsigned pool, uint64_t pages);
  uint64_t total_pages(unsigned pool) const;
  // Of all processes: what they have, or with what they may have in a moment.
  enum class Count : uint8_t { kUsed, kUsedAndAsked };
  uint64_t pages(unsigned number, unsigned pool, Count count) const;
  std::atomic<uint64_t>& own_word(unsigned number, unsigned pool) const {
    return ledger_.own().devices[number].words[pool];
  }
  // Bytes of this process that no module but the application has.
  uint64_t application(unsigned device) const;

  Ledger& ledger_;
  const std::vector<int32_t> numbers_;
  std::vector<Device> devices_;
};

// The same as charge(), with a sentence for people if there is not enough.
Result<void> charge_or_explain(Capacity& capacity, const Charge& charge);

}  // namespace understudy
