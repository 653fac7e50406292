// SPDX-License-Identifier: Apache-2.0
#include "stream/ring_listener.h"

#include "platform/futex.h"
#include "platform/log.h"
#include "platform/thread.h"

namespace understudy {

RingListener::~RingListener() {
  ends_.store(true);
  if (running_.load() == 0) return;
  slots_.ring_self();
  while (running_.load() != 0) platform::sleep_on(running_, 1, kNever);
}

void RingListener::start_thread() {
  if (is_starting_.exchange(true)) return;  // another thread is at it, or was
  running_.store(1);
  const Result<void> started = platform::start_thread(
      "us-rings", [](void* self) { static_cast<RingListener*>(self)->listen(); }, this);
  if (started.ok()) return;
  platform::log_note("%s; notifies of other processes are seen late", started.error().text());
  running_.store(0);
  is_starting_.store(false);
}

void RingListener::listen() {
  slots_.listen();
  uint32_t seen = slots_.rings().load();
  while (!ends_.load()) {
    streams_.on_ring();
    slots_.sleep_until_rung(seen);
    seen = slots_.rings().load();
  }
  // The object may end at once: the last thing that is done with it.
  std::atomic<uint32_t>& running = running_;
  running.store(0);
  platform::wake_all(running);
}

}  // namespace understudy
