// SPDX-License-Identifier: Apache-2.0
//
// What was found at addresses so far, by TiB: host memory, or device addresses, which they stay for
// ever. A copy trusts an address of the host where host memory was found and nothing else, and
// looks closer everywhere else. Any thread may call anything.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/virtual_range.h"

namespace understudy {

class AddressKinds {
 public:
  static constexpr VirtualAddress kEnd = 256 * kTiB;
  // Hosts keep what lies below free, so that pointers near NULL fault (vm.mmap_min_addr). A program
  // at a fixed address has its own memory in the same TiB.
  static constexpr VirtualAddress kFirstTrusted = 64 * kKiB;

  // REQUIRES: address < kEnd.
  bool is_host(VirtualAddress address) const {
    return at(address) == Kind::kHost && address >= kFirstTrusted;
  }
  bool was_device(VirtualAddress address) const {
    return address < kEnd && at(address) == Kind::kDevice;
  }

  // Unless device addresses were there before.
  void note_host(VirtualAddress address) {
    if (address >= kEnd) return;
    Kind unknown = Kind::kUnknown;
    kinds_[address / kTiB].compare_exchange_strong(unknown, Kind::kHost, std::memory_order_relaxed);
  }
  // REQUIRES: inside the table's addresses.
  void note_device(VirtualRange range) {
    for (VirtualAddress at = align_down(range.base, kTiB); at < range.end(); at += kTiB) {
      kinds_[at / kTiB].store(Kind::kDevice, std::memory_order_relaxed);
    }
  }

 private:
  enum class Kind : uint8_t { kUnknown, kHost, kDevice };

  Kind at(VirtualAddress address) const {
    return kinds_[address / kTiB].load(std::memory_order_relaxed);
  }

  std::array<std::atomic<Kind>, kEnd / kTiB> kinds_{};
};

}  // namespace understudy
