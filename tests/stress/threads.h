// SPDX-License-Identifier: Apache-2.0
//
// Threads for stress tests: all in one context, started together, waiting without sleeping.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "support/rule_test.h"

namespace understudy_test {

// Where a fixed number of threads wait for each other, again and again. It spins, so that all of
// them leave at nearly the same moment.
class StartLine {
 public:
  explicit StartLine(int threads) : threads_(threads) {}

  void wait() {
    const int round = round_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      round_.store(round + 1);
      return;
    }
    while (round_.load() == round) std::this_thread::yield();
  }

 private:
  const int threads_;
  std::atomic<int> arrived_{0};
  std::atomic<int> round_{0};
};

// Runs body(0) … body(count - 1) on threads of their own, in the caller's context, and joins them.
// A body must not leave early while others wait for it on a StartLine: EXPECT, not ASSERT.
template <typename Body>
void run_on_threads(int count, Body body) {
  aclrtContext context = nullptr;
  ASSERT_SUCCESS(aclrtGetCurrentContext(&context));
  std::vector<std::thread> threads;
  for (int index = 0; index < count; ++index) {
    threads.emplace_back([context, index, &body] {
      EXPECT_SUCCESS(aclrtSetCurrentContext(context));
      body(index);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace understudy_test
