// SPDX-License-Identifier: Apache-2.0
#include "observe/page_waste.h"

#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/size_text.h"
#include "base/sizes.h"
#include "observe/advice.h"
#include "observe/place_text.h"
#include "platform/fork_sentinel.h"
#include "platform/log.h"

namespace understudy {

namespace {

constexpr uint64_t kLeastWaste = 64 * kKiB;

}  // namespace

// What one place of the program has. Never destroyed: lives refer to it.
struct PlacePages {
  struct Sums {
    uint64_t objects = 0;
    uint64_t asked = 0;
    uint64_t taken = 0;

    uint64_t wasted() const { return taken - asked; }
    bool is_much() const { return wasted() >= kLeastWaste && wasted() >= taken / 4; }
  };

  // Constant after construction.
  ObjectKind kind;
  ProgramPlace place;
  uint64_t page;
  // Under the lock of PageWaste.
  Sums now{};
  Sums most{};
  bool was_told = false;
  bool fits_without_padding = true;  // each would take a page less if it were a little smaller
};

struct PageWaste::State {
  using Key = std::pair<const platform::CallStack*, uint64_t>;

  Mutex mutex{LockRank::kAdvice};
  std::map<Key, std::unique_ptr<PlacePages>> places US_GUARDED_BY(mutex);
};

namespace {

bool is_only_padding(const ObjectLife& life) {
  return *align_up(life.size, life.pages.page) < life.pages.taken;
}

std::string sentence_of(const PlacePages& pages) {
  const PlacePages::Sums& most = pages.most;
  const ObjectWords& words = words_of(pages.kind);
  std::string text = call_at(pages.place) + " asks for " + SizeText(most.asked).c_str();
  if (most.objects > 1) {
    text += " in " + std::to_string(most.objects) + " " + words.plural;
  }
  text += std::string(" and takes ") + SizeText(most.taken).c_str() + ", in whole pages of " +
          SizeText(pages.page).c_str() + ": " + SizeText(most.wasted()).c_str() + " (" +
          std::to_string(most.wasted() * 100 / most.taken) + " %) are wasted; ";
  if (pages.fits_without_padding) {
    return text + "ask for a little less, so that the padding behind each does not take a page";
  }
  if (most.objects > 1) return text + "put several into one " + words.noun;
  return text + "choose smaller pages, or let several share one " + words.noun;
}

}  // namespace

constinit std::atomic<PageWaste::State*> PageWaste::state_{nullptr};
// When the library is loaded: see CallGate.
const bool PageWaste::registered_ = (platform::call_in_fork_child(forget_in_fork_child), true);

// A thread of the parent may have been in the middle of changing what is there.
void PageWaste::forget_in_fork_child() { state_.store(nullptr, std::memory_order_relaxed); }

PageWaste::State* PageWaste::state() {
  State* known = state_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto fresh = std::make_unique<State>();
  return state_.compare_exchange_strong(known, fresh.get()) ? fresh.release() : known;
}

PlacePages* PageWaste::add(const ObjectLife& life) noexcept {
  if (life.pages.page == 0 || life.size == 0) return nullptr;
  try {
    State& state = *PageWaste::state();
    const MutexLock lock(state.mutex);
    std::unique_ptr<PlacePages>& pages = state.places[{life.begun.stack, life.pages.page}];
    if (pages == nullptr) {
      pages = std::make_unique<PlacePages>(PlacePages{life.kind, life.begun, life.pages.page});
    }
    ++pages->now.objects;
    pages->now.asked += life.size;
    pages->now.taken += life.pages.taken;
    if (pages->now.wasted() > pages->most.wasted()) pages->most = pages->now;
    pages->fits_without_padding &= is_only_padding(life);
    return pages.get();
  } catch (const std::bad_alloc&) {
    return nullptr;  // it is not counted
  }
}

void PageWaste::remove(const ObjectLife& life) noexcept {
  State* const state = state_.load(std::memory_order_acquire);
  if (state == nullptr) return;
  const MutexLock lock(state->mutex);
  PlacePages::Sums& now = life.place_pages->now;
  --now.objects;
  now.asked -= life.size;
  now.taken -= life.pages.taken;
}

void PageWaste::tell() noexcept {
  State* const state = state_.load(std::memory_order_acquire);
  if (state == nullptr) return;
  try {
    std::vector<PlacePages> places;
    {
      const MutexLock lock(state->mutex);
      for (const auto& [key, pages] : state->places) {
        if (pages->was_told || !pages->most.is_much()) continue;
        places.push_back(*pages);
        pages->was_told = true;
      }
    }
    for (const PlacePages& pages : places) advise("pages", pages.place, sentence_of(pages));
  } catch (const std::bad_alloc&) {
    platform::say("no memory for advice");
  }
}

}  // namespace understudy
