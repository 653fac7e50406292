// SPDX-License-Identifier: Apache-2.0
#include "memory/extent_map.h"

#include <algorithm>
#include <bit>

#include "base/sizes.h"

namespace understudy {

namespace {

// Parts of a bin that are looked at before larger ones are.
constexpr uint32_t kFewParts = 8;

}  // namespace

ExtentMap::ExtentMap(uint64_t size, uint64_t unit)
    : shift_(static_cast<unsigned>(std::countr_zero(unit))),
      units_(static_cast<uint32_t>(size >> shift_)),
      tags_(std::make_unique<ZeroedArray<Tag>>(units_)),
      begins_(std::make_unique<ZeroedArray<uint64_t>>(units_ / 64 + 1)) {
  free_units_ = units_;
  add(0, units_);
}

uint32_t ExtentMap::bin_of(uint32_t size) {
  if (size < kExactBins) return size;
  const auto power = static_cast<uint32_t>(std::bit_width(size)) - 1;
  return kExactBins + (power - 6) * kBinsPerPower + (size >> (power - 5)) % kBinsPerPower;
}

uint32_t ExtentMap::next_bin(uint32_t bin) const {
  uint64_t mask = ~uint64_t{0} << bin % 64;
  for (uint32_t word = bin / 64; word < used_bins_.size(); ++word, mask = ~uint64_t{0}) {
    const uint64_t bits = used_bins_[word] & mask;
    if (bits != 0) return word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
  }
  return kBins;
}

std::optional<uint32_t> ExtentMap::place_in(uint32_t first, uint32_t size,
                                            uint32_t alignment) const {
  const auto place = static_cast<uint32_t>(*align_up(first, alignment));
  const uint32_t in_front = place - first;
  const uint32_t part = tag(first).size;
  if (in_front > part || part - in_front < size) return std::nullopt;
  return place;
}

std::optional<ExtentMap::Found> ExtentMap::find_in_bin(uint32_t bin, uint32_t size,
                                                       uint32_t alignment, uint32_t most) const {
  for (uint32_t link = bins_[bin]; link != 0 && most > 0; link = tag(link - 1).next, --most) {
    if (const auto place = place_in(link - 1, size, alignment)) return Found{link - 1, *place};
  }
  return std::nullopt;
}

std::optional<ExtentMap::Found> ExtentMap::find(uint32_t size, uint32_t alignment) const {
  const uint32_t own = bin_of(size);
  for (uint32_t bin = next_bin(own); bin != kBins; bin = next_bin(bin + 1)) {
    const uint32_t most = bin == own && size >= kExactBins ? kFewParts : UINT32_MAX;
    if (const auto found = find_in_bin(bin, size, alignment, most)) return found;
  }
  // The parts of the own bin that were passed over are the last ones.
  return find_in_bin(own, size, alignment, UINT32_MAX);
}

std::optional<uint64_t> ExtentMap::take(uint64_t size, uint64_t alignment) {
  if (size > free_bytes()) return std::nullopt;
  const auto units = static_cast<uint32_t>(size >> shift_);
  const auto units_apart = static_cast<uint32_t>(std::max<uint64_t>(alignment >> shift_, 1));
  if (const auto first = take_aside(units, units_apart)) return uint64_t{*first} << shift_;
  merge_aside();
  const std::optional<Found> found = find(units, units_apart);
  if (!found) return std::nullopt;
  cut(found->first, found->place, units);
  return uint64_t{found->place} << shift_;
}

std::optional<uint32_t> ExtentMap::take_aside(uint32_t size, uint32_t alignment) noexcept {
  for (unsigned i = aside_count_; i-- > 0;) {
    const Aside piece = aside_[i];
    if (piece.size != size || !is_aligned(piece.first, alignment)) continue;
    aside_[i] = aside_[--aside_count_];
    free_units_ -= size;
    return piece.first;
  }
  return std::nullopt;
}

void ExtentMap::take_at(uint64_t offset, uint64_t size) noexcept {
  const auto place = static_cast<uint32_t>(offset >> shift_);
  merge_aside();
  cut(part_around(place), place, static_cast<uint32_t>(size >> shift_));
}

uint32_t ExtentMap::part_around(uint32_t unit) const {
  uint32_t word = unit / 64;
  uint64_t bits = (*begins_)[word] & ~uint64_t{0} >> (63 - unit % 64);
  while (bits == 0) bits = (*begins_)[--word];
  return word * 64 + 63 - static_cast<uint32_t>(std::countl_zero(bits));
}

void ExtentMap::cut(uint32_t first, uint32_t place, uint32_t units) noexcept {
  const uint32_t in_front = place - first;
  const uint32_t behind = tag(first).size - in_front - units;
  free_units_ -= units;
  remove(first);
  if (in_front > 0) add(first, in_front);
  if (behind > 0) add(place + units, behind);
}

void ExtentMap::give_back(uint64_t offset, uint64_t size) noexcept {
  const Aside piece{static_cast<uint32_t>(offset >> shift_), static_cast<uint32_t>(size >> shift_)};
  if (aside_count_ == kMaxAside) merge_aside();
  aside_[aside_count_++] = piece;
  free_units_ += piece.size;
  if (piece.first > 0) __builtin_prefetch(&tag(piece.first - 1), 1);
  if (piece.first + piece.size < units_) __builtin_prefetch(&tag(piece.first + piece.size), 1);
}

void ExtentMap::merge_aside() noexcept {
  for (unsigned i = 0; i < aside_count_; ++i) {
    const auto [first, size] = aside_[i];
    if (first + size < units_ && tag(first + size).size > 0) prefetch_links(first + size);
    if (first > 0 && tag(first - 1).size > 0) prefetch_links(first - tag(first - 1).size);
  }
  for (unsigned i = 0; i < aside_count_; ++i) merge(aside_[i].first, aside_[i].size);
  aside_count_ = 0;
}

void ExtentMap::prefetch_links(uint32_t first) const {
  const Tag& here = tag(first);
  if (here.next != 0) __builtin_prefetch(&tag(here.next - 1), 1);
  if (here.previous != 0) __builtin_prefetch(&tag(here.previous - 1), 1);
}

void ExtentMap::merge(uint32_t first, uint32_t size) noexcept {
  if (first + size < units_) {
    const uint32_t behind = first + size;
    const uint32_t more = tag(behind).size;
    if (more > 0) remove(behind);
    size += more;
  }
  if (first > 0) {
    const uint32_t more = tag(first - 1).size;
    first -= more;
    if (more > 0) remove(first);
    size += more;
  }
  add(first, size);
}

void ExtentMap::shrink(uint64_t size) {
  remove(0);
  units_ = static_cast<uint32_t>(size >> shift_);
  free_units_ = units_;
  add(0, units_);
}

void ExtentMap::add(uint32_t first, uint32_t size) noexcept {
  const uint32_t bin = bin_of(size);
  tag(first + size - 1).size = size;
  tag(first) = {size, 0, bins_[bin]};
  if (bins_[bin] != 0) tag(bins_[bin] - 1).previous = first + 1;
  bins_[bin] = first + 1;
  (*begins_)[first / 64] |= uint64_t{1} << first % 64;
  used_bins_[bin / 64] |= uint64_t{1} << bin % 64;
}

void ExtentMap::remove(uint32_t first) noexcept {
  Tag& here = tag(first);
  const uint32_t bin = bin_of(here.size);
  if (here.next != 0) tag(here.next - 1).previous = here.previous;
  (here.previous != 0 ? tag(here.previous - 1).next : bins_[bin]) = here.next;
  if (bins_[bin] == 0) used_bins_[bin / 64] &= ~(uint64_t{1} << bin % 64);
  (*begins_)[first / 64] &= ~(uint64_t{1} << first % 64);
  tag(first + here.size - 1).size = 0;
  here.size = 0;
}

}  // namespace understudy
