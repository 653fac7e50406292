// SPDX-License-Identifier: Apache-2.0
//
// The notifies that processes of a server share. A notify is one word, which any holder sets and
// takes without a lock; a process that dies in between has done either or not. Who sets it rings
// all holders: see ProcessSlots. Any thread may call anything.
#pragma once

#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "base/result.h"
#include "server/held_table.h"
#include "server/ledger_file.h"
#include "server/process_slots.h"

namespace understudy {

struct NotifyDescription {
  uint16_t device = 0;  // its number on the server
  bool open_to_all = false;
};

// A notify as its token finds it.
struct NotifyView {
  ProcessTag owner;
  NotifyDescription description;
};

class NotifyTable final : public HeldTable<NotifyEntry> {
 public:
  NotifyTable(LedgerFile& file, ProcessSlots& slots);

  // Makes one that is not set, which this process holds.
  Result<ShareToken> add(const NotifyDescription& description,
                         Deadline deadline = ledger_deadline());
  // What a process needs to know before it holds it.
  Result<std::optional<NotifyView>> find(ShareToken token, Deadline deadline = ledger_deadline());
  bool is_open_to_all(uint32_t number) const { return entries_[number].open_to_all != 0; }

  // REQUIRES of all these: this process holds it.
  void set(uint32_t number);
  void clear(uint32_t number);
  // Clears it if it is set, and says whether it was. Of several that try, one succeeds.
  bool take(uint32_t number);

  const ProcessSlots& slots() const { return slots_; }
};

}  // namespace understudy
