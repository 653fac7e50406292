// SPDX-License-Identifier: Apache-2.0
#include "observe/history.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <new>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "base/sizes.h"
#include "observe/advice.h"
#include "observe/device_choices.h"
#include "observe/order.h"
#include "observe/page_waste.h"
#include "observe/recorder.h"
#include "platform/fork_sentinel.h"
#include "platform/thread.h"

namespace understudy {

namespace {

// The order of an end that no life is known for.
constexpr uint64_t kOnlyRecorded = UINT64_MAX;

thread_local constinit const char* current_function [[gnu::tls_model("initial-exec")]] = nullptr;

// Of two lives that a number may be of, whether the second tells more: what was in a reservation
// rather than that, what lives, what begins there, what began last.
bool tells_more(const ObjectLife& known, const ObjectLife& other, uint64_t number) {
  const auto rank = [number](const ObjectLife& life) {
    return std::tuple(life.kind != ObjectKind::kReservation, !life.has_ended, life.number == number,
                      life.order);
  };
  return rank(other) > rank(known);
}

}  // namespace

struct History::Key {
  ObjectKind kind;
  uint64_t number;

  bool operator==(const Key&) const = default;
  uint64_t mixed() const {
    const uint64_t product = (number + static_cast<uint64_t>(kind)) * 0x9e3779b97f4a7c15;
    return product ^ product >> 32;
  }
  struct Hash {
    size_t operator()(const Key& key) const { return key.mixed(); }
  };
};

// A part of the lives, by their numbers, so that threads seldom meet.
class History::Shard {
 public:
  // May throw std::bad_alloc, and knows nothing of the object then.
  void begin(const ObjectLife& life) US_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto [found, is_new] = lives_.try_emplace(Key{life.kind, life.number}, life);
    if (is_new) return;
    // Its end may come behind this beginning, and is not noted then.
    if (found->second.place_pages != nullptr) PageWaste::remove(found->second);
    found->second = life;
  }
  void add_handle(const Key& key) US_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = lives_.find(key);
    if (found == lives_.end()) return;
    ObjectLife& life = found->second;
    ++life.handles;
    life.has_ended = false;  // one can be had again after the last was freed, of a mapping
  }
  uint64_t order_of_live(const Key& key) US_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = lives_.find(key);
    return found == lives_.end() || found->second.has_ended ? 0 : found->second.order;
  }
  std::optional<ObjectLife> find_live(const Key& key) US_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = lives_.find(key);
    if (found == lives_.end() || found->second.has_ended) return std::nullopt;
    return found->second;
  }
  void end(const Key& key, uint64_t order, const ProgramPlace& place) US_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = lives_.find(key);
    if (found == lives_.end() || found->second.order != order || found->second.has_ended) return;
    if (--found->second.handles == 0) end_locked(found->second, place, nullptr);
  }
  template <typename Ends>
  void end_all(Ends ends, const ProgramPlace& place, const char* cause) US_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (auto& [key, life] : lives_) {
      if (!life.has_ended && ends(life)) end_locked(life, place, cause);
    }
    forget_oldest_locked();
  }
  template <typename Visit>
  void for_each(Visit visit) US_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (auto& [key, life] : lives_) visit(life);
  }
  void set_told(const ObjectLife& told) US_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = lives_.find({told.kind, told.number});
    if (found != lives_.end() && found->second.order == told.order) found->second.was_told = true;
  }

 private:
  struct Ended {
    Key key;
    uint64_t order;
  };
  static constexpr size_t kMostEnded = 128;

  void end_locked(ObjectLife& life, const ProgramPlace& place, const char* cause)
      US_REQUIRES(mutex_) {
    life.has_ended = true;
    life.ended = place;
    // Once: it may have a handle, and an end, again.
    if (life.place_pages != nullptr) PageWaste::remove(life);
    life.place_pages = nullptr;
    life.cause = cause;
    try {
      ended_.push_back({{life.kind, life.number}, life.order});
    } catch (const std::bad_alloc&) {
      return;  // it is forgotten when its number is used again
    }
    if (cause == nullptr) forget_oldest_locked();
  }
  void forget_oldest_locked() US_REQUIRES(mutex_) {
    while (ended_.size() > kMostEnded) {
      const Ended oldest = ended_.front();
      ended_.pop_front();
      const auto found = lives_.find(oldest.key);
      if (found == lives_.end() || found->second.order != oldest.order) continue;
      if (found->second.has_ended) lives_.erase(found);
    }
  }

  Mutex mutex_{LockRank::kHistory};
  std::unordered_map<Key, ObjectLife, Key::Hash> lives_ US_GUARDED_BY(mutex_);
  std::deque<Ended> ended_ US_GUARDED_BY(mutex_);  // the oldest first
};

struct History::State {
  Shard& shard_of(const Key& key) { return shards[key.mixed() >> 58]; }

  std::array<Shard, 64> shards;
  std::atomic<uint64_t> lives{0};
};

constinit std::atomic<History::State*> History::state_{nullptr};
// When the library is loaded: see CallGate.
const bool History::registered_ = (platform::call_in_fork_child(forget_in_fork_child), true);

// The child has none of its parent's objects. What is known of them stays where it is: a thread of
// the parent may have been in the middle of changing it.
void History::forget_in_fork_child() { state_.store(nullptr, std::memory_order_relaxed); }

