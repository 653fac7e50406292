// SPDX-License-Identifier: Apache-2.0
//
// Several threads that begin at the same moment, without sleeping.
#pragma once

#include <latch>
#include <thread>
#include <vector>

namespace understudy {

// Runs body(0) ... body(count - 1) on threads of their own and joins them.
template <typename Body>
void run_on_threads(int count, Body body) {
  std::latch start(count);
  std::vector<std::thread> threads;
  for (int index = 0; index < count; ++index) {
    threads.emplace_back([&start, &body, index] {
      start.arrive_and_wait();
      body(index);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace understudy
