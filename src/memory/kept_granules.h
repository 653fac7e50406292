// SPDX-License-Identifier: Apache-2.0
//
// Which granules of a backing file are free and still have host memory behind them, a bit each.
// Bits that were never set take no memory. Not synchronized.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/sizes.h"
#include "base/zeroed_array.h"

namespace understudy {

class KeptGranules {
 public:
  struct Run {
    uint64_t offset;
    uint64_t size;
  };

  // None of a file of so many bytes. May throw std::bad_alloc, and is all that does.
  explicit KeptGranules(uint64_t file_size)
      : granules_(file_size / kGranule),
        words_(std::make_unique<ZeroedArray<uint64_t>>(granules_ / kBits + 1)) {}

  // Adds the granules of a range that is_committed(offset) says. Returns how many bytes that are.
  // REQUIRES: none of them is in.
  template <typename IsCommitted>
  uint64_t add(uint64_t offset, uint64_t size, IsCommitted is_committed) noexcept {
    uint64_t added = 0;
    for (uint64_t at = offset; at < offset + size; at += kGranule) {
      if (!is_committed(at)) continue;
      word_of(at / kGranule) |= bit_of(at / kGranule);
      added += kGranule;
    }
    bytes_ += added;
    if (added > 0 && offset + size > end_) end_ = offset + size;
    return added;
  }
  // Removes those that are in a range. Returns how many bytes that are.
  uint64_t remove(uint64_t offset, uint64_t size) noexcept;

  // The first run of them from an offset on, cut to `most` bytes, a multiple of the granule.
  std::optional<Run> next(uint64_t from, uint64_t most) const;

  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kBits = 64;

  static uint64_t bit_of(uint64_t granule) { return uint64_t{1} << granule % kBits; }
  uint64_t& word_of(uint64_t granule) { return (*words_)[granule / kBits]; }
  // The first granule from one on that is in, or is not; `end` if there is none before it.
  uint64_t find(bool in, uint64_t granule, uint64_t end) const;

  uint64_t granules_;
  std::unique_ptr<ZeroedArray<uint64_t>> words_;
  uint64_t bytes_ = 0;
  uint64_t end_ = 0;  // none was ever behind it
};

}  // namespace understudy
