// SPDX-License-Identifier: Apache-2.0
#include "observe/order.h"

#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "observe/order_relation.h"
#include "observe/order_report.h"
#include "platform/fork_sentinel.h"
#include "platform/log.h"
#include "platform/thread.h"

namespace understudy {

struct Order::State {
  Mutex mutex{LockRank::kOrder};
  OrderRelation relation US_GUARDED_BY(mutex);
};

namespace {

struct EndDisorder {
  TaskAccess first;
  LaterUse second;
};

// What note_end found, for confirm_end.
thread_local constinit std::optional<EndDisorder> found_at_end;

void tell(const std::vector<TaskDisorder>& found) {
  for (const auto& [first, second] : found) {
    tell_disorder(first, {.what = second.what,
                          .place = second.place,
                          .is_task = true,
                          .stream = second.task.stream});
  }
}

}  // namespace

constinit std::atomic<Order::State*> Order::state_{nullptr};
constinit std::atomic<bool> Order::has_given_up_{false};
// When the library is loaded: see CallGate.
const bool Order::registered_ = (platform::call_in_fork_child(forget_in_fork_child), true);

// A thread of the parent may have been in the middle of changing what is there.
void Order::forget_in_fork_child() {
  state_.store(nullptr, std::memory_order_relaxed);
  has_given_up_.store(false, std::memory_order_relaxed);
}

Order::State* Order::state() {
  State* known = state_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto fresh = std::make_unique<State>();
  return state_.compare_exchange_strong(known, fresh.get()) ? fresh.release() : known;
}

// Looks at the relation or changes it under the lock, and gives what `change` does. Without memory
// a change may be made in part: it is the last one then, and the program goes on.
template <typename Change>
auto Order::with_relation(Change change) {
  State& state = *Order::state();
  const MutexLock lock(state.mutex);
  return change(state.relation);
}

template <typename Step>
void Order::attempt(Step step) noexcept {
  if (has_given_up_.load(std::memory_order_relaxed)) [[unlikely]]
    return;
  try {
    step();
  } catch (const std::bad_alloc&) {
    give_up();
  }
}

void Order::give_up() noexcept {
  if (has_given_up_.exchange(true)) return;
  platform::say("no memory to look for uses of memory in disorder: the check order ends here");
}

// ---- Calls of the program ----

void Order::note_queued(uint32_t stream, QueuedTask task) noexcept {
  attempt([&] {
    with_relation([&](OrderRelation& relation) { relation.add_task(stream, std::move(task)); });
  });
}

void Order::note_behind(uint32_t stream, uint64_t last_queued, StreamTask behind) noexcept {
  attempt([&] {
    with_relation(
        [&](OrderRelation& relation) { relation.put_behind(stream, last_queued, behind); });
  });
}

void Order::note_behind_all(uint32_t stream, uint64_t last_queued) noexcept {
  attempt([&] {
    with_relation([&](OrderRelation& relation) { relation.put_behind_all(stream, last_queued); });
  });
}

void Order::note_freed(StreamTask last, VirtualRange range) noexcept {
  attempt([&] {
    QueuedTask end;
    end.position = last.position;
    end.uses.push_back({range, AccessUse::kEnd});
    end.place = History::here();
    std::vector<TaskDisorder> found;
    with_relation(
        [&](OrderRelation& relation) { relation.add_end(last.stream, std::move(end), found); });
    tell(found);
  });
}

void Order::note_known(StreamTask task) noexcept {
  attempt([&] { with_relation([&](OrderRelation& relation) { relation.know(task); }); });
}

void Order::note_wait(StreamTask task) noexcept {
  // Another thread may yet set what is waited for.
  if (platform::program_threads() != 1) return;
  attempt([&] {
    const auto found =
        with_relation([&](OrderRelation& relation) { return relation.find_endless_wait(task); });
    if (found) tell_endless_wait(*found, History::here());
  });
}

void Order::note_all_known() noexcept {
  attempt([&] { with_relation([&](OrderRelation& relation) { relation.know_all(); }); });
}

void Order::note_call(std::span<const MemoryUse> uses) noexcept {
  attempt([&] {
    for (const MemoryUse& use : uses) {
      const auto first =
          with_relation([&](OrderRelation& relation) { return relation.find_conflict(use); });
      if (first) tell_disorder(*first, {.what = use, .place = History::here()});
    }
  });
}

void Order::note_end(ObjectKind kind, VirtualAddress address) noexcept {
  attempt([&] {
    found_at_end.reset();
    const std::optional<ObjectLife> life = History::find_live(kind, address);
    if (!life) return;
    const MemoryUse use{{address, life->size}, AccessUse::kEnd};
    const auto first = with_relation([&](OrderRelation& relation) {
      const std::optional<TaskAccess> found = relation.find_conflict(use);
      relation.forget(use.range);
      return found;
    });
    if (first) found_at_end = {*first, {.what = use, .place = {}, .ended = words_of(kind).ends}};
  });
}

void Order::confirm_end() noexcept {
  if (!found_at_end) return;
  attempt([&] {
    found_at_end->second.place = History::here();
    tell_disorder(found_at_end->first, found_at_end->second);
  });
  found_at_end.reset();
}

void Order::note_begin(VirtualRange range) noexcept {
  attempt([&] { with_relation([&](OrderRelation& relation) { relation.forget(range); }); });
}

// ---- Streams ----

void Order::note_recorded(StreamTask record) noexcept {
  attempt([&] { with_relation([&](OrderRelation& relation) { relation.record(record); }); });
}

void Order::note_waited(uint32_t stream, StreamTask record) noexcept {
  attempt([&] { with_relation([&](OrderRelation& relation) { relation.wait(stream, record); }); });
}

void Order::note_waited_for_others(uint32_t stream) noexcept {
  attempt(
      [&] { with_relation([&](OrderRelation& relation) { relation.wait_for_others(stream); }); });
}

void Order::note_notify_changed(StreamTask task, uint32_t notify) noexcept {
  attempt([&] {
    with_relation([&](OrderRelation& relation) { relation.change_notify(task, notify); });
  });
}

void Order::note_notify_waited(uint32_t stream, uint32_t notify) noexcept {
  attempt([&] {
    with_relation([&](OrderRelation& relation) { relation.wait_for_notify(stream, notify); });
  });
}

void Order::note_notify_shared(uint32_t notify) noexcept {
  attempt([&] { with_relation([&](OrderRelation& relation) { relation.share_notify(notify); }); });
}

void Order::note_function_begun(StreamTask task) noexcept {
  attempt([&] { with_relation([&](OrderRelation& relation) { relation.begin_function(task); }); });
}

void Order::note_function_ended(uint32_t stream, AfterFunction after) noexcept {
  attempt([&] {
    with_relation([&](OrderRelation& relation) {
      relation.end_function();
      if (after == AfterFunction::kWaits) relation.go_on(stream);
    });
  });
}

void Order::note_told(StreamTask task) noexcept {
  attempt([&] { with_relation([&](OrderRelation& relation) { relation.tell(task); }); });
}

void Order::note_found(StreamTask task, std::span<const MemoryUse> uses) noexcept {
  attempt([&] {
    std::vector<TaskDisorder> found;
    with_relation(
        [&](OrderRelation& relation) { relation.use(task, uses, relation.place_of(task), found); });
    tell(found);
  });
}

void Order::note_ending(StreamTask task) noexcept {
  attempt([&] {
    std::vector<TaskDisorder> found;
    with_relation([&](OrderRelation& relation) { relation.end_memory(task, found); });
    tell(found);
  });
}

void Order::note_done(StreamTask task, Outcome outcome) noexcept {
  attempt([&] {
    std::vector<TaskDisorder> found;
    with_relation([&](OrderRelation& relation) {
      // While it runs it is queued, so that calls at the same time find it.
      const std::optional<QueuedTask> queued = relation.end_task(task);
      if (queued && outcome == Outcome::kDone) {
        relation.use(task, queued->uses, queued->place, found);
      }
      relation.make_ends(task, found);
    });
    tell(found);
  });
}

}  // namespace understudy
