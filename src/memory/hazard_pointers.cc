// SPDX-License-Identifier: Apache-2.0
#include "memory/hazard_pointers.h"

#include <array>
#include <atomic>
#include <functional>

#include "base/invariant.h"
#include "base/pause.h"
#include "platform/fork_sentinel.h"

namespace understudy {

namespace {

struct alignas(64) Record {
  std::array<std::atomic<const void*>, HazardPin::kSlotsPerThread> slots{};
  std::atomic<bool> taken{false};
  std::atomic<unsigned> process{0};  // whose thread it is
  unsigned slots_in_use = 0;         // bit per slot; only its thread looks at it
  Record* next = nullptr;            // constant once the record is in the list
};

// A number that differs between a process and its children.
std::atomic<unsigned> this_process{0};

// Records are only ever added, in front.
std::atomic<Record*> records{nullptr};

thread_local Record* own_record [[gnu::tls_model("initial-exec")]] = nullptr;

// Gives the record to other threads when its thread ends.
struct RecordReturner {
  ~RecordReturner() {
    if (own_record == nullptr) return;
    own_record->taken.store(false, std::memory_order_release);
    own_record = nullptr;
  }
};

// The thread that forked goes on with its record; those of the others belong to no
// thread.
void begin_anew_in_child() {
  const unsigned process = this_process.fetch_add(1, std::memory_order_relaxed) + 1;
  if (own_record != nullptr) own_record->process.store(process, std::memory_order_relaxed);
}

// When the library is loaded: a fork in the middle of a static variable's initialization would
// leave the child waiting for it for ever.
[[maybe_unused]] const bool registered = (platform::call_in_fork_child(begin_anew_in_child), true);

Record* claim_record() {
  const unsigned process = this_process.load(std::memory_order_relaxed);
  for (Record* record = records.load(); record != nullptr; record = record->next) {
    bool free = false;
    if (!record->taken.compare_exchange_strong(free, true)) continue;
    record->process.store(process, std::memory_order_relaxed);
    return record;
  }
  auto* record = new Record;
  record->taken.store(true, std::memory_order_relaxed);
  record->process.store(process, std::memory_order_relaxed);
  record->next = records.load();
  while (!records.compare_exchange_weak(record->next, record)) {
  }
  return record;
}

Record& record_of_this_thread() {
  if (own_record == nullptr) [[unlikely]] {
    thread_local RecordReturner returner;
    (void)returner;
    own_record = claim_record();
  }
  return *own_record;
}

}  // namespace

HazardPin::HazardPin() {
  Record& record = record_of_this_thread();
  slot_ = static_cast<unsigned>(__builtin_ctz(~record.slots_in_use));
  US_INVARIANT(slot_ < kSlotsPerThread, "a thread pins more than %u mappings at once",
               kSlotsPerThread);
  record.slots_in_use |= 1U << slot_;
}

HazardPin::~HazardPin() {
  clear();
  own_record->slots_in_use &= ~(1U << slot_);
}

void prepare_pins() { const HazardPin first; }

void HazardPin::publish(const void* mapping) {
  // An exchange, not a store: the second look at the table must not happen before it.
  own_record->slots[slot_].exchange(mapping);
}

void HazardPin::clear() { own_record->slots[slot_].store(nullptr, std::memory_order_release); }

namespace {

template <typename Matches>
bool any_slot(Matches matches) {
  const unsigned process = this_process.load(std::memory_order_relaxed);
  for (const Record* record = records.load(); record != nullptr; record = record->next) {
    if (record->process.load(std::memory_order_relaxed) != process) continue;
    for (const auto& slot : record->slots) {
      if (matches(slot.load())) return true;
    }
  }
  return false;
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
