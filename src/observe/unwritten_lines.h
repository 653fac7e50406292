// SPDX-License-Identifier: Apache-2.0
//
// Which lines of 64 bytes of memory were never written since they have their owner, by the
// addresses of the memory. A line of which any byte was written counts as written.
//
// Per granule one of four states. Only a granule of which some lines are written and others are not
// has a bit per line, 4 KiB of them, made when that comes to be. Where nothing is known of a
// granule, or there is no memory to know it, its lines count as written.
//
// The caller serializes calls. Nothing throws.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/virtual_range.h"

namespace understudy {

class UnwrittenLines {
 public:
  static constexpr uint64_t kLine = 64;

  // Bytes of a range that were never written.
  struct Part {
    VirtualRange first;  // those that come first and lie together
    uint64_t bytes = 0;  // all of them
  };

  // Memory is new, and nothing of it is written. REQUIRES: whole granules.
  void begin(VirtualRange range) noexcept;
  // From now on nothing is known of it. REQUIRES: whole granules.
  void forget(VirtualRange range) noexcept;
  // A part of it has a new owner: nothing of that is written, if anything is known of it.
  // REQUIRES: whole lines.
  void renew(VirtualRange range) noexcept;
  void write(VirtualRange range) noexcept;
  std::optional<Part> find(VirtualRange range) const noexcept;

 private:
  static constexpr unsigned kWordBits = 64;
  static constexpr unsigned kLines = kGranule / kLine;
  static constexpr unsigned kGranules = kGiB / kGranule;

  // A bit is set where a line was never written.
  struct Bits {
    std::array<uint64_t, kLines / kWordBits> words{};
    unsigned unwritten = 0;
  };
  struct Granule {
    enum class State : uint8_t { kUnknown, kWritten, kUnwritten, kMixed };
    State state = State::kUnknown;
    std::unique_ptr<Bits> bits;  // of a mixed one

    void set(State whole) noexcept {
      state = whole;
      bits.reset();
    }
    // Gives all its lines a bit. Without memory for that it counts as written.
    bool divide() noexcept;
  };
  using Region = std::array<Granule, kGranules>;  // the granules of one GiB
  // The lines of one granule that a range touches: from `first` to before `end`.
  struct Lines {
    VirtualAddress granule;
    unsigned first;
    unsigned end;

    bool are_all() const { return first == 0 && end == kLines; }
  };
  class Collector;

  // Calls visit(lines) for the lines of each granule that a range touches.
  template <typename Visit>
  static void for_each_granule(VirtualRange range, Visit visit);
  // Calls visit(word, bits) for the words of the lines, with the bits that are theirs.
  template <typename Visit>
  static void for_each_word(const Lines& lines, Visit visit);
  // Null if nothing is known of it.
  Granule* granule_at(VirtualAddress address) const noexcept;

  std::unordered_map<uint64_t, std::unique_ptr<Region>> regions_;  // by their address / 1 GiB
};

}  // namespace understudy
