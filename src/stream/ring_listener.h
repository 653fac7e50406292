// SPDX-License-Identifier: Apache-2.0
//
// The thread that sleeps until another process rings this one, and then lets the streams that wait
// for other processes go on. Started when the first stream may have to wait for one. Streams
// look from time to time as well: a process can die before it rings. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "server/process_slots.h"
#include "stream/streams.h"

namespace understudy {

class RingListener {
 public:
  RingListener(ProcessSlots& slots, Streams& streams) : slots_(slots), streams_(streams) {}
  // Ends the thread.
  ~RingListener();
  RingListener(const RingListener&) = delete;
  RingListener& operator=(const RingListener&) = delete;

  // If the thread cannot be started, the next call tries again; streams look more often meanwhile.
  void start() {
    if (!slots_.is_listening()) start_thread();
  }

 private:
  void start_thread();
  void listen();

  ProcessSlots& slots_;
  Streams& streams_;
  std::atomic<bool> is_starting_{false};
  std::atomic<bool> ends_{false};
  std::atomic<uint32_t> running_{0};  // to sleep on until the thread has ended
};

}  // namespace understudy
