// SPDX-License-Identifier: Apache-2.0
#include "observe/unwritten_lines.h"

#include <algorithm>
#include <bit>
#include <new>

namespace understudy {

namespace {

// Bits `first` to before `end` of a word. REQUIRES: first < end.
constexpr uint64_t bits_between(unsigned first, unsigned end) {
  return ~uint64_t{0} >> (64 - (end - first)) << first;
}

}  // namespace

// Puts together what was never written of a range, from its beginning to its end.
class UnwrittenLines::Collector {
 public:
  explicit Collector(VirtualRange asked) : asked_(asked) {}

  // Lines come in the order of their addresses. Of the outermost only a part may be asked for.
  void add(const Lines& lines) {
    const VirtualAddress begin = std::max(lines.granule + lines.first * kLine, asked_.base);
    const VirtualAddress end = std::min(lines.granule + lines.end * kLine, asked_.end());
    if (part_.bytes == 0) {
      part_.first = {begin, end - begin};
    } else if (part_.first.end() == begin) {
      part_.first.size += end - begin;
    }
    part_.bytes += end - begin;
  }
  std::optional<Part> result() const {
    if (part_.bytes == 0) return std::nullopt;
    return part_;
  }

 private:
  const VirtualRange asked_;
  Part part_;
};

bool UnwrittenLines::Granule::divide() noexcept {
  if (state == State::kMixed) return true;
  bits.reset(new (std::nothrow) Bits);
  if (bits == nullptr) {
    state = State::kWritten;
    return false;
  }
  if (state == State::kUnwritten) {
    bits->words.fill(~uint64_t{0});
    bits->unwritten = kLines;
  }
  state = State::kMixed;
  return true;
}

template <typename Visit>
void UnwrittenLines::for_each_granule(VirtualRange range, Visit visit) {
  for (VirtualAddress at = range.base; at < range.end();) {
    const VirtualAddress granule = align_down(at, kGranule);
    const VirtualAddress end = std::min(granule + kGranule, range.end());
    visit(Lines{granule, static_cast<unsigned>((at - granule) / kLine),
                static_cast<unsigned>((end - granule + kLine - 1) / kLine)});
    at = end;
  }
}

template <typename Visit>
void UnwrittenLines::for_each_word(const Lines& lines, Visit visit) {
  for (unsigned at = lines.first; at < lines.end;) {
    const unsigned word = at / kWordBits;
    const unsigned end = std::min((word + 1) * kWordBits, lines.end);
    visit(word, bits_between(at - word * kWordBits, end - word * kWordBits));
    at = end;
  }
}

UnwrittenLines::Granule* UnwrittenLines::granule_at(VirtualAddress address) const noexcept {
  const auto region = regions_.find(address / kGiB);
  if (region == regions_.end()) return nullptr;
  Granule& granule = (*region->second)[address % kGiB / kGranule];
  return granule.state == Granule::State::kUnknown ? nullptr : &granule;
}

void UnwrittenLines::begin(VirtualRange range) noexcept {
  try {
    for (VirtualAddress at = range.base; at < range.end(); at += kGranule) {
      auto region = regions_.find(at / kGiB);
      if (region == regions_.end()) {
        region = regions_.emplace(at / kGiB, std::make_unique<Region>()).first;
      }
      (*region->second)[at % kGiB / kGranule].set(Granule::State::kUnwritten);
    }
  } catch (const std::bad_alloc&) {
    forget(range);
  }
}

void UnwrittenLines::forget(VirtualRange range) noexcept {
  for (VirtualAddress at = range.base; at < range.end(); at += kGranule) {
    if (Granule* const granule = granule_at(at)) granule->set(Granule::State::kUnknown);
  }
}

void UnwrittenLines::renew(VirtualRange range) noexcept {
  for_each_granule(range, [&](const Lines& lines) {
    Granule* const granule = granule_at(lines.granule);
    if (granule == nullptr || granule->state == Granule::State::kUnwritten) return;
    if (lines.are_all()) {
      granule->set(Granule::State::kUnwritten);
      return;
    }
    if (!granule->divide()) return;
    Bits& bits = *granule->bits;
    for_each_word(lines, [&](unsigned word, uint64_t mask) {
      bits.unwritten += static_cast<unsigned>(std::popcount(mask & ~bits.words[word]));
      bits.words[word] |= mask;
    });
    if (bits.unwritten == kLines) granule->set(Granule::State::kUnwritten);
  });
}

void UnwrittenLines::write(VirtualRange range) noexcept {
  for_each_granule(range, [&](const Lines& lines) {
    Granule* const granule = granule_at(lines.granule);
    if (granule == nullptr || granule->state == Granule::State::kWritten) return;
    if (lines.are_all()) {
      granule->set(Granule::State::kWritten);
      return;
    }
    if (!granule->divide()) return;
    Bits& bits = *granule->bits;
    for_each_word(lines, [&](unsigned word, uint64_t mask) {
      bits.unwritten -= static_cast<unsigned>(std::popcount(mask & bits.words[word]));
      bits.words[word] &= ~mask;
    });
    if (bits.unwritten == 0) granule->set(Granule::State::kWritten);
  });
}

std::optional<UnwrittenLines::Part> UnwrittenLines::find(VirtualRange range) const noexcept {
  Collector found(range);
  for_each_granule(range, [&](const Lines& lines) {
    const Granule* const granule = granule_at(lines.granule);
    if (granule == nullptr || granule->state == Granule::State::kWritten) return;
    if (granule->state == Granule::State::kUnwritten) {
      found.add(lines);
      return;
    }
    for_each_word(lines, [&](unsigned word, uint64_t mask) {
      for (uint64_t left = granule->bits->words[word] & mask; left != 0;) {
        const auto first = static_cast<unsigned>(std::countr_zero(left));
        const unsigned end = first + static_cast<unsigned>(std::countr_one(left >> first));
        found.add({lines.granule, word * kWordBits + first, word * kWordBits + end});
        left &= ~bits_between(first, end);
      }
    });
  });
  return found.result();
}

}  // namespace understudy
