// SPDX-License-Identifier: Apache-2.0
//
// The ledger of a server: what all its processes use of each device, and what they share. One
// mapped file in the server's directory; no process keeps it for the others.
//
// A process has a slot, which is its own while it holds the lock of a byte of the file; the kernel
// drops that lock when the process ends. Whoever meets a slot without its lock clears it. Charges
// are in the slot of who made them, so they go with it. Any thread may call anything.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/ledger_layout.h"
#include "platform/memory_file.h"
#include "platform/private_directory.h"
#include "platform/shared_mapping.h"

namespace understudy {

// Names a process of the server for ever: its slot, and how often that was taken. 0 is nobody.
class ProcessTag {
 public:
  constexpr ProcessTag() = default;
  constexpr explicit ProcessTag(uint64_t word) : word_(word) {}
  // Generations begin with 1.
  constexpr ProcessTag(unsigned slot, uint64_t generation)
      : word_(generation * kProcessSlots + slot) {}

  constexpr uint64_t word() const { return word_; }
  constexpr bool is_nobody() const { return word_ == 0; }
  constexpr unsigned slot() const { return static_cast<unsigned>(word_ % kProcessSlots); }
  constexpr uint64_t generation() const { return word_ / kProcessSlots; }
  friend constexpr bool operator==(ProcessTag, ProcessTag) = default;

 private:
  uint64_t word_ = 0;
};

// The same in few bits, where it is enough that half a million processes pass before two of them
// could be taken for each other.
class ShortProcessTag {
 public:
  static constexpr unsigned kBits = 28;

  constexpr explicit ShortProcessTag(uint32_t word) : word_(word) {}
  constexpr explicit ShortProcessTag(ProcessTag tag)
      : word_(static_cast<uint32_t>(tag.word()) & ((1U << kBits) - 1)) {}

  constexpr uint32_t word() const { return word_; }
  constexpr unsigned slot() const { return word_ % kProcessSlots; }

 private:
  uint32_t word_;
};

class Ledger;

// The mutex of the ledger, for as long as it lives.
class LedgerLock {
 public:
  LedgerLock(LedgerLock&& other) noexcept : ledger_(std::exchange(other.ledger_, nullptr)) {}
  LedgerLock& operator=(LedgerLock&&) = delete;
  ~LedgerLock();

 private:
  friend class Ledger;
  explicit LedgerLock(Ledger& ledger) : ledger_(&ledger) {}
  Ledger* ledger_;
};

class Ledger final : private LedgerMutex::Census {
 public:
  // Joins the server of a directory, or begins one there. Fails if live processes there have other
  // devices, naming both.
  static Result<std::unique_ptr<Ledger>> join(platform::PrivateDirectory directory,
                                              const ServerShape& shape);
  // A server of this process alone, without a directory.
  static Result<std::unique_ptr<Ledger>> make_private(const ServerShape& shape);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  const ServerShape& shape() const { return header().shape; }
  const std::array<uint64_t, 2>& server() const { return header().server; }
  // Null for a server of this process alone.
  const platform::PrivateDirectory* directory() const {
    return directory_ ? &*directory_ : nullptr;
  }

  LedgerHeader& header() const { return *reinterpret_cast<LedgerHeader*>(mapping_.data()); }
  ProcessSlot& slot(unsigned number) const {
    return reinterpret_cast<ProcessSlot*>(mapping_.data() + kSlotsOffset)[number];
  }
  ShareEntry& share(uint32_t number) const {
    return reinterpret_cast<ShareEntry*>(mapping_.data() + kSharesOffset)[number];
  }
  SharedEvent& event(uint32_t number) const {
    return reinterpret_cast<SharedEvent*>(mapping_.data() + kEventsOffset)[number];
  }
  unsigned own_slot() const { return own_; }
  ProcessSlot& own() const { return slot(own_); }
  ProcessTag own_tag() const { return own_tag_; }
  ProcessTag tag_of(unsigned number) const { return {number, slot(number).generation.load()}; }
  bool is_alive(ProcessTag process) const;
  bool is_alive(ShortProcessTag process) const;
  bool is_slot_alive(unsigned slot) const;
  // False if others took this process for dead, because it closed the ledger's descriptor.
  bool has_own_slot() const;
  static std::string socket_name(unsigned slot) { return "process-" + std::to_string(slot); }

  // For changes of anything that is not this process's own. Never waits for long: a process may be
  // stopped while it has the lock.
  Result<LedgerLock> lock();
  // Between these two, entries and totals may disagree. Under the lock.
  void begin_change(const LedgerLock&) { header().changes.fetch_add(1); }
  void end_change(const LedgerLock&) { header().changes.fetch_add(1); }

  // Clears the slots of processes that have ended.
  void reclaim(const LedgerLock& lock);
  // The same if there are any.
  void reclaim_if_any();

  // Makes sure that a table has memory for an entry more. Under the lock.
  Result<void> back_table(TableHead& head, uint64_t offset, uint64_t entry_bytes, uint32_t most);

 private:
  friend class LedgerLock;
  Ledger();

  bool is_alive(LedgerMutex::Holder holder) const override;

  Result<void> open(const ServerShape& shape);
  bool is_valid() const;
  bool has_live_process() const;
  Result<void> begin_server(const ServerShape& shape);
  void fill_header(const ServerShape& shape);
  Result<void> take_slot(const LedgerLock& lock);
  void clear_slot(unsigned number);
  // Computes what follows from the entries.
  void repair();

  std::optional<platform::PrivateDirectory> directory_;
  platform::UniqueFd file_;
  platform::FileIdentity identity_;
  ProcessTag own_tag_;
  const LedgerMutex::Holder joiner_;  // who this is before it has a slot
  platform::SharedMapping mapping_;
  unsigned own_ = kProcessSlots;  // none yet
};

}  // namespace understudy
