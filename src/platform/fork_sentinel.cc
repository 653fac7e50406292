// SPDX-License-Identifier: Apache-2.0
#include "platform/fork_sentinel.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace understudy::platform {

namespace {

constexpr unsigned kArmed = 0x5eed5eed;

std::atomic<std::atomic<unsigned>*> sentinel{nullptr};

// Descriptor + 1; 0 is a free place.
std::array<std::atomic<int>, 256> descriptors;

}  // namespace

bool arm_fork_sentinel() {
  std::atomic<unsigned>* word = sentinel.load(std::memory_order_acquire);
  if (word == nullptr) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    if (madvise(memory, page, MADV_WIPEONFORK) != 0) {
      munmap(memory, page);
      return false;
    }
    auto* fresh = static_cast<std::atomic<unsigned>*>(memory);
    fresh->store(kArmed, std::memory_order_relaxed);
    if (!sentinel.compare_exchange_strong(word, fresh)) munmap(memory, page);
    return true;
  }
  word->store(kArmed, std::memory_order_relaxed);
  return true;
}

bool in_fork_child() {
  const std::atomic<unsigned>* word = sentinel.load(std::memory_order_acquire);
  return word != nullptr && word->load(std::memory_order_relaxed) != kArmed;
}

void close_in_fork_child(int descriptor) {
  for (std::atomic<int>& place : descriptors) {
    int free = 0;
    if (place.compare_exchange_strong(free, descriptor + 1)) return;
  }
}

void forget_for_fork_child(int descriptor) {
  for (std::atomic<int>& place : descriptors) {
    int mine = descriptor + 1;
    if (place.compare_exchange_strong(mine, 0)) return;
  }
}

void close_inherited_descriptors() {
  for (std::atomic<int>& place : descriptors) {
    const int descriptor = place.exchange(0) - 1;
    if (descriptor >= 0) close(descriptor);
  }
}

}  // namespace understudy::platform
