// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/call_order.h"

#include "base/pause.h"
#include "platform/futex.h"

namespace understudy::command {

// The end is noted before the count is read, and the count raised before the next end is read: of
// two threads with neighbouring calls one sees the other's. In the same way a thread that is about
// to sleep sees the count, or its word is seen.
void CallOrder::note_end(uint32_t place) const {
  ended_[place].store(1);
  uint32_t count = counts_->ended.load();
  bool has_risen = false;
  while (count < ended_.size() && ended_[count].load() != 0) {
    if (counts_->ended.compare_exchange_weak(count, count + 1)) {
      ++count;
      has_risen = true;
    }
  }
  if (!has_risen || counts_->waiting.load() == 0) return;
  for (std::atomic<uint32_t>& word : waiting_) {
    uint32_t calls = word.load();
    if (calls != 0 && calls <= count && word.compare_exchange_strong(calls, 0)) {
      platform::wake_all_processes(word);
    }
  }
}

void CallOrder::sleep(uint32_t calls, std::atomic<uint32_t>& word) const {
  counts_->waiting.fetch_add(1);
  while (ended() < calls && word.load() == calls) {
    platform::sleep_on_shared(word, calls, kNever);
  }
  counts_->waiting.fetch_sub(1);
  word.store(0);
}

void CallOrder::await(uint32_t calls, uint32_t thread) const {
  constexpr int kShortly = 200;
  for (int i = 0; i < kShortly; ++i) {
    if (ended() >= calls) return;
    pause_briefly();
  }
  waiting_[thread].store(calls);
  sleep(calls, waiting_[thread]);
}

void CallOrder::await_elsewhere(uint32_t calls, uint32_t first) const {
  while (ended() < calls) {
    for (std::atomic<uint32_t>& word : waiting_.subspan(first)) {
      uint32_t free = 0;
      if (!word.compare_exchange_strong(free, calls)) continue;
      sleep(calls, word);
      return;
    }
    nap();
  }
}

}  // namespace understudy::command
