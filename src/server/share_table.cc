// SPDX-License-Identifier: Apache-2.0
#include "server/share_table.h"

#include <array>

#include "base/kill_point.h"
#include "platform/random_bytes.h"

namespace understudy {

namespace {

// The states of an entry that is not free.
constexpr uint32_t kShared = 1;
constexpr uint32_t kReturned = 2;  // the owner's again, who does not know yet; not charged

unsigned pool_of(const ShareEntry& entry) {
  return static_cast<PageKind>(entry.page_kind) == PageKind::kNormal ? 0 : 1;
}

bool is_charged(const ShareEntry& entry) {
  return static_cast<LocationKind>(entry.location_kind) == LocationKind::kDevice;
}

}  // namespace

uint64_t make_secret() {
  while (true) {
    const uint64_t secret = platform::random_number() >> ShareToken::kNumberBits;
    if (secret != 0) return secret;
  }
}

ShareTable::ShareTable(LedgerFile& file, ProcessSlots& slots)
    : file_(file), slots_(slots), entries_(file, file.header().shares, file.shares(), kMostShares) {
  slots.add_table(*this);
}

std::atomic<uint64_t>& ShareTable::shared_pages(const ShareEntry& entry) const {
  return file_.header().shared[entry.location_id].words[pool_of(entry)];
}

Result<ShareToken> ShareTable::add(const ShareDescription& description, Deadline deadline) {
  const uint64_t secret = make_secret();
  const LedgerLock lock(slots_.mutex(), deadline);
  US_TRY(lock.taken());
  US_TRY_ASSIGN(const uint32_t number, entries_.take());
  const LedgerChange change(file_);
  ShareEntry& entry = entries_[number];
  entry.owner = static_cast<uint16_t>(slots_.own_slot());
  entry.owner_tag = slots_.own_tag().word();
  entry.kind = description.kind;
  entry.open_to_all = description.open_to_all ? 1 : 0;
  entry.page_kind = static_cast<uint8_t>(description.page_kind);
  entry.attribute = description.attribute;
  entry.location_kind = static_cast<uint8_t>(description.location.kind);
  entry.location_id = static_cast<uint16_t>(description.location.id);
  entry.read_only = description.read_only ? 1 : 0;
  entry.backing = description.backing;
  entry.offset = description.offset;
  entry.size = description.size;
  entry.usable = description.usable;
  entry.pages = static_cast<uint32_t>(description.charged / kNormalPage);
  US_KILL_POINT("share.add.described");
  entry.holders.add(slots_.own_slot());
  US_KILL_POINT("share.add.held");
  slots_.count_hold(slots_.own_slot());
  slots_.count_export();
  US_KILL_POINT("share.add.counted");
  entry.live.store(kShared);
  US_KILL_POINT("share.add.live");
  entry.secret.store(secret);
  US_KILL_POINT("share.add.open");
  if (is_charged(entry)) {
    // First counted twice, then once: never less than there is.
    shared_pages(entry).fetch_add(entry.pages);
    US_KILL_POINT("share.add.charged_twice");
    slots_.own_use(entry.location_id).words[pool_of(entry)].fetch_sub(entry.pages);
    US_KILL_POINT("share.add.charged");
  }
  return ShareToken(number, secret);
}

std::optional<ShareToken> ShareTable::token_of(uint32_t number) const {
  const uint64_t secret = entries_[number].secret.load();
  if (secret == 0) return std::nullopt;
  return ShareToken(number, secret);
}

Result<ShareToken> ShareTable::reopen(uint32_t number, ShareKind kind, bool open_to_all,
                                      uint64_t usable, Deadline deadline) {
  const uint64_t secret = make_secret();
  const LedgerLock lock(slots_.mutex(), deadline);
  US_TRY(lock.taken());
  ShareEntry& entry = entries_[number];
  entry.kind = kind;
  entry.open_to_all = open_to_all ? 1 : 0;
  entry.usable = usable;
  entry.secret.store(secret);
  return ShareToken(number, secret);
}

void ShareTable::close(ShareToken token) noexcept {
  uint64_t secret = token.secret();
  entries_[token.number()].secret.compare_exchange_strong(secret, 0);
}

Result<std::optional<ShareView>> ShareTable::find(ShareToken token, Deadline deadline) const {
  const LedgerLock lock(slots_.mutex(), deadline);
  US_TRY(lock.taken());
  const ShareEntry* const entry = entries_.find(token);
  if (entry == nullptr || entry->owner == ShareEntry::kNoSlot) return std::optional<ShareView>();
  return std::optional(ShareView{
      .number = token.number(),
      .owner = ProcessTag(entry->owner_tag),
      .description = {
          .kind = entry->kind,
          .open_to_all = entry->open_to_all != 0,
          .read_only = entry->read_only != 0,
          .page_kind = static_cast<PageKind>(entry->page_kind),
          .attribute = entry->attribute,
          .location = {static_cast<LocationKind>(entry->location_kind), entry->location_id},
          .backing = entry->backing,
          .offset = entry->offset,
          .size = entry->size,
          .usable = entry->usable,
          .charged = entry->pages * kNormalPage}});
}

Result<bool> ShareTable::hold(ShareToken token, Deadline deadline) {
  const LedgerLock lock(slots_.mutex(), deadline);
  US_TRY(lock.taken());
  ShareEntry* const entry = entries_.find(token);
  if (entry == nullptr || entry->owner == ShareEntry::kNoSlot ||
      !slots_.is_slot_alive(entry->owner)) {
    return false;
  }
  if (!entry->holders.has(slots_.own_slot())) {
    entry->holders.add(slots_.own_slot());
    US_KILL_POINT("share.hold.held");
    slots_.count_hold(slots_.own_slot());
    US_KILL_POINT("share.hold.counted");
  }
  return true;
}

Result<AfterDrop> ShareTable::drop(uint32_t number, Deadline deadline) {
  const LedgerLock lock(slots_.mutex(), deadline);
  US_TRY(lock.taken());
  const LedgerChange change(file_);
  return drop_locked(number);
}

bool ShareTable::try_release(std::span<Release> batch) {
  // Others took this process for dead, and dropped all it had.
  if (!slots_.has_own_slot()) {
    for (Release& each : batch) each.after = AfterDrop::kHeld;
    return true;
  }
  const LedgerLock lock(slots_.mutex(), kOneAttempt);
  if (!lock.taken().ok()) return false;
  const LedgerChange change(file_);
  for (Release& each : batch) {
    if (each.close_secret != 0) close(ShareToken(each.number, each.close_secret));
    US_KILL_POINT("share.release.next");
    if (each.drop) each.after = drop_locked(each.number);
  }
  return true;
}

AfterDrop ShareTable::drop_locked(uint32_t number) {
  ShareEntry& entry = entries_[number];
  // What its exporter no longer has no new holder can have.
  if (entry.owner == slots_.own_slot()) entry.secret.store(0);
  US_KILL_POINT("share.drop.closed");
  entry.holders.remove(slots_.own_slot());
  US_KILL_POINT("share.drop.dropped");
  slots_.count_drop(slots_.own_slot());
  US_KILL_POINT("share.drop.counted");
  if (!entry.holders.empty()) return AfterDrop::kHeld;
  return end(number, slots_.own_slot());
}

AfterDrop ShareTable::end(uint32_t number, unsigned dropped_by) {
  ShareEntry& entry = entries_[number];
  entry.secret.store(0);
  US_KILL_POINT("share.end.closed");
  if (is_charged(entry)) shared_pages(entry).fetch_sub(entry.pages);
  US_KILL_POINT("share.end.credited");
  const bool has_owner = entry.owner != ShareEntry::kNoSlot;
  if (has_owner && entry.owner != dropped_by) {
    entry.live.store(kReturned);
    US_KILL_POINT("share.end.returned");
    slots_.count_return(entry.owner);
    US_KILL_POINT("share.end.counted");
    return AfterDrop::kReturned;
  }
  entries_.free(number);
  return has_owner ? AfterDrop::kOwnAgain : AfterDrop::kOrphaned;
}

Result<size_t> ShareTable::take_returns(std::span<uint32_t> room, Deadline deadline) {
  const LedgerLock lock(slots_.mutex(), deadline);
  US_TRY(lock.taken());
  size_t taken = 0;
  for (uint32_t number = 0; number < entries_.count() && taken < room.size(); ++number) {
    const ShareEntry& entry = entries_[number];
    if (entry.live.load() != kReturned || entry.owner != slots_.own_slot()) continue;
    room[taken++] = number;
    entries_.free(number);
    US_KILL_POINT("share.take_returns.freed");
    slots_.count_return_taken();
  }
  return taken;
}

Result<size_t> ShareTable::held_parts(ProcessTag owner, std::span<HeldPart> room,
                                      Deadline deadline) {
  const LedgerLock lock(slots_.mutex(), deadline);
  US_TRY(lock.taken());
  size_t found = 0;
  for (uint32_t number = 0; number < entries_.count(); ++number) {
    const ShareEntry& entry = entries_[number];
    if (entry.live.load() != kShared || entry.owner_tag != owner.word()) continue;
    if (found < room.size()) room[found] = {entry.backing, entry.offset, entry.size};
    ++found;
  }
  return found;
}

void ShareTable::drop_holds(unsigned slot) {
  if (!slots_.may_hold(slot)) return;
  for (uint32_t number = 0; number < entries_.count(); ++number) {
    ShareEntry& entry = entries_[number];
    const uint32_t state = entry.live.load();
    if (state == 0) continue;
    const bool held = entry.holders.has(slot);
    const bool owned = entry.owner == slot;
    if (!held && !owned) continue;
    // If this process dies here, the next one begins again: the slot is cleared at the end.
    if (state == kReturned) {
      entries_.free(number);
      continue;
    }
    if (owned) {
      entry.secret.store(0);
      US_KILL_POINT("share.clear.closed");
      entry.owner = ShareEntry::kNoSlot;
      US_KILL_POINT("share.clear.orphaned");
    }
    entry.holders.remove(slot);
    US_KILL_POINT("share.clear.dropped");
    if (entry.holders.empty()) end(number, slot);
  }
}

void ShareTable::repair() {
  // Others charge meanwhile: a total is right before and after, and never in between.
  std::array<std::array<uint64_t, kPools>, kMaxDevices> totals{};
  for (uint32_t number = 0; number < entries_.count(); ++number) {
    ShareEntry& entry = entries_[number];
    const bool has_owner = entry.owner != ShareEntry::kNoSlot;
    // A process was about to end it.
    if (entry.live.load() == kShared && entry.holders.empty()) {
      entry.secret.store(0);
      entry.live.store(has_owner ? kReturned : 0);
    }
    if (entry.live.load() == kReturned && !has_owner) entry.live.store(0);
    if (entry.live.load() == kReturned) slots_.count_return(entry.owner);
    if (entry.live.load() != kShared) continue;
    if (is_charged(entry)) totals[entry.location_id][pool_of(entry)] += entry.pages;
    for (unsigned slot = 0; slot < slots_.count(); ++slot) {
      if (entry.holders.has(slot)) slots_.count_hold(slot);
    }
  }
  for (unsigned device = 0; device < kMaxDevices; ++device) {
    for (unsigned pool = 0; pool < kPools; ++pool) {
      file_.header().shared[device].words[pool].store(totals[device][pool]);
    }
  }
  entries_.relist();
}

}  // namespace understudy
