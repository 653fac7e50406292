// SPDX-License-Identifier: Apache-2.0
#include "support/measure.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "support/fail.h"

namespace bench {

namespace {

constexpr unsigned kMaxSpins = 100'000;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Left to itself, a busy kernel runs two threads that wait for each other on one processor.
void use_own_processor(unsigned index) {
  cpu_set_t allowed;
  require(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity");
  if (index >= static_cast<unsigned>(CPU_COUNT(&allowed))) return;
  unsigned processor = 0;
  for (unsigned skip = index; !CPU_ISSET(processor, &allowed) || skip-- > 0;) ++processor;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(processor, &own);
  require(sched_setaffinity(0, sizeof own, &own) == 0, "sched_setaffinity");
}

// Keeps the samples of several figures apart.
class Samples {
 public:
  void add(size_t figure, double value) {
    if (figure >= values_.size()) values_.resize(figure + 1);
    values_[figure].push_back(value);
  }
  std::vector<double> medians() const {
    std::vector<double> result;
    for (const auto& values : values_) result.push_back(median(values));
    return result;
  }

 private:
  std::vector<std::vector<double>> values_;
};

std::vector<double> in_child(const std::function<std::vector<double>()>& body) {
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  fflush(stdout);
  const pid_t child = fork();
  require(child >= 0, "fork");
  if (child == 0) {
    const std::vector<double> values = body();
    const size_t bytes = values.size() * sizeof(double);
    require(write(ends[1], values.data(), bytes) == static_cast<ssize_t>(bytes), "write");
    std::_Exit(0);
  }
  close(ends[1]);
  std::vector<double> values;
  for (double value = 0; read(ends[0], &value, sizeof value) == sizeof value;) {
    values.push_back(value);
  }
  close(ends[0]);
  int status = 0;
  require(waitpid(child, &status, 0) == child, "waitpid");
  if (status != 0) fail("a child process ended with status 0x%x", static_cast<unsigned>(status));
  return values;
}

}  // namespace

std::vector<double> medians(unsigned repetitions,
                            const std::vector<std::function<double()>>& measurements) {
  Samples samples;
  for (const auto& measure : measurements) measure();
  for (unsigned i = 0; i < repetitions; ++i) {
    for (size_t which = 0; which < measurements.size(); ++which) {
      samples.add(which, measurements[which]());
    }
  }
  return samples.medians();
}

std::vector<double> medians_in_children(unsigned repetitions,
                                        const std::function<std::vector<double>()>& body) {
  Samples samples;
  for (unsigned i = 0; i < repetitions; ++i) {
    const std::vector<double> values = in_child(body);
    for (size_t which = 0; which < values.size(); ++which) samples.add(which, values[which]);
  }
  return samples.medians();
}

Team::Team(unsigned size) : gate_(static_cast<std::ptrdiff_t>(size) + 1), begin_(size), end_(size) {
  for (unsigned index = 0; index < size; ++index) {
    threads_.emplace_back([this, index] { work(index); });
  }
}

Team::~Team() {
  body_ = nullptr;
  gate_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

double Team::run(const std::function<void(unsigned)>& body) {
  body_ = body;
  ready_ = 0;
  gate_.arrive_and_wait();
  gate_.arrive_and_wait();
  const auto first = *std::min_element(begin_.begin(), begin_.end());
  const auto last = *std::max_element(end_.begin(), end_.end());
  return std::chrono::duration<double, std::nano>(last - first).count();
}

void Team::work(unsigned index) {
  use_own_processor(index);
  while (true) {
    gate_.arrive_and_wait();
    if (!body_) return;
    body_(index);
    // The gate wakes its threads one by one, up to 50 us apart; they meet again here.
    ++ready_;
    for (unsigned spins = 0; ready_ < begin_.size(); ++spins) {
      if (spins > kMaxSpins) std::this_thread::yield();
    }
    begin_[index] = Stopwatch::Clock::now();
    body_(index);
    end_[index] = Stopwatch::Clock::now();
    gate_.arrive_and_wait();
  }
}

}  // namespace bench
