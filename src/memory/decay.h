// SPDX-License-Identifier: Apache-2.0
//
// A thread that gives memory back which was freed and which no allocation has wanted since. It
// exists only while there is such memory: the thread that frees wakes it, and it ends by itself
// once nothing is kept any more. Any thread may call anything.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace understudy {

class Decay {
 public:
  // Gives back what was kept during the whole time since the pass before it. Returns whether
  // something is kept still. Takes the locks under which memory is kept.
  using Pass = bool (*)(void* owner);

  // Memory is given back after one to two of these.
  static constexpr std::chrono::milliseconds kInterval{1000};

  Decay(Pass pass, void* owner) : pass_(pass), owner_(owner) {}
  ~Decay() { end(); }
  Decay(const Decay&) = delete;
  Decay& operator=(const Decay&) = delete;

  // Whether memory that the calling thread has just kept, under its lock, will be seen. The last
  // pass comes after the thread has said that it ends: it finds the memory, or the lock shows the
  // calling thread what was said.
  bool is_awake() const { return is_awake_.load(std::memory_order_relaxed); }
  // Begins to look, unless another thread does. Where the host has no thread, the next caller
  // tries again.
  void wake() noexcept;
  // Waits for the pass that is under way. There is none after it.
  void end() noexcept;

 private:
  void run();
  void wait_until_begun() noexcept;

  const Pass pass_;
  void* const owner_;
  std::atomic<bool> is_awake_{false};
  std::atomic<uint32_t> begun_{0};  // the last thread that was started has
  std::atomic<uint32_t> ends_{0};
  std::atomic<uint32_t> running_{0};  // threads: one that is at its end may overlap with the next
};

}  // namespace understudy
