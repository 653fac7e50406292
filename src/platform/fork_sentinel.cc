// SPDX-License-Identifier: Apache-2.0
#include "platform/fork_sentinel.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace understudy::platform {

namespace {

constexpr unsigned kArmed = 0x5eed5eed;

std::atomic<std::atomic<unsigned>*> sentinel{nullptr};

struct Registered {
  std::atomic<int> descriptor_plus_one{0};  // 0: a free place
  std::atomic<pid_t> process{0};            // whose descriptor it is
  std::atomic<dev_t> device{0};
  std::atomic<ino_t> inode{0};
};
std::array<Registered, 1024> places;

// A number that was closed and opened for something else is not ours any more.
bool is_still_ours(const Registered& place, int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && status.st_dev == place.device.load() &&
         status.st_ino == place.inode.load();
}

std::atomic<unsigned>* make_sentinel() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, page, MADV_WIPEONFORK) != 0) {
    munmap(memory, page);
    return nullptr;
  }
  return static_cast<std::atomic<unsigned>*>(memory);
}

}  // namespace

void arm_fork_sentinel() {
  static const bool registered = [] {
    call_in_fork_child(close_inherited_descriptors);
    sentinel.store(make_sentinel(), std::memory_order_release);
    return true;
  }();
  (void)registered;
  if (std::atomic<unsigned>* word = sentinel.load(std::memory_order_acquire)) {
    word->store(kArmed, std::memory_order_release);
  }
}

bool in_fork_child() {
  const std::atomic<unsigned>* word = sentinel.load(std::memory_order_acquire);
  return word != nullptr && word->load(std::memory_order_acquire) != kArmed;
}

void call_in_fork_child(void (*function)()) { pthread_atfork(nullptr, nullptr, function); }

void close_in_fork_child(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return;
  for (Registered& place : places) {
    int free = 0;
    if (!place.descriptor_plus_one.compare_exchange_strong(free, descriptor + 1)) continue;
    place.device.store(status.st_dev);
    place.inode.store(status.st_ino);
    place.process.store(getpid());
    return;
  }
}

void forget_for_fork_child(int descriptor) {
  for (Registered& place : places) {
    int mine = descriptor + 1;
    if (place.descriptor_plus_one.compare_exchange_strong(mine, 0)) return;
  }
}

void close_inherited_descriptors() {
  const pid_t process = getpid();
  for (Registered& place : places) {
    const int descriptor = place.descriptor_plus_one.load() - 1;
    if (descriptor < 0 || place.process.load() == process) continue;
    if (is_still_ours(place, descriptor)) close(descriptor);
    place.descriptor_plus_one.store(0);
  }
}

}  // namespace understudy::platform
