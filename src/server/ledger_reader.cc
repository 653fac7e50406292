// SPDX-License-Identifier: Apache-2.0
#include "server/ledger_reader.h"

#include <utility>

#include "platform/byte_lock.h"
#include "server/process_liveness.h"

namespace understudy {

namespace {

bool is_sound(const LedgerHeader& header) {
  return kind_of(header) == HeaderKind::kOwnVersion && header.shape.devices > 0 &&
         header.shape.devices <= kMaxDevices && header.shape.normal_memory <= header.shape.memory &&
         header.slots.load() <= kProcessSlots;
}

bool is_quiet(const LedgerHeader& before, const LedgerHeader& after) {
  return before.changes.load() == after.changes.load() && before.changes.load() % 2 == 0 &&
         before.server == after.server && before.slots.load() == after.slots.load();
}

}  // namespace

Result<LedgerReader> LedgerReader::open(const std::string& path) {
  US_TRY_ASSIGN(platform::ReadOnlyFile file, platform::ReadOnlyFile::open(path));
  return LedgerReader(std::move(file));
}

std::unique_ptr<LedgerHeader> LedgerReader::read_header() const {
  auto header = std::make_unique<LedgerHeader>();
  if (!fill(0, std::span(header.get(), 1))) return nullptr;
  return header;
}

std::optional<LedgerCopy> LedgerReader::read_once() const {
  LedgerCopy copy{read_header(), {}, {}};
  if (copy.header == nullptr || !is_sound(*copy.header)) return std::nullopt;
  const unsigned slots = copy.header->slots.load();
  copy.slots = std::vector<ProcessSlot>(slots);
  copy.uses = std::vector<UseGroup>((slots + UseGroup::kSlots - 1) / UseGroup::kSlots);
  if (!fill(kSlotsOffset, std::span(copy.slots)) || !fill(kUsesOffset, std::span(copy.uses))) {
    return std::nullopt;
  }
  return copy;
}

std::optional<LedgerCopy> LedgerReader::read() const {
  constexpr int kAttempts = 8;
  std::optional<LedgerCopy> copy;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    copy = read_once();
    if (!copy) continue;  // a server may be about to begin
    const std::unique_ptr<LedgerHeader> after = read_header();
    if (after != nullptr && is_quiet(*copy->header, *after)) break;
  }
  return copy;
}

std::unique_ptr<ProcessFigures> LedgerReader::read_figures(unsigned slot,
                                                           const ProcessSlot& copied) const {
  auto figures = std::make_unique<ProcessFigures>();
  const auto again = std::make_unique<ProcessSlot>();
  if (!fill(kFiguresOffset + slot * sizeof(ProcessFigures), std::span(figures.get(), 1)) ||
      !fill(kSlotsOffset + slot * sizeof(ProcessSlot), std::span(again.get(), 1)) ||
      again->taken.load() == 0 || again->generation.load() != copied.generation.load()) {
    return nullptr;
  }
  return figures;
}

bool LedgerReader::has_ended(unsigned slot, const ProcessSlot& copied) const {
  if (copied.taken.load() == 0) return true;
  return has_process_ended({copied.process, copied.birth, copied.pid_namespace}, [&] {
    return platform::is_locked_by_other(file_.descriptor(), kSlotBytes + slot);
  });
}

bool LedgerReader::has_live_process() const {
  if (platform::is_locked_by_other(file_.descriptor(), kSlotBytes, kProcessSlots)) return true;
  const std::optional<LedgerCopy> copy = read();
  if (!copy) return false;
  for (unsigned slot = 0; slot < copy->slots.size(); ++slot) {
    if (!has_ended(slot, copy->slots[slot])) return true;
  }
  return false;
}

}  // namespace understudy