History::State* History::state() noexcept {
  State* known = state_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  try {
    auto fresh = std::make_unique<State>();
    return state_.compare_exchange_strong(known, fresh.get()) ? fresh.release() : known;
  } catch (const std::bad_alloc&) {
    return nullptr;  // also where a shard of it has none
  }
}

ProgramPlace History::here() noexcept {
  return {platform::capture_stack(), current_function, platform::kernel_thread_id()};
}

void History::note_begin(NewObject object) noexcept {
  if (is_recorded()) Recorder::begin_object(object);
  if (!is_any_checked()) return;
  State* const state = History::state();
  if (state == nullptr) return;
  // A reservation has no memory. What was there before it is over.
  if (is_order_checked() && has_addresses(object.kind) && object.kind != ObjectKind::kReservation) {
    Order::note_begin({object.number, object.size});
  }
  ObjectLife life;
  life.kind = object.kind;
  life.device = object.device;
  life.number = object.number;
  life.size = object.size;
  life.part_of = object.part_of;
  life.order = state->lives.fetch_add(1, std::memory_order_relaxed) + 1;
  life.begun = here();
  if (is_advised()) {
    life.pages = object.pages;
    life.place_pages = PageWaste::add(life);
    if (!object.is_imported) DeviceChoices::look_at(life);
  }
  try {
    state->shard_of({object.kind, object.number}).begin(life);
  } catch (const std::bad_alloc&) {
    return;  // its life is not known; the object itself is good
  }
}

void History::note_handle(ObjectKind kind, uint64_t number) noexcept {
  if (is_recorded()) Recorder::add_handle(kind, number);
  if (!is_any_checked()) return;
  if (State* const state = History::state()) {
    state->shard_of({kind, number}).add_handle({kind, number});
  }
}

void History::note_ends(ObjectKind kind, int32_t device, uint64_t part_of,
                        const char* cause) noexcept {
  if (is_recorded()) Recorder::end_objects(kind, device, part_of);
  if (!is_any_checked()) return;
  State* const state = History::state();
  if (state == nullptr) return;
  const auto ends = [=](const ObjectLife& life) {
    return life.kind == kind && (part_of != 0 ? life.part_of == part_of : life.device == device);
  };
  const ProgramPlace place = here();
  for (Shard& shard : state->shards) shard.end_all(ends, place, cause);
}

uint64_t History::order_of_ending(ObjectKind kind, uint64_t number) noexcept {
  State* const state = is_any_checked() ? History::state() : nullptr;
  const uint64_t order =
      state == nullptr ? 0 : state->shard_of({kind, number}).order_of_live({kind, number});
  return order == 0 && is_recorded() ? kOnlyRecorded : order;
}

void History::note_end(ObjectKind kind, uint64_t number, uint64_t order) noexcept {
  if (is_recorded()) Recorder::end_object(kind, number);
  if (order == kOnlyRecorded) return;
  if (State* const state = History::state()) {
    state->shard_of({kind, number}).end({kind, number}, order, here());
  }
}

std::optional<ObjectLife> History::explain(uint64_t number) noexcept {
  std::optional<ObjectLife> best;
  State* const state = state_.load(std::memory_order_acquire);
  if (state == nullptr) return best;
  for (Shard& shard : state->shards) {
    shard.for_each([&](const ObjectLife& life) {
      if (life.number != number && !life.contains(number)) return;
      if (!best || tells_more(*best, life, number)) best = life;
    });
  }
  return best;
}

std::optional<ObjectLife> History::explain_near(uint64_t address) noexcept {
  constexpr uint64_t kNear = 2 * kMiB;
  if (const std::optional<ObjectLife> life = explain(address)) return life;
  std::optional<ObjectLife> best;
  State* const state = state_.load(std::memory_order_acquire);
  if (state == nullptr) return best;
  const auto gap = [address](const ObjectLife& life) { return address - life.number - life.size; };
  for (Shard& shard : state->shards) {
    shard.for_each([&](const ObjectLife& life) {
      if (!has_addresses(life.kind) || address < life.number || gap(life) > kNear) return;
      if (!best || gap(life) < gap(*best)) best = life;
    });
  }
  return best;
}

std::vector<ObjectLife> History::live() {
  std::vector<ObjectLife> lives;
  State* const state = state_.load(std::memory_order_acquire);
  if (state == nullptr) return lives;
  for (Shard& shard : state->shards) {
    shard.for_each([&](const ObjectLife& life) {
      if (!life.has_ended) lives.push_back(life);
    });
  }
  std::ranges::sort(lives, {}, &ObjectLife::order);
  return lives;
}

uint64_t History::count_begun() noexcept {
  State* const state = state_.load(std::memory_order_acquire);
  return state == nullptr ? 0 : state->lives.load(std::memory_order_relaxed);
}

std::optional<ObjectLife> History::find_live(ObjectKind kind, uint64_t number) noexcept {
  State* const state = state_.load(std::memory_order_acquire);
  if (state == nullptr) return std::nullopt;
  return state->shard_of({kind, number}).find_live({kind, number});
}

void History::set_told(const std::vector<ObjectLife>& lives) noexcept {
  State* const state = state_.load(std::memory_order_acquire);
  if (state == nullptr) return;
  for (const ObjectLife& life : lives) state->shard_of({life.kind, life.number}).set_told(life);
}

void History::enter_function(const char* function) noexcept { current_function = function; }

void History::leave_function() noexcept { current_function = nullptr; }

}  // namespace understudy
