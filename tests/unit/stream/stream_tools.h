// SPDX-License-Identifier: Apache-2.0
//
// What tests of streams have in common: waiting without sleeping, functions that stop where a test
// wants them to, and tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "stream/task.h"

namespace understudy {

template <typename Condition>
void wait_for(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

// Lets other threads run for a while: what must not happen has had its chance.
template <typename Condition>
bool stays(Condition condition) {
  for (int i = 0; i < 200; ++i) {
    if (!condition()) return false;
    std::this_thread::yield();
  }
  return true;
}

// Where a thread stops until the test lets it go on. Closed at first.
class Gate {
 public:
  void pass() {
    entered_.fetch_add(1);
    wait_for([this] { return is_open_.load(); });
  }
  void open() { is_open_.store(true); }
  int entered() const { return entered_.load(); }
  void wait_until_entered() const {
    wait_for([this] { return entered() > 0; });
  }
  static void pass(void* gate) { static_cast<Gate*>(gate)->pass(); }

 private:
  std::atomic<int> entered_{0};
  std::atomic<bool> is_open_{false};
};

inline void count_call(void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); }

inline Task host_function(void (*function)(void*), void* argument) {
  Task task(TaskKind::kHostFunction, 0);
  task.user = {.function = function, .argument = argument, .blocks = true};
  return task;
}
inline Task passing(Gate& gate) { return host_function(Gate::pass, &gate); }
inline Task counting(std::atomic<int>& counter) { return host_function(count_call, &counter); }

inline Task setting(VirtualAddress to, uint8_t value, uint64_t count = 1) {
  Task task(TaskKind::kSet, 0);
  task.fill = {.to = to, .count = count, .value = value};
  return task;
}

// A task that owns memory: only the leak check of ASan sees if nobody frees it.
inline Task listed_copy(VirtualAddress to, VirtualAddress from, uint64_t count = 8) {
  ListedCopy listed;
  listed.copy = {.to = to, .from = from, .count = count};
  Task task(TaskKind::kCopyList, 0);
  task.list = new CopyList(1, listed);
  return task;
}

}  // namespace understudy
