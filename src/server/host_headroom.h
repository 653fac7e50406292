// SPDX-License-Identifier: Apache-2.0
//
// How much host memory the processes of a server may still take, shared through the ledger. A
// process that needs memory takes it from a small grant, which is the result of one measurement
// and good for a moment; when the grant is too small or too old, the process measures the host
// anew, takes what it needs and publishes what it may spare as the next grant.
//
// Memory that a process took but has not committed yet is not in the host's figures. Each process
// publishes how much that is, so that a measurement by another one subtracts it. What a dead
// process published does not count.
//
// Nothing here waits: every word is changed by its own process or by compare and exchange.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "platform/host_facts.h"

namespace understudy {

// The words in the ledger; all zero at first.
struct HostHeadroomWords {
  static constexpr unsigned kSlots = 512;  // process slots
  static constexpr unsigned kGrants = 8;

  struct Grant {
    std::atomic<uint64_t> limit{0};  // the MemoryLimit::id it belongs to; 0: unused
    std::atomic<uint64_t> word{0};   // a GrantWord
  };

  // The first is the machine's; the others are those of memory cgroups, never given up. Where they
  // are all in use, other cgroups have no grant, and every take of their processes measures.
  alignas(64) std::array<Grant, kGrants> grants;
  // Per process slot: an InFlightWord.
  alignas(64) std::array<std::atomic<uint64_t>, kSlots> in_flight;
};

// What may be taken on the latest measurement.
struct GrantWord {
  static constexpr unsigned kPageBits = 20;
  static constexpr unsigned kExpiryBits = 32;
  static constexpr unsigned kSequenceBits = 64 - kPageBits - kExpiryBits;

  uint32_t sequence = 0;  // of the measurement
  uint32_t expiry = 0;    // in milliseconds of the monotonic clock, modulo 2^32
  uint32_t pages = 0;     // of 4 KiB

  constexpr uint64_t pack() const {
    return uint64_t{sequence} << (kPageBits + kExpiryBits) | uint64_t{expiry} << kPageBits | pages;
  }
  static constexpr GrantWord unpack(uint64_t word) {
    return {static_cast<uint32_t>(word >> (kPageBits + kExpiryBits)),
            static_cast<uint32_t>(word >> kPageBits),
            static_cast<uint32_t>(word & ((1U << kPageBits) - 1))};
  }
};

// What one process has taken and not committed yet, and the limit it is closest to.
struct InFlightWord {
  static constexpr unsigned kGrantBits = 4;
  static constexpr unsigned kNoGrant = (1U << kGrantBits) - 1;
  static_assert(HostHeadroomWords::kGrants < kNoGrant);

  uint64_t pages = 0;
  unsigned grant = 0;  // index of the limit's grant

  constexpr uint64_t pack() const { return pages << kGrantBits | grant; }
  static constexpr InFlightWord unpack(uint64_t word) {
    return {word >> kGrantBits, static_cast<unsigned>(word & kNoGrant)};
  }
};

// What the headroom asks the host and the ledger. Tests stand in for both.
class HostProbe {
 public:
  virtual std::vector<platform::MemoryLimit> limits() const = 0;
  virtual uint32_t milliseconds() const = 0;  // of the monotonic clock, modulo 2^32
  virtual unsigned own_slot() const = 0;
  virtual bool is_alive(unsigned slot) const = 0;

 protected:
  ~HostProbe() = default;
};

// One per process. The caller makes sure that one thread at a time calls.
class HostHeadroom {
 public:
  // What stays free of a limit, for the programs themselves and their neighbours.
  static uint64_t reserve_of(uint64_t total);

  HostHeadroom(HostHeadroomWords& words, const HostProbe& probe);

  // Asks for `bytes` before they are committed. Nothing is taken on failure.
  Result<void> take(uint64_t bytes);
  // The bytes of a take are committed, or never will be.
  void note_committed(uint64_t bytes);

 private:
  // What one measurement found of the limit that is closest.
  struct Spare {
    platform::MemoryLimit limit;
    uint64_t reserve = 0;
    uint64_t pages = 0;
  };

  bool try_take_granted(uint64_t pages);
  Result<void> measure_and_take(uint64_t pages);
  Spare measure(uint64_t pages) const;
  // What processes other than this one have in flight below a limit.
  uint64_t in_flight_of_others(const std::array<uint64_t, HostHeadroomWords::kSlots>& seen,
                               const platform::MemoryLimit& limit) const;
  // The index of the limit's grant; kNoGrant if there is none.
  unsigned find_grant(uint64_t limit) const;
  unsigned find_or_add_grant(uint64_t limit);
  void publish_in_flight();

  HostHeadroomWords& words_;
  const HostProbe& probe_;
  uint64_t in_flight_ = 0;  // pages
  unsigned grant_ = 0;      // of the limit that was the closest when last measured
};

}  // namespace understudy
