// SPDX-License-Identifier: Apache-2.0
//
// How many of the planned calls have ended, counted in the order in which they had ended in the
// recording: as far as there is none that has not (replay_plan.h). A view of memory that processes
// share, which is zero at first. Only threads that need not wait any longer are woken.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace understudy::command {

class CallOrder {
 public:
  struct Counts {
    std::atomic<uint32_t> ended;
    std::atomic<uint32_t> waiting;  // threads
  };

  // `ended`: for each call whether it has. `waiting`: a word for each thread that may wait, and
  // some for other threads.
  CallOrder(Counts& counts, std::span<std::atomic<uint8_t>> ended,
            std::span<std::atomic<uint32_t>> waiting)
      : counts_(&counts), ended_(ended), waiting_(waiting) {}

  uint32_t ended() const { return counts_->ended.load(); }
  void note_end(uint32_t place) const;
  // Until so many have ended. `thread`: which word is its own.
  void await(uint32_t calls, uint32_t thread) const;
  // The same for a thread without a word of its own: one of those from `first` on that is free.
  void await_elsewhere(uint32_t calls, uint32_t first) const;

 private:
  void sleep(uint32_t calls, std::atomic<uint32_t>& word) const;

  Counts* counts_;
  std::span<std::atomic<uint8_t>> ended_;
  std::span<std::atomic<uint32_t>> waiting_;  // for how many calls; 0: for none
};

}  // namespace understudy::command
