// SPDX-License-Identifier: Apache-2.0
//
// The gate that calls pass which change what a process has, so that the whole process can be held
// (SNAP-08 to SNAP-13). An entry point of that class has one line, behind the checks of its outer
// arguments and before anything else:
//
//   const GatePass pass;
//
// While the gate is open this is a store and a load in memory of the calling thread. Each thread
// counts its calls in a record of its own; the thread that closes the gate marks all records, has
// every thread pass a fence (platform/asymmetric_fence.h), and waits until no record counts a call.
// Where there is no such fence, all calls take the slow way, which has one of its own.
//
// A call inside a call, from a function of the program, is part of the outer one: the gate does not
// hold it while it is being closed. A thread that waits at the gate is not under way. A fork child
// finds the gate open, and none of its parent's calls. One gate per process, never destroyed; any
// thread may pass, and one at a time closes and opens.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"
#include "base/result.h"

namespace understudy {

class CallGate {
 public:
  CallGate() = delete;

  // From now on calls wait. Returns once no call of another thread is under way; at the deadline
  // the gate is open again. REQUIRES: it is open.
  static Result<void> close(Deadline deadline);
  // Lets all calls go that wait.
  static void open();

  // How many calls wait at this moment, and how many of them were made by a function that a stream
  // has called: such a stream stands still.
  static uint64_t held();
  static uint64_t held_in_tasks();

  // For a child that fork did not make: its gate is open, and its parent's calls are none of its
  // own. True if the process is one, and did not know it yet. What fork makes knows it at once.
  static bool notice_child();

 private:
  friend class GatePass;

  enum class Way : uint8_t { kSlow, kQuick };

  struct alignas(64) Record {
    std::atomic<uint32_t> depth{0};  // calls of its thread under way, one inside the other
    std::atomic<Way> way{Way::kSlow};
    std::atomic<bool> taken{false};
    std::atomic<unsigned> process{0};  // whose thread it is
    Record* next = nullptr;            // constant once the record is in the list
  };
  struct RecordReturner;

  // A call under way: where it is counted, and how many of its thread are around it.
  struct Call {
    Record* record;
    uint32_t depth;
  };
  // Returns the call as it is counted then: a thread may get its record here.
  [[gnu::cold]] static Call pass_slowly(Call call);

  static void begin_anew_in_child();
  static Record* claim_record();
  static Record& borrow_record();
  static void wait(Record& record, uint32_t depth);
  static bool is_any_call_under_way();
  template <typename Visit>
  static void for_each_record(Visit visit);

  static const bool registered_;
  static std::atomic<Record*> records_;  // only ever added to, in front
  // Of threads that have made no call yet. Its figures mean nothing.
  static Record no_record_;
  static Record borrowed_[16];
  static constinit thread_local Record* own_record_ [[gnu::tls_model("initial-exec")]];
};

// A call that the gate may hold, for its lifetime.
class GatePass {
 public:
  GatePass()
      : record_(CallGate::own_record_), depth_(record_->depth.load(std::memory_order_relaxed)) {
    record_->depth.store(depth_ + 1, std::memory_order_relaxed);
    // The processor may change this order; the thread that closes the gate sees to that.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (record_->way.load(std::memory_order_relaxed) != CallGate::Way::kQuick) [[unlikely]] {
      const CallGate::Call counted = CallGate::pass_slowly({record_, depth_});
      record_ = counted.record;
      depth_ = counted.depth;
    }
  }
  ~GatePass() { record_->depth.store(depth_, std::memory_order_release); }
  GatePass(const GatePass&) = delete;
  GatePass& operator=(const GatePass&) = delete;

 private:
  CallGate::Record* record_;
  uint32_t depth_;
};

}  // namespace understudy
