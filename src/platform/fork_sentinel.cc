// SPDX-License-Identifier: Apache-2.0
#include "platform/fork_sentinel.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/pause.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

namespace {

constexpr uint32_t kWiped = 0;     // a child that does not know it yet
constexpr uint32_t kNoticing = 1;  // one of its threads counts the new process
constexpr uint32_t kNoticed = 2;   // a child that is not armed
constexpr uint32_t kByNumber = 3;  // armed, and the kernel does not wipe
constexpr uint32_t kArmed = ForkSentinel::kArmed;

constinit ForkSentinel unwiped;  // where the kernel gives no page that it wipes
std::atomic<bool> is_set_up{false};
std::atomic<pid_t> armed_process{0};
// Differs between a process and its children. Process ids need not: a child may be the first
// process of a pid namespace, as its parent is.
std::atomic<uint32_t> generation{1};

ForkSentinel& current() { return *fork_sentinel.load(std::memory_order_acquire); }

struct Registered {
  static constexpr int kFree = 0;
  static constexpr int kBeingFilled = -1;
  std::atomic<int> descriptor_plus_one{kFree};
  std::atomic<uint32_t> generation{0};  // of the process whose descriptor it is
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

ForkSentinel* make_wiped_page() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, page, MADV_WIPEONFORK) != 0) {
    munmap(memory, page);
    return nullptr;
  }
  return static_cast<ForkSentinel*>(memory);
}

// Counts a new process, once.
void notice_fork() {
  std::atomic<uint32_t>& state = current().state;
  uint32_t seen = state.load(std::memory_order_acquire);
  const bool is_child = seen == kWiped || (seen == kByNumber && getpid() != armed_process.load());
  if (is_child && state.compare_exchange_strong(seen, kNoticing)) {
    current().turn.store(0);
    generation.fetch_add(1);
    state.store(kNoticed, std::memory_order_release);
    return;
  }
  while (state.load(std::memory_order_acquire) == kNoticing) nap();
}

// On the thread that forked, before fork returns.
void begin_child() {
  if (&current() == &unwiped) unwiped.state.store(kWiped);
  close_inherited_descriptors();
}

void arm() {
  armed_process.store(getpid());
  current().state.store(&current() == &unwiped ? kByNumber : kArmed, std::memory_order_release);
}

bool set_up() {
  if (is_set_up.exchange(true)) return true;
  pthread_atfork(nullptr, nullptr, begin_child);
  if (ForkSentinel* const page = make_wiped_page()) {
    fork_sentinel.store(page, std::memory_order_release);
  }
  arm();
  return true;
}

// When the library is loaded: no thread can be in a call by then.
[[maybe_unused]] const bool set_up_at_load = set_up();

}  // namespace

constinit std::atomic<ForkSentinel*> fork_sentinel{&unwiped};

void arm_fork_sentinel() {
  set_up();  // for calls that come before this file's initialization
  notice_fork();
  arm();
}

bool in_unarmed_fork_child() {
  const uint32_t state = current().state.load(std::memory_order_acquire);
  if (state == kArmed) return false;
  return state != kByNumber || getpid() != armed_process.load();
}

void call_in_fork_child(void (*function)()) { pthread_atfork(nullptr, nullptr, function); }

ProcessTurn::ProcessTurn() : taken_(current().turn) {
  notice_fork();
  while (taken_.exchange(1, std::memory_order_acquire) != 0) nap();
}

ProcessTurn::~ProcessTurn() { taken_.store(0, std::memory_order_release); }

void close_in_fork_child(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return;
  for (Registered& place : places) {
    int free = Registered::kFree;
    if (!place.descriptor_plus_one.compare_exchange_strong(free, Registered::kBeingFilled)) {
      continue;
    }
    place.device.store(status.st_dev);
    place.inode.store(status.st_ino);
    place.generation.store(generation.load());
    place.descriptor_plus_one.store(descriptor + 1);
    return;
  }
}

void forget_for_fork_child(int descriptor) {
  for (Registered& place : places) {
    int mine = descriptor + 1;
    if (place.descriptor_plus_one.compare_exchange_strong(mine, Registered::kFree)) return;
  }
}

void close_inherited_descriptors() {
  notice_fork();
  const uint32_t own = generation.load();
  for (Registered& place : places) {
    const int descriptor = place.descriptor_plus_one.load() - 1;
    if (descriptor < 0 || place.generation.load() == own) continue;
    if (is_still_ours(place, descriptor)) close_descriptor(descriptor);
    place.descriptor_plus_one.store(Registered::kFree);
  }
}

}  // namespace understudy::platform
