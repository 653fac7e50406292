// SPDX-License-Identifier: Apache-2.0
#include "observe/recorder.h"

#include <memory>
#include <new>
#include <utility>

#include "base/deadline.h"
#include "base/pause.h"
#include "base/scope_exit.h"
#include "observe/recorder_state.h"
#include "platform/fork_sentinel.h"
#include "platform/host_facts.h"

namespace understudy {

Recorder::ThreadPart::Returner::~Returner() {
  ThreadPart& part = own;
  // Not the first use of a fork child: what the thread has is its parent's.
  if (part.chunk != nullptr) {
    const Use use;
    if (use && part.chunk != nullptr) use->leave(part);
  }
  part = {};
  part.has_ended = true;
}

// ---- Which process this is ----

constinit std::atomic<Recorder::State*> Recorder::state_{nullptr};
constinit std::atomic<Recorder::State*> Recorder::inherited_{nullptr};
constinit std::atomic<Recorder::State*> Recorder::retired_{nullptr};
// When the library is loaded: see CallGate.
const bool Recorder::registered_ = (platform::call_in_fork_child(forget_in_fork_child), true);

// The parent's states stay where they are: a thread of the parent may have been in the middle of
// one, and the mapping was not inherited.
void Recorder::forget_in_fork_child() {
  forget_uses_in_fork_child();
  retired_.store(nullptr);
  if (State* const known = state_.exchange(nullptr)) inherited_.store(known);
  ThreadPart::own = {};
}

Recorder::State* Recorder::join_parent() noexcept {
  State* const inherited = inherited_.load();
  if (inherited == nullptr) return nullptr;
  try {
    std::unique_ptr<State> fresh = inherited->for_child();
    if (fresh == nullptr) {
      inherited_.store(nullptr);  // not asked again with each call
      return nullptr;
    }
    State* known = nullptr;
    if (!state_.compare_exchange_strong(known, fresh.get())) return known;
    // Another thread may have stopped it meanwhile.
    known = fresh.release();
    if (inherited_.load() == inherited || !state_.compare_exchange_strong(known, nullptr)) {
      return known;
    }
    retire(*known);
    return nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Recorder::State* Recorder::Use::find() noexcept {
  State* known = Recorder::state_.load(std::memory_order_acquire);
  while (true) {
    if (known == nullptr) known = join_parent();
    if (known == nullptr) return nullptr;
    record_->used.store(known, std::memory_order_relaxed);
    order_use(*record_);
    State* const now = Recorder::state_.load(std::memory_order_acquire);
    if (now != known) {
      known = now;
    } else if (platform::in_fork_child() && known->process() != platform::process_id())
        [[unlikely]] {
      // A child that no handler of fork was called for has its parent's.
      forget_in_fork_child();
      known = nullptr;
    } else {
      return known;
    }
  }
}

Recorder::Use::Use() noexcept {
  UseRecord* const record = own_use_record != nullptr ? own_use_record : claim_use_record();
  if (record == nullptr) return;
  if (const void* const outer = record->used.load(std::memory_order_relaxed)) [[unlikely]] {
    // A signal handler in the middle of a use. What is used there stays; nothing else would.
    State* const known = Recorder::state_.load(std::memory_order_acquire);
    state_ = known == outer ? known : nullptr;
    return;
  }
  record_ = record;
  state_ = find();
  if (state_ == nullptr) return;
  ThreadPart& part = ThreadPart::own;
  if (part.generation != state_->generation()) [[unlikely]]
    part.join(state_->generation());
}

// ---- Beginning and end ----

// Whatever changes one of what this looks at calls it behind that. So the last change of the flag
// has seen them all.
void Recorder::renew_flag() noexcept {
  uint8_t before = chosen_checks.load();
  uint8_t fresh = 0;
  do {
    const bool is_on = state_.load() != nullptr || inherited_.load() != nullptr;
    fresh = static_cast<uint8_t>(is_on ? before | kRecordingBit : before & ~kRecordingBit);
  } while (!chosen_checks.compare_exchange_weak(before, fresh));
}

Result<bool> Recorder::begin_with(const RecordingChoice& choice, const std::string& facts) {
  US_TRY_ASSIGN(std::unique_ptr<RecordingFile> file, RecordingFile::open(choice));
  auto fresh = std::make_unique<State>(choice, facts, std::move(file));
  fresh->describe_process(0);
  State* none = nullptr;
  const bool is_first = state_.compare_exchange_strong(none, fresh.get());
  if (is_first) (void)fresh.release();
  renew_flag();
  return is_first;
}

Result<void> Recorder::begin(const RecordingChoice& choice, const std::string& facts) {
  if (is_recorded()) return {};
  US_TRY(begin_with(choice, facts));
  return {};
}

Result<void> Recorder::start(RecordingChoice choice, const std::string& facts) {
  (void)try_give_back();
  // One thread at a time: a second one would replace the file of the first. Of a process: what the
  // threads of a parent were about is nothing to its fork child.
  static constinit std::atomic<int32_t> starting{0};
  const int32_t process = platform::process_id();
  int32_t other = starting.load();
  const Error busy = Error::format(ErrorCode::kAlreadyInitialized,
                                   "another thread begins a recording of the process");
  if (other == process || !starting.compare_exchange_strong(other, process)) return busy;
  const ScopeExit end([] { starting.store(0); });
  if (const Use use; use) {
    return Error::format(ErrorCode::kAlreadyInitialized,
                         "the process is recorded already, in %.200s", use->choice().file.c_str());
  }
  choice.is_of_program = true;
  US_TRY_ASSIGN(const bool is_first, begin_with(choice, facts));
  if (!is_first) return busy;
  return {};
}

Result<void> Recorder::stop() {
  // Longer than any record takes that is not held up.
  constexpr std::chrono::seconds kPatience(1);
  State* stopped = nullptr;
  {
    const Use use;
    if (use && !use->choice().is_of_program) {
      return Error::format(
          ErrorCode::kAlreadyFinalized,
          "the recording in %.200s was asked for with the key trace, and ends with "
          "the process",
          use->choice().file.c_str());
    }
    if (use) {
      // The call that stops it has no end in it, and is not one that hangs.
      ThreadPart& part = ThreadPart::own;
      if (part.chunk != nullptr) part.chunk->open_function.store(0, std::memory_order_relaxed);
      inherited_.store(nullptr);
      State* known = use.state();
      if (state_.compare_exchange_strong(known, nullptr)) stopped = use.state();
    }
  }
  if (stopped == nullptr) {
    return Error::format(ErrorCode::kAlreadyFinalized,
                         "the process is not recorded; there is nothing to stop");
  }
  renew_flag();
  retire(*stopped);
  const Deadline deadline = deadline_after(kPatience);
  while (!try_give_back() && !has_passed(deadline)) nap();
  return {};
}

void Recorder::retire(State& stopped) noexcept {
  stopped.next_retired = retired_.load();
  while (!retired_.compare_exchange_weak(stopped.next_retired, &stopped)) {
  }
}

bool Recorder::try_give_back() noexcept {
  State* next = retired_.exchange(nullptr);
  if (next == nullptr) return true;
  const bool is_ordered = order_uses();
  bool is_done = true;
  while (State* const each = next) {
    next = each->next_retired;
    if (is_ordered && !is_used(each)) {
      each->file().close_chunks();
      delete each;
    } else {
      retire(*each);
      is_done = false;
    }
  }
  return is_done;
}

bool Recorder::records_stacks() noexcept {
  if (!is_recorded()) return false;
  const Use use;
  return use && use->file().records_stacks();
}

void Recorder::name_task_kinds(std::span<const char* const> names) noexcept {
  State::task_kinds = names;
}

}  // namespace understudy
