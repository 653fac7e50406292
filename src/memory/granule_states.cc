// SPDX-License-Identifier: Apache-2.0
#include "memory/granule_states.h"

#include "base/sizes.h"
#include "platform/futex.h"

namespace understudy {

namespace {

uint64_t bytes_for(uint64_t granules) {
  return *align_up(granules * sizeof(std::atomic<uint32_t>), kNormalPage);
}

}  // namespace

GranuleStates::GranuleStates(platform::MemoryFile file, platform::SharedMapping mapping,
                             const Ledger* ledger)
    : file_(std::move(file)),
      mapping_(std::move(mapping)),
      ledger_(ledger),
      own_(ledger != nullptr ? ShortProcessTag(ledger->own_tag()).word() : 1) {}

Result<GranuleStates> GranuleStates::make(const char* name, uint64_t granules,
                                          const Ledger* ledger) {
  US_TRY_ASSIGN(platform::MemoryFile file, platform::MemoryFile::create(platform::FileKind::kShared,
                                                                        name, bytes_for(granules)));
  return attach(std::move(file), granules, ledger);
}

Result<GranuleStates> GranuleStates::attach(platform::MemoryFile file, uint64_t granules,
                                            const Ledger* ledger) {
  US_TRY_ASSIGN(platform::SharedMapping mapping,
                platform::SharedMapping::of_file(file.descriptor(), bytes_for(granules)));
  return GranuleStates(std::move(file), std::move(mapping), ledger);
}

bool GranuleStates::is_abandoned(uint32_t word) const {
  return state_of(word) == GranuleState::kWarming && !is_own_word(word) && ledger_ != nullptr &&
         !ledger_->is_alive(ShortProcessTag(word >> kProcessShift));
}

bool GranuleStates::claim(uint64_t granule) {
  std::atomic<uint32_t>& word = words()[granule];
  uint32_t seen = word.load();
  if (state_of(seen) != GranuleState::kCold && !is_abandoned(seen)) return false;
  return word.compare_exchange_strong(seen, word_of(GranuleState::kWarming));
}

void GranuleStates::settle(uint64_t granule, GranuleState state) {
  std::atomic<uint32_t>& word = words()[granule];
  const uint32_t settled = state == GranuleState::kCold ? 0 : word_of(state);
  if ((word.exchange(settled) & kWaited) != 0) platform::wake_all_processes(word);
}

void GranuleStates::wait(uint64_t granule) const {
  // Nobody wakes us when the process dies that we wait for.
  constexpr std::chrono::milliseconds kLook(20);
  std::atomic<uint32_t>& word = words()[granule];
  uint32_t seen = word.load();
  if (state_of(seen) != GranuleState::kWarming || is_abandoned(seen)) return;
  if ((seen & kWaited) == 0 && !word.compare_exchange_strong(seen, seen | kWaited)) return;
  platform::sleep_on_shared(word, seen | kWaited, Clock::now() + kLook);
}

bool GranuleStates::chill(uint64_t granule) { return is_own_word(words()[granule].exchange(0)); }

bool GranuleStates::disown(uint64_t granule) {
  std::atomic<uint32_t>& word = words()[granule];
  uint32_t seen = word.load();
  return is_warm(state_of(seen)) && is_own_word(seen) &&
         word.compare_exchange_strong(seen, static_cast<uint32_t>(state_of(seen)));
}

}  // namespace understudy
