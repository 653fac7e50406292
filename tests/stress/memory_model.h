// SPDX-License-Identifier: Apache-2.0
//
// What the rules say about blocks, handles, reservations and mappings, in the simplest form: maps
// and counters. Each function named after a call answers the code the real call must give and does
// to the model what the real call does to memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {

enum class Home { kDevice0, kDevice1, kHost };

class MemoryModel {
 public:
  using Page = std::optional<std::vector<uint8_t>>;  // empty while the contents are undefined

  struct Block {
    uint64_t handle;
    size_t size;
    Home home;
    int references = 1;
    int mappings = 0;
    Page first = std::nullopt;
    Page last = std::nullopt;
  };

  struct Mapping {
    size_t size;
    std::shared_ptr<Block> block;
  };

  struct Found {
    uint64_t start;
    const Mapping* mapping;
  };

  // `device_bytes` is what either device has to give.
  explicit MemoryModel(size_t device_bytes) : free_{device_bytes, device_bytes} {}

  aclError create(Home home, size_t size) const {
    const bool fits = home == Home::kHost || size <= free_[device(home)];
    return fits ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
  }
  void created(uint64_t handle, Home home, size_t size) {
    blocks_[handle] = std::make_shared<Block>(Block{.handle = handle, .size = size, .home = home});
    if (home != Home::kHost) free_[device(home)] -= size;
  }
  bool is_live(uint64_t handle) const { return blocks_.contains(handle); }

  aclError free_block(uint64_t handle) {
    const auto found = blocks_.find(handle);
    if (found == blocks_.end() || found->second->references == 0) return kInvalidParam;
    --found->second->references;
    end_if_unused(found->second);
    return ACL_SUCCESS;
  }

  void reserved(uint64_t start, size_t size) { reservations_[start] = usable(size); }
  // Whether a new reservation would lie apart from all others.
  bool is_apart(uint64_t start, size_t size) const {
    for (const auto& [other, other_size] : reservations_) {
      if (start < other + other_size && other < start + usable(size)) return false;
    }
    return true;
  }

  aclError release(uint64_t start) {
    const auto found = reservations_.find(start);
    if (found == reservations_.end() || has_mappings(*found)) return kInvalidParam;
    homes_.erase(found->first);
    reservations_.erase(found);
    return ACL_SUCCESS;
  }

  aclError map(uint64_t start, size_t size, uint64_t handle) {
    const auto block = blocks_.find(handle);
    if (block == blocks_.end() || block->second->references == 0) return kInvalidParam;
    if (size != block->second->size || start % kGranule != 0) return kInvalidParam;
    const auto* const reservation = reservation_around(start, size);
    if (reservation == nullptr) return kInvalidParam;
    for (const auto& [other, mapping] : mappings_) {
      if (start < other + mapping.size && other < start + size) return kInvalidParam;
    }
    // The first mapping binds the reservation.
    const auto home = homes_.emplace(reservation->first, block->second->home).first;
    if (home->second != block->second->home) return kInvalidParam;
    mappings_[start] = {size, block->second};
    ++block->second->mappings;
    return ACL_SUCCESS;
  }

  aclError unmap(uint64_t start) {
    const auto found = mappings_.find(start);
    if (found == mappings_.end()) return kInvalidParam;
    const std::shared_ptr<Block> block = found->second.block;
    mappings_.erase(found);
    --block->mappings;
    end_if_unused(block);
    return ACL_SUCCESS;
  }

  // On success the block's handle, else nothing.
  std::optional<uint64_t> retain(uint64_t start) {
    const auto found = mappings_.find(start);
    if (found == mappings_.end()) return std::nullopt;
    ++found->second.block->references;
    return found->second.block->handle;
  }

  std::optional<Found> mapping_at(uint64_t place) const {
    auto after = mappings_.upper_bound(place);
    if (after == mappings_.begin()) return std::nullopt;
    --after;
    if (place >= after->first + after->second.size) return std::nullopt;
    return Found{after->first, &after->second};
  }

  // Whether a copy may touch the whole range: mapped without a gap, within one reservation.
  bool is_usable(uint64_t place, size_t count) const {
    if (reservation_around(place, count) == nullptr) return false;
    for (uint64_t next = place; next < place + count;) {
      const std::optional<Found> found = mapping_at(next);
      if (!found) return false;
      next = found->start + found->mapping->size;
    }
    return true;
  }

  // The remembered page that holds the byte, and the byte's offset in it; null between the two.
  struct Byte {
    Page* page;
    size_t offset;
  };
  Byte byte_at(uint64_t place) {
    const Found found = *mapping_at(place);
    Block& block = *found.mapping->block;
    const size_t offset = place - found.start;
    if (offset < kPage) return {&block.first, offset};
    if (offset >= block.size - kPage) return {&block.last, offset - (block.size - kPage)};
    return {nullptr, 0};
  }

  size_t free_on(Home home) const { return free_[device(home)]; }
  const std::map<uint64_t, size_t>& reservations() const { return reservations_; }
  const std::map<uint64_t, Mapping>& mappings() const { return mappings_; }
  const std::map<uint64_t, std::shared_ptr<Block>>& blocks() const { return blocks_; }

 private:
  static constexpr aclError kInvalidParam = ACL_ERROR_RT_PARAM_INVALID;

  static size_t usable(size_t size) { return (size + kGranule - 1) / kGranule * kGranule; }
  static size_t device(Home home) { return home == Home::kDevice1 ? 1 : 0; }

  bool has_mappings(const std::pair<const uint64_t, size_t>& reservation) const {
    const auto next = mappings_.lower_bound(reservation.first);
    return next != mappings_.end() && next->first < reservation.first + reservation.second;
  }

  const std::pair<const uint64_t, size_t>* reservation_around(uint64_t start, size_t size) const {
    auto after = reservations_.upper_bound(start);
    if (after == reservations_.begin()) return nullptr;
    --after;
    const bool inside = start + size <= after->first + after->second;
    return inside ? &*after : nullptr;
  }

  void end_if_unused(const std::shared_ptr<Block>& block) {
    if (block->references > 0 || block->mappings > 0) return;
    if (block->home != Home::kHost) free_[device(block->home)] += block->size;
    blocks_.erase(block->handle);
  }

  size_t free_[2];
  std::map<uint64_t, std::shared_ptr<Block>> blocks_;  // by handle
  std::map<uint64_t, size_t> reservations_;            // start and usable size
  std::map<uint64_t, Home> homes_;                     // of reservations that had a mapping
  std::map<uint64_t, Mapping> mappings_;               // by start
};

}  // namespace understudy_test
