// SPDX-License-Identifier: Apache-2.0
//
// What the two tables of the ledger have in common: entries with a secret that are taken and given
// back under its mutex, and tokens that name an entry for whoever knows the secret.
#pragma once

#include <cstdint>
#include <optional>

#include "device/ledger.h"

namespace understudy {

// What a program carries from one process to another: the number of an entry and its secret.
class ShareToken {
 public:
  static constexpr unsigned kNumberBits = 20;

  constexpr explicit ShareToken(uint64_t word) : word_(word) {}
  constexpr ShareToken(uint32_t number, uint64_t secret) : word_(secret << kNumberBits | number) {}

  constexpr uint64_t word() const { return word_; }
  constexpr uint32_t number() const {
    return static_cast<uint32_t>(word_ & ((1U << kNumberBits) - 1));
  }
  constexpr uint64_t secret() const { return word_ >> kNumberBits; }

 private:
  uint64_t word_;
};
static_assert(kMostShares == 1U << ShareToken::kNumberBits);

// A secret that fits a token; never 0.
uint64_t make_secret();

struct ShareTableTraits {
  using Entry = ShareEntry;
  static constexpr uint64_t kOffset = kSharesOffset;
  static constexpr uint32_t kMost = kMostShares;
  static TableHead& head(Ledger& ledger) { return ledger.header().shares; }
  static Entry& at(Ledger& ledger, uint32_t number) { return ledger.share(number); }
};

struct EventTableTraits {
  using Entry = SharedEvent;
  static constexpr uint64_t kOffset = kEventsOffset;
  static constexpr uint32_t kMost = kMostSharedEvents;
  static TableHead& head(Ledger& ledger) { return ledger.header().events; }
  static Entry& at(Ledger& ledger, uint32_t number) { return ledger.event(number); }
};

// The number of a free entry, which is no longer in the list of free ones. Under the lock.
template <typename Traits>
Result<uint32_t> take_entry(Ledger& ledger) {
  TableHead& head = Traits::head(ledger);
  if (head.first_free != 0) {
    const uint32_t number = head.first_free - 1;
    typename Traits::Entry& entry = Traits::at(ledger, number);
    head.first_free = entry.next_free;
    // Of one who died before the entry was his.
    entry.holders.clear();
    return number;
  }
  US_TRY(ledger.back_table(head, Traits::kOffset, sizeof(typename Traits::Entry), Traits::kMost));
  const uint32_t number = head.high.load();
  Traits::at(ledger, number).holders.clear();
  head.high.store(number + 1);
  return number;
}

// Under the lock. REQUIRES: nobody holds it.
template <typename Traits>
void free_entry(Ledger& ledger, uint32_t number) {
  typename Traits::Entry& entry = Traits::at(ledger, number);
  TableHead& head = Traits::head(ledger);
  entry.secret.store(0);
  entry.live.store(0);
  entry.next_free = head.first_free;
  head.first_free = number + 1;
}

// The entry of a token, if there is one that nobody has closed.
template <typename Traits>
typename Traits::Entry* find_entry(Ledger& ledger, ShareToken token) {
  if (token.secret() == 0 || token.number() >= Traits::head(ledger).high.load()) return nullptr;
  typename Traits::Entry& entry = Traits::at(ledger, token.number());
  return entry.secret.load() == token.secret() ? &entry : nullptr;
}

// Makes a new list of the entries that are not live. Under the lock.
template <typename Traits>
void relist_free_entries(Ledger& ledger) {
  TableHead& head = Traits::head(ledger);
  head.first_free = 0;
  for (uint32_t number = head.high.load(); number-- > 0;) {
    typename Traits::Entry& entry = Traits::at(ledger, number);
    if (entry.live.load() == 0) free_entry<Traits>(ledger, number);
  }
}

}  // namespace understudy
