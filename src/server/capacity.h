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
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/page_kind.h"
#include "server/ledger_file.h"
#include "server/ledger_table.h"
#include "server/own_figures.h"
#include "server/page_account.h"
#include "server/process_slots.h"

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

class Capacity final : private LedgerTable {
 public:
  // `numbers` are those the devices of this process have on the server, in its own order. Registers
  // with the slots.
  Capacity(LedgerFile& file, ProcessSlots& slots, std::vector<int32_t> numbers);
  Capacity(const Capacity&) = delete;
  Capacity& operator=(const Capacity&) = delete;

  // Takes memory. False, and nothing taken, if there is not enough of that kind.
  // Waits for other processes until the deadline, by default that of a whole call.
  [[nodiscard]] bool charge(const Charge& charge, std::optional<Deadline> deadline = std::nullopt);
  // Gives back what an equal charge took.
  void credit(const Charge& charge);
  // The same for memory of the host that devices copy to each other by way of, where it is limited.
  // It stays with the process, also when it is shared.
  [[nodiscard]] bool charge_host_window(uint64_t bytes);
  void credit_host_window(uint64_t bytes);
  PoolFigures host_window() const;
  // A charge now belongs to memory that processes share, or no longer does: it is not in this
  // process's part of the ledger, but its module still has it.
  void note_shared(const Charge& charge);
  void note_share_ended(const Charge& charge);

  // ---- What a process has may be set aside: it keeps its memory, and others may have the capacity
  // (SNAP-17). Memory that processes share is not part of it. The modules keep what they have.
  // REQUIRES, for all of them: no thread of the process charges or credits meanwhile.

  // What would be set aside, in bytes of all devices.
  uint64_t charged() const;
  // Lets this process see its figures as they will be, before others can have anything.
  void show_set_aside(bool shown) { shows_set_aside_.store(shown); }
  // Gives everything back. Neither waits nor fails.
  void set_aside();
  // Takes it again, all of it, or nothing if a device has not enough left.
  [[nodiscard]] bool bring_back(std::optional<Deadline> deadline = std::nullopt);

  // Free and total of some kinds together; for giant pages whole GiB of the huge pool. What a
  // device uses when idle is never free.
  PoolFigures figures(unsigned device, std::span<const PageKind> kinds,
                      std::optional<Deadline> deadline = std::nullopt) const;
  PoolFigures figures(unsigned device, PageKind kind,
                      std::optional<Deadline> deadline = std::nullopt) const {
    return figures(device, {&kind, 1}, deadline);
  }
  // What has the most memory of a device: a process, or all that processes share together.
  struct Holder {
    int32_t process = 0;  // 0: shared memory
    bool is_own = false;
    uint64_t bytes = 0;
  };
  Holder largest_holder(unsigned device) const;
  // What each device uses when idle, in bytes.
  uint64_t idle_usage() const { return file_.header().shape.idle_usage.total(); }
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
    Device(const LedgerFile& file, const ProcessSlots& slots, unsigned number)
        : accounts{{{file, slots, number, 0}, {file, slots, number, 1}}} {}

    std::array<PageAccount, kPools> accounts;
    alignas(64) std::atomic<uint64_t> tagged{0};  // of all modules but the application
    std::atomic<uint64_t> shared{0};              // charged, but not in the process's slot
    std::atomic<uint64_t> tag_changes{0};
    std::atomic<uint64_t> application_peak{0};
    std::array<std::atomic<uint64_t>, kPools> aside{};  // pages that are not charged
    std::array<Tagged, kModules> modules;
  };
  static unsigned pool_of(PageKind kind) { return kind == PageKind::kNormal ? 0 : 1; }

  // LedgerTable
  void drop_holds(unsigned slot) override US_REQUIRES(ledger_held);
  void repair() override US_REQUIRES(ledger_held);

  void untag(const Charge& charge);
  bool charge_pages(PageAccount& account, uint64_t pages, std::optional<Deadline> deadline);
  void credit_pages(PageAccount& account, uint64_t pages);
  PoolFigures figures_now(unsigned device, PageKind kind) const;
  uint64_t own_pages(unsigned device) const {
    const auto& accounts = devices_[device].accounts;
    return accounts[0].own_used() + accounts[1].own_used();
  }
  uint64_t take_from_aside(unsigned device, unsigned pool, uint64_t pages);
  // Bytes that no module but the application has, if the process has `used` pages in its slot.
  static uint64_t application(const Device& device, uint64_t used);
  // What people see of a charge that succeeded. Returns the pages that the process has now.
  uint64_t note_charged(unsigned device) const;

  LedgerFile& file_;
  ProcessSlots& slots_;
  const OwnFigures figures_;
  const std::vector<int32_t> numbers_;
  std::deque<Device> devices_;
  PageAccount host_window_;
  std::atomic<bool> has_aside_{false};
  std::atomic<bool> shows_set_aside_{false};
};

// The same as charge(), with a sentence for people if there is not enough.
Result<void> charge_or_explain(Capacity& capacity, const Charge& charge,
                               std::optional<Deadline> deadline = std::nullopt);

}  // namespace understudy
