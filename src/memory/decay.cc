// SPDX-License-Identifier: Apache-2.0
#include "memory/decay.h"

#include "platform/fork_sentinel.h"
#include "platform/futex.h"
#include "platform/log.h"
#include "platform/thread.h"

namespace understudy {

namespace {

std::atomic<bool> may_start_no_thread{false};

#if defined(__SANITIZE_THREAD__)
// It ends a fork child that starts a thread, if its parent had one.
[[maybe_unused]] const bool registered =
    (platform::call_in_fork_child([] { may_start_no_thread.store(true); }), true);
#endif

}  // namespace

void Decay::end() noexcept {
  ends_.store(1);
  platform::wake_all(ends_);
  for (uint32_t running = running_.load(); running != 0; running = running_.load()) {
    platform::sleep_on(running_, running, kNever);
  }
}

void Decay::wake() noexcept {
  if (may_start_no_thread.load(std::memory_order_relaxed)) [[unlikely]]
    return;
  if (ends_.load() != 0 || is_awake_.exchange(true)) return;
  running_.fetch_add(1);
  begun_.store(0);
  const Result<void> started = platform::start_thread(
      "us-decay", [](void* self) { static_cast<Decay*>(self)->run(); }, this);
  if (started.ok()) return wait_until_begun();
  platform::log_note("%s; freed memory is kept until it is needed or the device is reset",
                     started.error().text());
  running_.fetch_sub(1);
  is_awake_.store(false);
}

// AddressSanitizer's allocator is locked while a thread begins: a process that forked then would
// have a child that hangs.
void Decay::wait_until_begun() noexcept {
#if defined(__SANITIZE_ADDRESS__)
  while (begun_.load() == 0) platform::sleep_on(begun_, 0, kNever);
#endif
}

void Decay::run() {
  begun_.store(1);
  platform::wake_all(begun_);
  do {
    do {
      const Deadline next = Clock::now() + kInterval;
      while (ends_.load() == 0 && !has_passed(next)) platform::sleep_on(ends_, 0, next);
    } while (ends_.load() == 0 && pass_(owner_));
    is_awake_.store(false);
  } while (ends_.load() == 0 && pass_(owner_) && !is_awake_.exchange(true));
  // The object may end at once: the last thing that is done with it.
  std::atomic<uint32_t>& running = running_;
  running.fetch_sub(1);
  platform::wake_all(running);
}

}  // namespace understudy
