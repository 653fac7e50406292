// SPDX-License-Identifier: Apache-2.0
//
// How figures are taken: medians of repetitions that take turns with what they are compared to, so
// that a machine that gets slower for a while is slow for both. Single measurements shall be
// shorter than a time slice, so that on a busy machine most of them run undisturbed.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace bench {

class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  double nanoseconds() const {
    return std::chrono::duration<double, std::nano>(Clock::now() - start_).count();
  }

 private:
  Clock::time_point start_ = Clock::now();
};

// Runs all of them in turn, once without measuring and then `repetitions` times, and gives the
// median of what each returned.
std::vector<double> medians(unsigned repetitions,
                            const std::vector<std::function<double()>>& measurements);

// The least of several, which other programs have disturbed least.
template <typename Measurement>
double least(unsigned repetitions, Measurement measure) {
  double best = measure();
  for (unsigned i = 1; i < repetitions; ++i) best = std::min(best, measure());
  return best;
}

// Runs `body`, which measures several things, each time in a child process made for it, and gives
// the median of each.
std::vector<double> medians_in_children(unsigned repetitions,
                                        const std::function<std::vector<double>()>& body);

// Threads that stay, each on its own processor as long as there are enough, so that what the
// library and the machine keep per thread is warm from one measurement to the next.
class Team {
 public:
  explicit Team(unsigned size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  unsigned size() const { return static_cast<unsigned>(threads_.size()); }
  // Runs body(index of the thread) on every thread once for warm caches, then all beginning at the
  // same moment, and gives the nanoseconds of this second time until the last one is done.
  double run(const std::function<void(unsigned)>& body);

 private:
  void work(unsigned index);

  std::barrier<> gate_;
  std::function<void(unsigned)> body_;  // none: the end
  std::atomic<unsigned> ready_{0};
  std::vector<Stopwatch::Clock::time_point> begin_;
  std::vector<Stopwatch::Clock::time_point> end_;
  std::vector<std::thread> threads_;
};

// Random numbers that cost about a nanosecond.
class Xorshift {
 public:
  explicit Xorshift(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 | 1) {}

  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  uint64_t state_;
};

}  // namespace bench
