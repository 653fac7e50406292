// SPDX-License-Identifier: Apache-2.0
//
// The shares of a server: memory that one process has exported, until its last holder is gone. A
// share carries the charge of its memory, so it goes from the slot of the exporter to the share
// and is credited once, whoever ends it. Any thread may call anything.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/capacity.h"
#include "device/ledger.h"
#include "device/ledger_table.h"
#include "device/location.h"

namespace understudy {

// What is shared. Numbers of devices are those of the server.
struct ShareDescription {
  ShareKind kind = ShareKind::kNumber;
  bool open_to_all = false;
  bool read_only = false;
  PageKind page_kind = PageKind::kHuge;
  uint8_t attribute = 0;
  Location location;
  uint16_t store = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t usable = 0;   // what importers may use of it, from its start
  uint64_t charged = 0;  // bytes that this process has charged for it
};

// A share as someone finds it.
struct ShareView {
  uint32_t number = 0;
  ProcessTag owner;
  ShareDescription description;
};

enum class AfterDrop : uint8_t {
  kHeld,      // by others
  kOwnAgain,  // the memory is this process's alone, and no share any more
  kReturned,  // it is its owner's again, who will notice
  kNobodys,   // its owner is gone, so its memory should go back to the system
};

class ShareTable {
 public:
  explicit ShareTable(Ledger& ledger) : ledger_(ledger) {}

  // Publishes memory of this process, which holds it from then on.
  Result<ShareToken> add(const ShareDescription& description);
  // Lets others in again, by another token.
  Result<ShareToken> reopen(uint32_t number, ShareKind kind, bool open_to_all, uint64_t usable);
  // Of a share that is open.
  std::optional<ShareToken> token_of(uint32_t number) const;
  // Nobody new comes in by the token from now on. By the owner.
  Result<void> close(ShareToken token);

  Result<std::optional<ShareView>> find(ShareToken token) const;
  // This process holds it from now on, unless it was closed meanwhile.
  Result<bool> hold(ShareToken token);
  Result<AfterDrop> drop(uint32_t number);

  // How much memory of this process came back from others, and which it is.
  const std::atomic<uint32_t>& returns() const { return ledger_.own().returned; }
  Result<std::vector<uint32_t>> take_returns();

  // Parts of the stores of a process that are held by anyone.
  struct HeldPart {
    uint16_t store;
    uint64_t offset;
    uint64_t size;
  };
  Result<std::vector<HeldPart>> held_parts(ProcessTag owner);

 private:
  Ledger& ledger_;
};

// For the ledger itself, under its lock.
void drop_share_holds(Ledger& ledger, unsigned slot);
void repair_shares(Ledger& ledger);

}  // namespace understudy
