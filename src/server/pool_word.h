// SPDX-License-Identifier: Apache-2.0
//
// What one process has of one pool of a device, in one word, so that it is never seen half changed:
// pages that it uses, and pages of its lease, which were granted to it and not used yet. A plain
// value; page_account.h tells who changes the words of the ledger, and when.
//
//   bits 0-32   pages used
//   bits 33-62  pages leased
//   bit  63     invalidated: set by other processes; what this one asks for is not granted
#pragma once

#include <algorithm>
#include <cstdint>

namespace understudy {

class PoolWord {
 public:
  static constexpr unsigned kUsedBits = 33;
  static constexpr unsigned kLeasedBits = 30;
  static constexpr uint64_t kMostUsed = (uint64_t{1} << kUsedBits) - 1;
  static constexpr uint64_t kMostLeased = (uint64_t{1} << kLeasedBits) - 1;
  static constexpr uint64_t kInvalidated = uint64_t{1} << (kUsedBits + kLeasedBits);

  constexpr explicit PoolWord(uint64_t word) : word_(word) {}
  constexpr PoolWord(uint64_t used, uint64_t leased) : word_(used | leased << kUsedBits) {}

  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t used() const { return word_ & kMostUsed; }
  constexpr uint64_t leased() const { return word_ >> kUsedBits & kMostLeased; }
  constexpr uint64_t granted() const { return used() + leased(); }
  constexpr bool is_invalidated() const { return (word_ & kInvalidated) != 0; }

  // Pages of the lease become used. REQUIRES: it has so many.
  constexpr PoolWord spent(uint64_t pages) const {
    return PoolWord(word_ + pages - (pages << kUsedBits));
  }
  // Pages were granted: some for use now, some ahead, for a lease of up to a most.
  constexpr PoolWord with_grant(uint64_t pages, uint64_t ahead, uint64_t most_leased) const {
    return with(used() + pages, std::min(leased() + ahead, most_leased));
  }
  // Pages that are no longer used become leased, up to a most. No more than are used.
  constexpr PoolWord credited(uint64_t pages, uint64_t most_leased) const {
    const uint64_t given = std::min(pages, used());
    return with(used() - given, std::min(leased() + given, most_leased));
  }
  constexpr PoolWord revoked() const { return with(used(), 0); }

  friend constexpr bool operator==(PoolWord, PoolWord) = default;

 private:
  constexpr PoolWord with(uint64_t used, uint64_t leased) const {
    return PoolWord((word_ & kInvalidated) | PoolWord(used, leased).word_);
  }

  uint64_t word_;
};

}  // namespace understudy
