// SPDX-License-Identifier: Apache-2.0
#include "runtime/call_gate.h"

#include <new>

#include "base/pause.h"
#include "platform/asymmetric_fence.h"
#include "platform/fork_sentinel.h"
#include "platform/futex.h"
#include "platform/host_facts.h"
#include "stream/user_code.h"

namespace understudy {

namespace {

constexpr uint32_t kOpen = 0;
constexpr uint32_t kClosing = 1;  // calls that are under way go on
constexpr uint32_t kClosed = 2;

std::atomic<uint32_t> gate{kOpen};
std::atomic<uint64_t> held_calls{0};
std::atomic<uint64_t> held_task_calls{0};
// A number that differs between a process and its children.
std::atomic<unsigned> this_process{0};

// Counts a call that waits.
class HeldCall {
 public:
  HeldCall() {
    held_calls.fetch_add(1);
    if (in_task_) held_task_calls.fetch_add(1);
  }
  ~HeldCall() {
    if (in_task_) held_task_calls.fetch_sub(1);
    held_calls.fetch_sub(1);
  }
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;

 private:
  const bool in_task_ = runs_user_code();
};

// The process that the gate's state is of.
std::atomic<int32_t> process_of_state{platform::process_id()};

thread_local bool has_ended [[gnu::tls_model("initial-exec")]] = false;

}  // namespace

// When the library is loaded: a fork in the middle of a static variable's initialization would
// leave the child waiting for it for ever.
const bool CallGate::registered_ = (platform::call_in_fork_child(begin_anew_in_child), true);

constinit std::atomic<CallGate::Record*> CallGate::records_{nullptr};
constinit CallGate::Record CallGate::no_record_;
// For threads that cannot have a record of their own: one that has no memory for it, or one that
// makes calls at its very end. They are free while they count no call.
constinit CallGate::Record CallGate::borrowed_[16];
constinit thread_local CallGate::Record* CallGate::own_record_ [[gnu::tls_model("initial-exec")]] =
    &CallGate::no_record_;

// Gives the record to other threads when its thread ends.
struct CallGate::RecordReturner {
  ~RecordReturner() {
    has_ended = true;
    Record* const record = own_record_;
    own_record_ = &no_record_;
    if (record != &no_record_) record->taken.store(false, std::memory_order_release);
  }
};

template <typename Visit>
void CallGate::for_each_record(Visit visit) {
  const unsigned process = this_process.load(std::memory_order_relaxed);
  for (Record* record = records_.load(); record != nullptr; record = record->next) {
    if (record->process.load(std::memory_order_relaxed) == process) visit(*record);
  }
  for (Record& record : borrowed_) visit(record);
}

// Null where the thread must borrow one.
CallGate::Record* CallGate::claim_record() {
  if (has_ended) return nullptr;
  thread_local RecordReturner returner;
  (void)returner;
  const unsigned process = this_process.load(std::memory_order_relaxed);
  for (Record* record = records_.load(); record != nullptr; record = record->next) {
    bool is_taken = false;
    if (!record->taken.compare_exchange_strong(is_taken, true)) continue;
    record->depth.store(0, std::memory_order_relaxed);
    record->way.store(Way::kSlow, std::memory_order_relaxed);
    record->process.store(process);
    return record;
  }
  auto* const record = new (std::nothrow) Record;
  if (record == nullptr) return nullptr;
  record->taken.store(true, std::memory_order_relaxed);
  record->process.store(process, std::memory_order_relaxed);
  record->next = records_.load();
  while (!records_.compare_exchange_weak(record->next, record)) {
  }
  return record;
}

CallGate::Record& CallGate::borrow_record() {
  while (true) {
    for (Record& record : borrowed_) {
      uint32_t free = 0;
      if (record.depth.compare_exchange_strong(free, 1)) return record;
    }
    nap();
  }
}

CallGate::Call CallGate::pass_slowly(Call call) {
  if (call.record == &no_record_) {
    call.depth = 0;
    if (Record* const claimed = claim_record()) {
      own_record_ = call.record = claimed;
      call.record->depth.store(1, std::memory_order_relaxed);
    } else {
      call.record = &borrow_record();
    }
  }
  wait(*call.record, call.depth);
  return call;
}

void CallGate::wait(Record& record, uint32_t depth) {
  while (true) {
    // Either the thread that closes the gate sees this call under way, or this one sees that.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const uint32_t seen = gate.load();
    if (seen == kOpen) {
      if (&record != own_record_ || !platform::has_heavy_fence()) return;
      // The next call of the thread may take the quick way, unless the gate was closed meanwhile
      // and the mark of that is overwritten here.
      record.way.store(Way::kQuick);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (gate.load() == kOpen) return;
      record.way.store(Way::kSlow);
      continue;
    }
    if (notice_child()) continue;
    if (seen == kClosing && depth > 0) return;
    record.depth.store(depth, std::memory_order_release);
    {
      const HeldCall held;
      (void)platform::sleep_on(gate, seen, kNever);
    }
    record.depth.store(depth + 1, std::memory_order_relaxed);
  }
}

bool CallGate::is_any_call_under_way() {
  bool found = false;
  for_each_record([&](const Record& record) {
    if (&record != own_record_ && record.depth.load(std::memory_order_acquire) != 0) found = true;
  });
  return found;
}

Result<void> CallGate::close(Deadline deadline) {
  gate.store(kClosing);
  // A thread that takes the quick way again has seen the gate open before this, and is marked.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for_each_record([](Record& record) { record.way.store(Way::kSlow); });
  if (platform::has_heavy_fence()) {
    if (const Result<void> fenced = platform::heavy_fence(); !fenced.ok()) {
      open();
      return fenced.error().as(ErrorCode::kLockRefused);
    }
  }
  constexpr int kSpins = 1000;
  for (int spins = 0; is_any_call_under_way(); ++spins) {
    if (has_passed(deadline)) {
      open();
      return Error::format(ErrorCode::kLockTimeout,
                           "a call of another thread is under way and does not end in time");
    }
    if (spins < kSpins) {
      pause_briefly();
    } else {
      nap();
    }
  }
  gate.store(kClosed);
  return {};
}

void CallGate::open() {
  gate.store(kOpen);
  platform::wake_all(gate);
}

uint64_t CallGate::held() { return held_calls.load(); }
uint64_t CallGate::held_in_tasks() { return held_task_calls.load(); }

bool CallGate::notice_child() {
  if (process_of_state.load() == platform::process_id()) return false;
  begin_anew_in_child();
  return true;
}

void CallGate::begin_anew_in_child() {
  process_of_state.store(platform::process_id());
  const unsigned process = this_process.fetch_add(1, std::memory_order_relaxed) + 1;
  // The thread that forked goes on with its record, also in the middle of a call.
  if (own_record_ != &no_record_) own_record_->process.store(process, std::memory_order_relaxed);
  for (Record& record : borrowed_) record.depth.store(0, std::memory_order_relaxed);
  held_calls.store(0);
  held_task_calls.store(0);
  gate.store(kOpen);
}

}  // namespace understudy
