// SPDX-License-Identifier: Apache-2.0
#include "memory/commit_states.h"

#include "base/sizes.h"
#include "platform/futex.h"

namespace understudy {

namespace {

uint64_t bytes_of_words(uint64_t granules) {
  return *align_up(granules * sizeof(std::atomic<uint32_t>), kNormalPage);
}
uint64_t bytes_for(uint64_t granules) {
  return bytes_of_words(granules) +
         *align_up(granules * sizeof(std::atomic<GranuleParts>), kNormalPage);
}

}  // namespace

CommitStates::CommitStates(platform::MemoryFile file, platform::SharedMapping mapping,
                           uint64_t granules, const ProcessSlots* slots)
    : file_(std::move(file)),
      mapping_(std::move(mapping)),
      parts_begin_(bytes_of_words(granules)),
      slots_(slots),
      own_(slots != nullptr ? ShortProcessTag(slots->own_tag()).word() : 1) {}

Result<CommitStates> CommitStates::make(const char* name, uint64_t granules,
                                        const ProcessSlots* slots) {
  US_TRY_ASSIGN(platform::MemoryFile file, platform::MemoryFile::create(platform::FileKind::kShared,
                                                                        name, bytes_for(granules)));
  return attach(std::move(file), granules, slots);
}

Result<CommitStates> CommitStates::attach(platform::MemoryFile file, uint64_t granules,
                                          const ProcessSlots* slots) {
  US_TRY_ASSIGN(platform::SharedMapping mapping,
                platform::SharedMapping::of_file(file.usable_descriptor(), bytes_for(granules)));
  return CommitStates(std::move(file), std::move(mapping), granules, slots);
}

bool CommitStates::is_abandoned(uint32_t word) const {
  return is_in_progress(state_of(word)) && !is_own_word(word) && slots_ != nullptr &&
         !slots_->is_alive(ShortProcessTag(word >> kProcessShift));
}

bool CommitStates::claim(uint64_t granule) {
  std::atomic<uint32_t>& word = words()[granule];
  uint32_t seen = word.load();
  const CommitState state = state_of(seen);
  if (state != CommitState::kCold && state != CommitState::kPartial && !is_abandoned(seen)) {
    return false;
  }
  return word.compare_exchange_strong(seen, word_of(CommitState::kCommitting));
}

bool CommitStates::take_over(uint64_t granule, ShortProcessTag process) {
  std::atomic<uint32_t>& word = words()[granule];
  uint32_t seen = word.load();
  while (state_of(seen) == CommitState::kCommitting && seen >> kProcessShift == process.word()) {
    // Others who sleep on the word are to be woken by the one who settles it.
    const uint32_t taken = word_of(CommitState::kCommitting) | (seen & kWaited);
    if (word.compare_exchange_weak(seen, taken)) return true;
  }
  return false;
}

bool CommitStates::begin_fill(uint64_t granule) {
  std::atomic<uint32_t>& word = words()[granule];
  uint32_t seen = word.load();
  while (is_own_claim(seen)) {
    const uint32_t filling = word_of(CommitState::kFilling) | (seen & kWaited);
    if (word.compare_exchange_weak(seen, filling)) return true;
  }
  return false;
}

void CommitStates::add_parts(uint64_t granule, GranuleParts parts) {
  parts_words()[granule].fetch_or(parts, std::memory_order_release);
}

bool CommitStates::settle(uint64_t granule, CommitState state) {
  std::atomic<uint32_t>& word = words()[granule];
  const uint32_t settled = state == CommitState::kCold ? 0 : word_of(state);
  uint32_t seen = word.load();
  while (is_own_claim(seen)) {
    if (!word.compare_exchange_weak(seen, settled)) continue;
    if ((seen & kWaited) != 0) platform::wake_all_processes(word);
    return true;
  }
  return false;
}

std::optional<ShortProcessTag> CommitStates::committing_process(uint64_t granule) const {
  const uint32_t seen = words()[granule].load();
  if (!is_in_progress(state_of(seen)) || is_own_word(seen) || is_abandoned(seen)) {
    return std::nullopt;
  }
  return ShortProcessTag(seen >> kProcessShift);
}

void CommitStates::wait(uint64_t granule) const {
  // The death of the process that we wait for does not wake us.
  constexpr std::chrono::milliseconds kLook(20);
  std::atomic<uint32_t>& word = words()[granule];
  uint32_t seen = word.load();
  if (!is_in_progress(state_of(seen)) || is_abandoned(seen)) return;
  if ((seen & kWaited) == 0 && !word.compare_exchange_strong(seen, seen | kWaited)) return;
  platform::sleep_on_shared(word, seen | kWaited, Clock::now() + kLook);
}

bool CommitStates::decommit(uint64_t granule) {
  // First: parts of a cold granule would have the bytes of whoever had it before.
  parts_words()[granule].store(0, std::memory_order_relaxed);
  const uint32_t before = words()[granule].exchange(0);
  return is_committed(state_of(before)) && is_own_word(before);
}

bool CommitStates::disown(uint64_t granule) {
  std::atomic<uint32_t>& word = words()[granule];
  uint32_t seen = word.load();
  return is_committed(state_of(seen)) && is_own_word(seen) &&
         word.compare_exchange_strong(seen, static_cast<uint32_t>(state_of(seen)));
}

Result<void> CommitWait::wait(uint64_t granule) {
  constexpr std::chrono::milliseconds kStall(100);
  const std::optional<ShortProcessTag> process = states_.committing_process(granule);
  if (process) {
    const Deadline now = Clock::now();
    if (!end_) end_ = now + kLedgerPatience;
    if (process != process_ || granule != granule_) {
      patience_ = now + kStall;
    } else if (has_passed(patience_)) {
      stalled_ = process;
    }
    if (has_passed(*end_)) {
      return Error::format(ErrorCode::kConnection,
                           "another process, which may be stopped, has been committing the same "
                           "shared memory for %d seconds",
                           static_cast<int>(kLedgerPatience.count()));
    }
  }
  process_ = process;
  granule_ = granule;
  states_.wait(granule);
  return {};
}

}  // namespace understudy
