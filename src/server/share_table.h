// SPDX-License-Identifier: Apache-2.0
//
// The shares of a server: memory that one process has exported, until its last holder is gone. A
// share carries the charge of its memory: it goes from the slot of the exporter to the share and is
// credited once, by the process that ends it. Any thread may call anything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "device/location.h"
#include "device/page_kind.h"
#include "server/entry_table.h"
#include "server/ledger_file.h"
#include "server/ledger_table.h"
#include "server/process_slots.h"

namespace understudy {

// What is shared. Numbers of devices are those of the server.
struct ShareDescription {
  ShareKind kind = ShareKind::kNumber;
  bool open_to_all = false;
  bool read_only = false;
  PageKind page_kind = PageKind::kHuge;
  uint8_t attribute = 0;
  Location location;
  uint16_t backing = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t usable = 0;   // what importers may use of it, from its start
  uint64_t charged = 0;  // bytes that this process has charged for it
};

// A share as its token finds it.
struct ShareView {
  uint32_t number = 0;
  ProcessTag owner;
  ShareDescription description;
};

enum class AfterDrop : uint8_t {
  kHeld,      // by others
  kOwnAgain,  // the memory is this process's alone, and no share any more
  kReturned,  // it is its owner's again, who will notice
  kOrphaned,  // its owner is gone, so its memory should go back to the system
};

// What a process gives up of a share: one element of a batch. A plain value, so that a queue of
// them needs no memory when it is drained.
struct Release {
  uint32_t number = 0;                 // of the share
  uint64_t close_secret = 0;           // not 0: the token with this secret lets no one in any more
  bool drop = false;                   // this process no longer holds it
  AfterDrop after = AfterDrop::kHeld;  // out, if dropped
};

class ShareTable final : private LedgerTable {
 public:
  // Registers with the slots.
  ShareTable(LedgerFile& file, ProcessSlots& slots);
  ShareTable(const ShareTable&) = delete;
  ShareTable& operator=(const ShareTable&) = delete;

  // Publishes memory of this process, which holds it from then on.
  Result<ShareToken> add(const ShareDescription& description,
                         Deadline deadline = ledger_deadline());
  // Lets others in again, by another token.
  Result<ShareToken> reopen(uint32_t number, ShareKind kind, bool open_to_all, uint64_t usable,
                            Deadline deadline = ledger_deadline());
  // Of a share that is open.
  std::optional<ShareToken> token_of(uint32_t number) const;
  // The token lets no one in from now on. By the owner, which alone changes the secret while it
  // holds the share: one word, so that the ledger's lock is not needed.
  void close(ShareToken token) noexcept;

  Result<std::optional<ShareView>> find(ShareToken token,
                                        Deadline deadline = ledger_deadline()) const;
  // This process holds it from now on, unless it was closed meanwhile.
  Result<bool> hold(ShareToken token, Deadline deadline = ledger_deadline());
  Result<AfterDrop> drop(uint32_t number, Deadline deadline = ledger_deadline());
  // Closes and drops all of a batch, and writes what became of each. One attempt at the ledger's
  // lock; false, and nothing changed, if another holder has it. Never sleeps, never allocates.
  bool try_release(std::span<Release> batch);

  // How many shares of this process came back from others.
  const std::atomic<uint32_t>& returns() const { return slots_.returns(); }
  // Takes as many of them as there is room for, and says how many.
  Result<size_t> take_returns(std::span<uint32_t> room, Deadline deadline = ledger_deadline());

  // Parts of the backing files of a process that have a holder.
  struct HeldPart {
    uint16_t backing;
    uint64_t offset;
    uint64_t size;
  };
  // Writes as many as there is room for, and says how many there are: if more, the caller makes
  // room and asks again.
  Result<size_t> held_parts(ProcessTag owner, std::span<HeldPart> room,
                            Deadline deadline = ledger_deadline());

 private:
  // LedgerTable
  void drop_holds(unsigned slot) override US_REQUIRES(ledger_held);
  void repair() override US_REQUIRES(ledger_held);

  AfterDrop drop_locked(uint32_t number) US_REQUIRES(ledger_held);
  // Its last holder is gone.
  AfterDrop end(uint32_t number, unsigned dropped_by) US_REQUIRES(ledger_held);
  std::atomic<uint64_t>& shared_pages(const ShareEntry& entry) const;

  LedgerFile& file_;
  ProcessSlots& slots_;
  EntryTable<ShareEntry> entries_;
};

}  // namespace understudy
