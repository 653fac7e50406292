// SPDX-License-Identifier: Apache-2.0
//
// A table of the ledger: entries with a secret that are taken and given back under the lock. A
// token finds an entry for a process that knows the secret. The type of the entries has the fields
// `secret`, `live`, `next_free` and `holders`.
#pragma once

#include <cstdint>

#include "base/kill_point.h"
#include "base/result.h"
#include "server/ledger_file.h"
#include "server/process_tag.h"

namespace understudy {

template <typename Entry>
class EntryTable {
 public:
  EntryTable(LedgerFile& file, TableHead& head, Entry* entries, uint32_t most)
      : file_(file), head_(head), entries_(entries), most_(most) {}

  Entry& operator[](uint32_t number) const { return entries_[number]; }
  // One past the highest entry that was ever taken.
  uint32_t count() const { return head_.high.load(); }

  // The number of a free entry, which is no longer in the list of free ones.
  Result<uint32_t> take() US_REQUIRES(ledger_held) {
    uint32_t number = 0;
    if (head_.first_free != 0) {
      number = head_.first_free - 1;
      head_.first_free = entries_[number].next_free;
    } else {
      US_TRY(back_one_more());
      number = head_.high.load();
      head_.high.store(number + 1);
    }
    US_KILL_POINT("entry.taken");
    // Of a process that died before the entry was its own.
    entries_[number].holders.clear();
    return number;
  }
  // REQUIRES: it has no holder.
  void free(uint32_t number) US_REQUIRES(ledger_held) {
    Entry& entry = entries_[number];
    entry.secret.store(0);
    entry.live.store(0);
    US_KILL_POINT("entry.not_live");
    entry.next_free = head_.first_free;
    US_KILL_POINT("entry.linked");
    head_.first_free = number + 1;
  }
  // The entry of a token, if there is one that was not closed.
  Entry* find(ShareToken token) const {
    if (token.secret() == 0 || token.number() >= count()) return nullptr;
    Entry& entry = entries_[token.number()];
    return entry.secret.load() == token.secret() ? &entry : nullptr;
  }
  // Makes a new list of the entries that are not live.
  void relist() US_REQUIRES(ledger_held) {
    head_.first_free = 0;
    for (uint32_t number = count(); number-- > 0;) {
      if (entries_[number].live.load() == 0) free(number);
    }
  }

 private:
  // Makes sure that there is memory for an entry more.
  Result<void> back_one_more() US_REQUIRES(ledger_held) {
    constexpr uint32_t kStep = 512;
    const uint32_t backed = head_.backed.load();
    if (head_.high.load() < backed) return {};
    if (backed == most_) {
      return Error::format(ErrorCode::kOutOfResources,
                           "limit of things that the processes of the server share (%u) reached",
                           most_);
    }
    const auto offset = static_cast<uint64_t>(reinterpret_cast<char*>(&entries_[backed]) -
                                              reinterpret_cast<char*>(&file_.header()));
    US_TRY(file_.back(offset, kStep * sizeof(Entry)));
    head_.backed.store(backed + kStep);
    return {};
  }

  LedgerFile& file_;
  TableHead& head_;
  Entry* const entries_;
  const uint32_t most_;
};

}  // namespace understudy
