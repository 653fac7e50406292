// SPDX-License-Identifier: Apache-2.0
#include "memory/hazard_pointers.h"

#include <functional>

#include "base/pause.h"
#include "platform/fork_sentinel.h"

namespace understudy {

constinit thread_local HazardRecord* own_hazard_record = nullptr;

namespace {

// A number that differs between a process and its children.
std::atomic<unsigned> this_process{0};

// Records are only ever added, in front.
std::atomic<HazardRecord*> records{nullptr};

// Gives the record to other threads when its thread ends.
struct RecordReturner {
  ~RecordReturner() {
    if (own_hazard_record == nullptr) return;
    own_hazard_record->taken.store(false, std::memory_order_release);
    own_hazard_record = nullptr;
  }
};

// The thread that forked goes on with its record; those of the others belong to no
// thread.
void begin_anew_in_child() {
  const unsigned process = this_process.fetch_add(1, std::memory_order_relaxed) + 1;
  if (own_hazard_record != nullptr) {
    own_hazard_record->process.store(process, std::memory_order_relaxed);
  }
}

// When the library is loaded: a fork in the middle of a static variable's initialization would
// leave the child waiting for it for ever.
[[maybe_unused]] const bool registered = (platform::call_in_fork_child(begin_anew_in_child), true);

HazardRecord* claim_record() {
  const unsigned process = this_process.load(std::memory_order_relaxed);
  for (HazardRecord* record = records.load(); record != nullptr; record = record->next) {
    bool free = false;
    if (!record->taken.compare_exchange_strong(free, true)) continue;
    record->process.store(process, std::memory_order_relaxed);
    return record;
  }
  auto* record = new HazardRecord;
  record->taken.store(true, std::memory_order_relaxed);
  record->process.store(process, std::memory_order_relaxed);
  record->next = records.load();
  while (!records.compare_exchange_weak(record->next, record)) {
  }
  return record;
}

}  // namespace

HazardRecord& claim_hazard_record() {
  thread_local RecordReturner returner;
  (void)returner;
  own_hazard_record = claim_record();
  return *own_hazard_record;
}

void prepare_pins() { const HazardPin first; }

namespace {

template <typename Matches>
bool any_slot(Matches matches) {
  const unsigned process = this_process.load(std::memory_order_relaxed);
  for (const HazardRecord* record = records.load(); record != nullptr; record = record->next) {
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
