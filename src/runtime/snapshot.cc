// SPDX-License-Identifier: Apache-2.0
#include "runtime/snapshot.h"

#include <cstdlib>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "platform/fork_sentinel.h"
#include "platform/thread.h"
#include "runtime/call_gate.h"
#include "runtime/runtime.h"

namespace understudy {

namespace {

constexpr std::chrono::seconds kLockPatience(10);  // SNAP-12

const char* name_of(SnapshotStage stage) {
  switch (stage) {
    case SnapshotStage::kLockPre:
      return "LOCK_PRE";
    case SnapshotStage::kBackupPre:
      return "BACKUP_PRE";
    case SnapshotStage::kBackupPost:
      return "BACKUP_POST";
    case SnapshotStage::kRestorePre:
      return "RESTORE_PRE";
    case SnapshotStage::kRestorePost:
      return "RESTORE_POST";
    case SnapshotStage::kUnlockPost:
      return "UNLOCK_POST";
  }
  return "";
}

// SNAP-14. Handlers run in the opposite order of their registration, so one is registered at every
// lock: destructors of what was made before it find the process unlocked. The C library never
// forgets a handler, which is why their number is limited.
void unlock_at_exit() {
  constexpr unsigned kMostHandlers = 4096;
  static std::atomic<unsigned> handlers{0};
  if (handlers.fetch_add(1) >= kMostHandlers) return;
  (void)std::atexit([] {
    if (Runtime* const runtime = Runtime::existing()) runtime->snapshot().end_with_process();
  });
}

}  // namespace

class Snapshot::Turn {
 public:
  explicit Turn(Snapshot& snapshot) : snapshot_(snapshot) {
    const uint32_t self = platform::kernel_thread_id();
    uint32_t holder = snapshot_.turn_.load();
    is_nested_ = holder == self;
    if (is_nested_) return;
    for (holder = 0; !snapshot_.turn_.compare_exchange_strong(holder, self); holder = 0) {
      snapshot_.turn_.wait(holder);
    }
  }
  ~Turn() {
    if (is_nested_) return;
    snapshot_.turn_.store(0);
    snapshot_.turn_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Fails for a function of the program that is part of another call.
  Result<void> granted(ErrorCode refusal) const {
    if (!is_nested_ || snapshot_.stage_ == SnapshotStage::kUnlockPost) return {};
    return Error::format(refusal, "a callback of stage %s made the call",
                         snapshot_.stage_ ? name_of(*snapshot_.stage_) : "?");
  }

 private:
  Snapshot& snapshot_;
  bool is_nested_ = false;
};

Result<void> Snapshot::require(State expected, ErrorCode refusal) const {
  const State state = state_.load();
  if (state == expected) return {};
  switch (state) {
    case State::kRunning:
      return Error::format(refusal, "the process is not locked");
    case State::kLocked:
      return Error::format(refusal, "the process is locked, and not backed up");
    case State::kBackedUp:
      break;
  }
  return Error::format(refusal, "the process is backed up");
}

// ---- The four calls ----

Result<void> Snapshot::lock() {
  const Turn turn(*this);
  US_TRY(turn.granted(ErrorCode::kLockRefused));
  US_TRY(require(State::kRunning, ErrorCode::kLockRefused));
  US_TRY(run_callbacks(SnapshotStage::kLockPre));
  US_TRY(CallGate::close(deadline_after(kLockPatience)));
  state_.store(State::kLocked);
  unlock_at_exit();
  return {};
}

Result<void> Snapshot::backup() {
  const Turn turn(*this);
  US_TRY(turn.granted(ErrorCode::kBackupFailed));
  US_TRY(require(State::kLocked, ErrorCode::kBackupFailed));
  US_TRY(run_callbacks(SnapshotStage::kBackupPre));
  if (const Result<void> finished =
          streams_.finish_all([] { return CallGate::held_in_tasks() > 0; });
      !finished.ok()) {
    return finished.error().as(ErrorCode::kBackupFailed);
  }
  if (const uint64_t bytes = capacity_.charged();
      settings_.backup_memory && bytes > *settings_.backup_memory) {
    return Error::format(ErrorCode::kBackupFailed,
                         "the process has %s of device memory, and backup_memory is %s",
                         SizeText(bytes).c_str(), SizeText(*settings_.backup_memory).c_str());
  }
  // Functions of the last stage find the memory given back; others can have it only when none of
  // them can refuse any more.
  capacity_.show_set_aside(true);
  ScopeExit undo_show([&] { capacity_.show_set_aside(false); });
  US_TRY(run_callbacks(SnapshotStage::kBackupPost));
  capacity_.set_aside();
  state_.store(State::kBackedUp);
  return {};
}

Result<void> Snapshot::restore() {
  const Turn turn(*this);
  US_TRY(turn.granted(ErrorCode::kRestoreFailed));
  US_TRY(require(State::kBackedUp, ErrorCode::kRestoreFailed));
  US_TRY(run_callbacks(SnapshotStage::kRestorePre));
  US_TRY(bring_back(ErrorCode::kRestoreFailed));
  ScopeExit undo([&] {
    // The ledger of a child that a function made is its parent's.
    if (!platform::in_fork_child()) capacity_.set_aside();
  });
  US_TRY(run_callbacks(SnapshotStage::kRestorePost));
  undo.dismiss();
  state_.store(State::kLocked);
  return {};
}

Result<void> Snapshot::unlock() {
  const Turn turn(*this);
  US_TRY(turn.granted(ErrorCode::kUnlockRefused));
  if (state_.load() == State::kRunning) {
    return require(State::kLocked, ErrorCode::kUnlockRefused);
  }
  if (state_.load() == State::kBackedUp) US_TRY(bring_back(ErrorCode::kUnlockRefused));
  state_.store(State::kRunning);
  CallGate::open();
  return run_callbacks(SnapshotStage::kUnlockPost);
}

void Snapshot::end_with_process() {
  state_.store(State::kRunning);
  CallGate::open();
}

Result<void> Snapshot::bring_back(ErrorCode failure) {
  if (capacity_.bring_back()) return {};
  return Error::format(failure,
                       "a device has no longer room for the memory that this process had; free "
                       "some of what other processes have, and try again");
}

// ---- Functions of the program ----

Result<void> Snapshot::run_callbacks(SnapshotStage stage) {
  const std::optional<SnapshotStage> before = stage_;
  stage_ = stage;
  ScopeExit restore_stage([&] { stage_ = before; });
  const uint32_t devices = devices_.in_use();
  for (auto entry = callbacks_.next_after(stage, 0); entry;
       entry = callbacks_.next_after(stage, entry->number)) {
    for (unsigned device = 0; device < devices_.count(); ++device) {
      if ((devices >> device & 1) != 0) US_TRY(call(stage, *entry, device));
    }
  }
  return {};
}

Result<void> Snapshot::call(SnapshotStage stage, const StageCallbacks::Entry& entry,
                            unsigned device) {
  if (!callbacks_.has(stage, entry)) return {};  // another one, or itself, took it out
  const uint32_t answer = entry.function(static_cast<int32_t>(device), entry.arguments);
  if (platform::in_fork_child()) {
    return Error::format(ErrorCode::kInternal, "a callback of stage %s returned in a fork child",
                         name_of(stage));
  }
  if (answer == 0) return {};
  return Error::format(ErrorCode::kSnapshotCallback,
                       "a callback of stage %s answered %u for device %u", name_of(stage), answer,
                       device);
}

}  // namespace understudy
