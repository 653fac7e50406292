// SPDX-License-Identifier: Apache-2.0
#include "memory/reservation_directory.h"

#include <algorithm>
#include <utility>

namespace understudy {

ReservationDirectory::~ReservationDirectory() {
  delete_below(root_);
  while (spare_ != nullptr) delete std::exchange(spare_, spare_->next_spare);
}

void ReservationDirectory::delete_below(Node& node) {
  for (const std::atomic<uint64_t>& entry : node.entries) {
    const uint64_t word = entry.load(std::memory_order_relaxed);
    if (!leads_on(word)) continue;
    delete_below(*node_of(word));
    delete node_of(word);
  }
}

void ReservationDirectory::prepare() {
  while (spares_ < kNodesPerRange) {
    put_spare(*new Node);
    ++nodes_;
  }
}

void ReservationDirectory::enter(VirtualRange range, Reservation& reservation) noexcept {
  change(root_, kRootShift, range, reinterpret_cast<uint64_t>(&reservation));
}

void ReservationDirectory::leave(VirtualRange range) noexcept {
  change(root_, kRootShift, range, 0);
}

void ReservationDirectory::change(Node& node, unsigned shift, VirtualRange range,
                                  uint64_t word) noexcept {
  const auto put = [&](std::atomic<uint64_t>& entry, uint64_t value) {
    if (value != 0) {
      ++node.used;
    } else {
      --node.used;
    }
    entry.store(value, std::memory_order_release);
  };
  const uint64_t span = uint64_t{1} << shift;
  for (VirtualAddress at = range.base; at < range.end();) {
    const VirtualAddress next = std::min(align_down(at, span) + span, range.end());
    std::atomic<uint64_t>& entry = node.entries[at >> shift & (kEntries - 1)];
    if (next - at == span) {
      put(entry, word);
    } else {
      const uint64_t seen = entry.load(std::memory_order_relaxed);
      Node& below = seen != 0 ? *node_of(seen) : take_spare();
      change(below, shift - kNodeBits, {at, next - at}, word);
      if (seen == 0) {
        put(entry, reinterpret_cast<uint64_t>(&below) | kLeadsOn);
      } else if (below.used == 0) {
        put(entry, 0);
        put_spare(below);
      }
    }
    at = next;
  }
}

ReservationDirectory::Node& ReservationDirectory::take_spare() noexcept {
  --spares_;
  return *std::exchange(spare_, spare_->next_spare);
}

void ReservationDirectory::put_spare(Node& node) noexcept {
  ++spares_;
  node.next_spare = std::exchange(spare_, &node);
}

}  // namespace understudy
