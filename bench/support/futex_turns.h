// SPDX-License-Identifier: Apache-2.0
//
// The least that a turn between two threads or processes costs if neither spins: one changes a word
// and wakes the other, which does the same. For memory that both see.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace bench {

class FutexTurns {
 public:
  enum class Between : uint8_t { kThreads, kProcesses };
  explicit FutexTurns(Between between)
      : flag_(between == Between::kThreads ? FUTEX_PRIVATE_FLAG : 0) {}

  // The side that asks.
  void there_and_back() {
    there();
    back();
  }
  // Its two halves.
  void there() { set(asked_, answered_.load() + 1); }
  void back() { wait_for_change(answered_, asked_.load() - 1); }
  void end() { set(asked_, kEnd); }
  // The side that answers, until the end.
  void serve() {
    for (uint32_t turn = 0; wait_for_change(asked_, turn) != kEnd;) {
      turn = asked_.load();
      set(answered_, turn);
    }
  }

 private:
  static constexpr uint32_t kEnd = UINT32_MAX;

  uint32_t wait_for_change(std::atomic<uint32_t>& word, uint32_t old) const {
    while (word.load() == old) {
      syscall(SYS_futex, &word, FUTEX_WAIT | flag_, old, nullptr, nullptr, 0);
    }
    return word.load();
  }
  void set(std::atomic<uint32_t>& word, uint32_t value) const {
    word.store(value);
    syscall(SYS_futex, &word, FUTEX_WAKE | flag_, INT_MAX, nullptr, nullptr, 0);
  }

  const int flag_;
  std::atomic<uint32_t> asked_{0};
  std::atomic<uint32_t> answered_{0};
};

}  // namespace bench
