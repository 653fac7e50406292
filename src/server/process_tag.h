// SPDX-License-Identifier: Apache-2.0
//
// Names of processes and of what they share, as they stand in the ledger and travel between
// processes. Plain values.
#pragma once

#include <array>
#include <cstdint>

#include "server/ledger_layout.h"

namespace understudy {

// Names a process of the server for ever: its slot, and how often that was taken. 0 is none.
class ProcessTag {
 public:
  constexpr ProcessTag() = default;
  constexpr explicit ProcessTag(uint64_t word) : word_(word) {}
  // Generations begin with 1.
  constexpr ProcessTag(unsigned slot, uint64_t generation)
      : word_(generation * kProcessSlots + slot) {}

  constexpr uint64_t word() const { return word_; }
  constexpr bool is_none() const { return word_ == 0; }
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
  friend constexpr bool operator==(ShortProcessTag, ShortProcessTag) = default;

 private:
  uint32_t word_;
};

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

// Tells servers apart.
using ServerId = std::array<uint64_t, 2>;

// A secret that fits a token; never 0.
uint64_t make_secret();

}  // namespace understudy
