// SPDX-License-Identifier: Apache-2.0
//
// Which reservation is around a device address, in at most three loads: a radix tree over 48-bit
// addresses whose entries cover 512 GiB, 1 GiB or one granule. An entry is empty, or a reservation
// that covers all of it, or leads to a node of 512 smaller ones. A node exists while an entry of it
// is in use, so memory follows what is reserved, at most 8 bytes per granule of small reservations.
//
// Looking up takes no lock and may run at any time. A node that is empty serves elsewhere later: a
// reader that was on its way to it may find nothing, or a reservation that is not around the
// address. Either is right, for every reservation that was in that node had ended meanwhile.
// Changes come from one thread at a time. Ranges are multiples of the granule.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/virtual_range.h"
#include "memory/reservation.h"

namespace understudy {

class ReservationDirectory {
 public:
  ReservationDirectory() = default;
  ~ReservationDirectory();
  ReservationDirectory(const ReservationDirectory&) = delete;
  ReservationDirectory& operator=(const ReservationDirectory&) = delete;

  // The reservation around an address; null if there is none. It may end at any time: the caller
  // takes its lock and looks whether it is still around the address.
  Reservation* find(VirtualAddress address) const {
    if (address >= kEnd) return nullptr;
    const Node* node = &root_;
    for (unsigned shift = kRootShift;; shift -= kNodeBits) {
      const uint64_t word =
          node->entries[address >> shift & (kEntries - 1)].load(std::memory_order_acquire);
      if (!leads_on(word)) return reservation_of(word);
      // The node was one of granules when this thread was led there.
      if (shift == kGranuleShift) return nullptr;
      node = node_of(word);
    }
  }

  // Makes sure that the next enter() has the nodes it needs. May throw std::bad_alloc.
  void prepare();
  // REQUIRES: prepare() was called since the last enter(); no reservation is in the range.
  void enter(VirtualRange range, Reservation& reservation) noexcept;
  // REQUIRES: exactly this range was entered.
  void leave(VirtualRange range) noexcept;

  // How many nodes there are, those that wait to be used again included.
  uint64_t nodes() const { return nodes_; }

 private:
  static constexpr unsigned kNodeBits = 9;
  static constexpr unsigned kEntries = 1U << kNodeBits;
  static constexpr unsigned kRootShift = kGranuleShift + 2 * kNodeBits;
  static constexpr VirtualAddress kEnd = VirtualAddress{1} << (kRootShift + kNodeBits);
  // Two at each end of a range.
  static constexpr unsigned kNodesPerRange = 4;
  // In the word of an entry that leads to a node.
  static constexpr uint64_t kLeadsOn = 1;

  struct Node {
    std::array<std::atomic<uint64_t>, kEntries> entries{};
    unsigned used = 0;
    Node* next_spare = nullptr;
  };

  static bool leads_on(uint64_t word) { return (word & kLeadsOn) != 0; }
  static Reservation* reservation_of(uint64_t word) {
    return reinterpret_cast<Reservation*>(word);  // NOLINT(performance-no-int-to-ptr)
  }
  static Node* node_of(uint64_t word) {
    return reinterpret_cast<Node*>(word - kLeadsOn);  // NOLINT(performance-no-int-to-ptr)
  }
  static void delete_below(Node& node);

  // Gives each entry that the range covers a word, where it had none, or 0, where it had one.
  void change(Node& node, unsigned shift, VirtualRange range, uint64_t word) noexcept;
  Node& take_spare() noexcept;
  void put_spare(Node& node) noexcept;

  Node root_;
  Node* spare_ = nullptr;
  unsigned spares_ = 0;
  uint64_t nodes_ = 0;
};

}  // namespace understudy
