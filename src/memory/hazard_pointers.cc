// SPDX-License-Identifier: Apache-2.0
#include "memory/hazard_pointers.h"

#include <functional>

#include "base/pause.h"
#include "platform/fork_sentinel.h"

namespace understudy {

constinit thread_local HazardRecord* own_hazard_record = nullptr;

namespace {

// Scans that find a record unused before it is taken off the list.
constexpr uint8_t kIdleScans = 16;

// Records side by side, with a bit each in words that a scan reads at one go.
struct alignas(64) HazardBlock {
  static constexpr unsigned kWords = 8;
  static constexpr unsigned kPerWord = 64;

  std::array<std::atomic<uint64_t>, kWords> listed{};
  std::array<std::atomic<uint64_t>, kWords> taken{};  // records that have a thread
  std::atomic<unsigned> words{0};                     // that ever had a bit
  std::atomic<HazardBlock*> next{nullptr};            // blocks are only ever added
  std::array<HazardRecord, kWords * kPerWord> records{};

  HazardRecord& record(unsigned word, uint64_t bits) {
    return records[word * kPerWord + static_cast<unsigned>(__builtin_ctzll(bits))];
  }
};

// Pages of it that no thread has needed take no memory.
constinit HazardBlock first_block;

// Calls visit(record) for the listed records, until it returns true. Whether it did.
template <typename Visit>
bool visit_listed(Visit visit) {
  for (HazardBlock* block = &first_block; block != nullptr; block = block->next.load()) {
    const unsigned words = block->words.load();
    for (unsigned word = 0; word < words; ++word) {
      for (uint64_t bits = block->listed[word].load(); bits != 0; bits &= bits - 1) {
        if (visit(block->record(word, bits))) return true;
      }
    }
  }
  return false;
}

// Gives the record to other threads when its thread ends.
struct RecordReturner {
  ~RecordReturner() {
    const HazardRecord* const record = own_hazard_record;
    if (record == nullptr) return;
    own_hazard_record = nullptr;
    record->taken->fetch_and(~record->bit, std::memory_order_release);
  }
};

// The thread that forked goes on with its record; the others belong to no thread, and a scan of the
// parent may have been in the middle of any.
void begin_anew_in_child() {
  HazardRecord* const own = own_hazard_record;
  for (HazardBlock* block = &first_block; block != nullptr; block = block->next.load()) {
    for (unsigned word = 0; word < block->words.load(); ++word) {
      const uint64_t known = block->taken[word].load() | block->listed[word].load();
      for (uint64_t bits = known; bits != 0; bits &= bits - 1) {
        HazardRecord& record = block->record(word, bits);
        if (&record == own) continue;
        for (auto& slot : record.slots) slot.store(nullptr, std::memory_order_relaxed);
        record.slots_in_use = 0;
        record.listing.store(HazardListing::kUnlisted, std::memory_order_relaxed);
      }
      block->taken[word].store(0, std::memory_order_relaxed);
      block->listed[word].store(0, std::memory_order_relaxed);
    }
  }
  if (own == nullptr) return;
  own->taken->fetch_or(own->bit);
  own->listing.store(HazardListing::kUnlisted, std::memory_order_relaxed);
  own->list();
}

// When the library is loaded: a fork in the middle of a static variable's initialization would
// leave the child waiting for it for ever.
[[maybe_unused]] const bool registered = (platform::call_in_fork_child(begin_anew_in_child), true);

HazardRecord* claim_in(HazardBlock& block) {
  for (unsigned word = 0; word < HazardBlock::kWords; ++word) {
    uint64_t taken = block.taken[word].load(std::memory_order_relaxed);
    while (taken != UINT64_MAX) {
      const uint64_t bit = ~taken & (taken + 1);
      if (!block.taken[word].compare_exchange_weak(taken, taken | bit)) continue;
      unsigned words = block.words.load();
      while (words <= word && !block.words.compare_exchange_weak(words, word + 1)) {
      }
      HazardRecord& record = block.record(word, bit);
      // Once: a scan may look at a record that its last thread has left listed.
      if (record.bit == 0) {
        record.taken = &block.taken[word];
        record.listed = &block.listed[word];
        record.bit = bit;
      }
      return &record;
    }
  }
  return nullptr;
}

HazardRecord* claim_record() {
  HazardBlock* block = &first_block;
  while (true) {
    if (HazardRecord* const record = claim_in(*block)) return record;
    HazardBlock* next = block->next.load();
    if (next == nullptr) {
      auto* const fresh = new HazardBlock;
      if (block->next.compare_exchange_strong(next, fresh)) {
        next = fresh;
      } else {
        delete fresh;  // another thread was faster
      }
    }
    block = next;
  }
}

}  // namespace

void HazardRecord::list() noexcept {
  // The scan that takes it off may have lost its processor.
  for (unsigned looks = 0; listing.load() == HazardListing::kLeaving; ++looks) {
    looks < 100 ? pause_briefly() : nap();
  }
  if (listing.load() == HazardListing::kListed) return;
  idle_scans.store(0, std::memory_order_relaxed);
  listed->fetch_or(bit);
  listing.store(HazardListing::kListed);
}

HazardRecord& claim_hazard_record() {
  thread_local RecordReturner returner;
  (void)returner;
  own_hazard_record = claim_record();
  return *own_hazard_record;
}

void prepare_pins() { const HazardPin first; }

namespace {

// A record whose thread pins nothing, and did not lately, leaves the list.
void note_idle(HazardRecord& record) {
  if (record.is_used.load(std::memory_order_relaxed)) {
    record.is_used.store(false, std::memory_order_relaxed);
    record.idle_scans.store(0, std::memory_order_relaxed);
    return;
  }
  const uint8_t scans = record.idle_scans.load(std::memory_order_relaxed);
  if (scans < kIdleScans) {
    record.idle_scans.store(scans + 1, std::memory_order_relaxed);
    return;
  }
  auto listed = HazardListing::kListed;
  if (!record.listing.compare_exchange_strong(listed, HazardListing::kLeaving)) return;
  for (const auto& slot : record.slots) {
    if (slot.load() == nullptr) continue;
    record.listing.store(HazardListing::kListed);
    return;
  }
  record.listed->fetch_and(~record.bit);
  record.listing.store(HazardListing::kUnlisted);
}

template <typename Matches>
bool any_slot(Matches matches) {
  return visit_listed([&](HazardRecord& record) {
    bool is_idle = true;
    for (const auto& slot : record.slots) {
      const void* const pinned = slot.load();
      if (pinned == nullptr) continue;
      if (matches(pinned)) return true;
      is_idle = false;
    }
    if (is_idle) note_idle(record);
    return false;
  });
}

}  // namespace

bool is_pinned(const void* mapping) {
  return any_slot([&](const void* pinned) { return pinned == mapping; });
}

void wait_until_unpinned(const void* begin, const void* end) {
  // What the caller did to keep threads from pinning it comes before the first look.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (is_any_pinned(begin, end)) nap();
}

bool is_any_pinned(const void* begin, const void* end) {
  return any_slot([&](const void* pinned) {
    return !std::less<>()(pinned, begin) && std::less<>()(pinned, end);
  });
}

}  // namespace understudy
