// SPDX-License-Identifier: Apache-2.0
#include "device/share_table.h"

#include <array>

#include "platform/random_bytes.h"

namespace understudy {

namespace {

// The states of an entry that is not free.
constexpr uint32_t kShared = 1;
constexpr uint32_t kReturned = 2;  // the owner's again, who does not know yet; not charged

using Table = ShareTableTraits;

unsigned pool_of(const ShareEntry& entry) {
  return static_cast<PageKind>(entry.page_kind) == PageKind::kNormal ? 0 : 1;
}

std::atomic<uint64_t>& shared_pages(Ledger& ledger, const ShareEntry& entry) {
  return ledger.header().shared[entry.location_id].words[pool_of(entry)];
}

bool is_charged(const ShareEntry& entry) {
  return static_cast<LocationKind>(entry.location_kind) == LocationKind::kDevice;
}

// Nobody holds it any more.
AfterDrop end_share(Ledger& ledger, uint32_t number, unsigned dropped_by) {
  ShareEntry& entry = ledger.share(number);
  entry.secret.store(0);
  if (is_charged(entry)) shared_pages(ledger, entry).fetch_sub(entry.pages);
  const bool has_owner = entry.owner != ShareEntry::kNoSlot;
  if (has_owner && entry.owner != dropped_by) {
    entry.live.store(kReturned);
    ledger.slot(entry.owner).returned.fetch_add(1);
    return AfterDrop::kReturned;
  }
  free_entry<Table>(ledger, number);
  return has_owner ? AfterDrop::kOwnAgain : AfterDrop::kNobodys;
}

// RAII for the time in which entries and totals disagree.
class Change {
 public:
  Change(Ledger& ledger, const LedgerLock& lock) : ledger_(ledger), lock_(lock) {
    ledger_.begin_change(lock_);
  }
  ~Change() { ledger_.end_change(lock_); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  Ledger& ledger_;
  const LedgerLock& lock_;
};

}  // namespace

uint64_t make_secret() {
  while (true) {
    const uint64_t secret = platform::random_number() >> ShareToken::kNumberBits;
    if (secret != 0) return secret;
  }
}

Result<ShareToken> ShareTable::add(const ShareDescription& description) {
  const uint64_t secret = make_secret();
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  US_TRY_ASSIGN(const uint32_t number, take_entry<Table>(ledger_));
  const Change change(ledger_, lock);
  ShareEntry& entry = ledger_.share(number);
  entry.owner = static_cast<uint16_t>(ledger_.own_slot());
  entry.owner_tag = ledger_.own_tag().word();
  entry.kind = description.kind;
  entry.open_to_all = description.open_to_all ? 1 : 0;
  entry.page_kind = static_cast<uint8_t>(description.page_kind);
  entry.attribute = description.attribute;
  entry.location_kind = static_cast<uint8_t>(description.location.kind);
  entry.location_id = static_cast<uint16_t>(description.location.id);
  entry.read_only = description.read_only ? 1 : 0;
  entry.store = description.store;
  entry.offset = description.offset;
  entry.size = description.size;
  entry.usable = description.usable;
  entry.pages = static_cast<uint32_t>(description.charged / kNormalPage);
  entry.holders.add(ledger_.own_slot());
  ++ledger_.own().holds;
  ++ledger_.own().exports;
  entry.live.store(kShared);
  entry.secret.store(secret);
  if (is_charged(entry)) {
    // First counted twice, then once: never less than there is.
    shared_pages(ledger_, entry).fetch_add(entry.pages);
    ledger_.own().devices[entry.location_id].words[pool_of(entry)].fetch_sub(entry.pages);
  }
  return ShareToken(number, secret);
}

std::optional<ShareToken> ShareTable::token_of(uint32_t number) const {
  const uint64_t secret = ledger_.share(number).secret.load();
  if (secret == 0) return std::nullopt;
  return ShareToken(number, secret);
}

Result<ShareToken> ShareTable::reopen(uint32_t number, ShareKind kind, bool open_to_all,
                                      uint64_t usable) {
  const uint64_t secret = make_secret();
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  ShareEntry& entry = ledger_.share(number);
  entry.kind = kind;
  entry.open_to_all = open_to_all ? 1 : 0;
  entry.usable = usable;
  entry.secret.store(secret);
  return ShareToken(number, secret);
}

Result<void> ShareTable::close(ShareToken token) {
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  if (ShareEntry* const entry = find_entry<Table>(ledger_, token)) entry->secret.store(0);
  return {};
}

Result<std::optional<ShareView>> ShareTable::find(ShareToken token) const {
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  const ShareEntry* const entry = find_entry<Table>(ledger_, token);
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
          .store = entry->store,
          .offset = entry->offset,
          .size = entry->size,
          .usable = entry->usable,
          .charged = entry->pages * kNormalPage}});
}

Result<bool> ShareTable::hold(ShareToken token) {
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  ShareEntry* const entry = find_entry<Table>(ledger_, token);
  if (entry == nullptr || entry->owner == ShareEntry::kNoSlot ||
      !ledger_.is_slot_alive(entry->owner)) {
    return false;
  }
  if (!entry->holders.has(ledger_.own_slot())) {
    entry->holders.add(ledger_.own_slot());
    ++ledger_.own().holds;
  }
  return true;
}

Result<AfterDrop> ShareTable::drop(uint32_t number) {
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  ShareEntry& entry = ledger_.share(number);
  const Change change(ledger_, lock);
  // What its exporter no longer has nobody new can have.
  if (entry.owner == ledger_.own_slot()) entry.secret.store(0);
  entry.holders.remove(ledger_.own_slot());
  --ledger_.own().holds;
  if (!entry.holders.empty()) return AfterDrop::kHeld;
  return end_share(ledger_, number, ledger_.own_slot());
}

Result<std::vector<uint32_t>> ShareTable::take_returns() {
  std::vector<uint32_t> found;
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  found.reserve(ledger_.own().returned.load());
  for (uint32_t number = 0; number < ledger_.header().shares.high.load(); ++number) {
    const ShareEntry& entry = ledger_.share(number);
    if (entry.live.load() != kReturned || entry.owner != ledger_.own_slot()) continue;
    found.push_back(number);
    free_entry<Table>(ledger_, number);
  }
  ledger_.own().returned.store(0);
  return found;
}

Result<std::vector<ShareTable::HeldPart>> ShareTable::held_parts(ProcessTag owner) {
  std::vector<HeldPart> parts;
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  for (uint32_t number = 0; number < ledger_.header().shares.high.load(); ++number) {
    const ShareEntry& entry = ledger_.share(number);
    if (entry.live.load() != kShared || entry.owner_tag != owner.word()) continue;
    parts.push_back({entry.store, entry.offset, entry.size});
  }
  return parts;
}

void drop_share_holds(Ledger& ledger, unsigned slot) {
  for (uint32_t number = 0; number < ledger.header().shares.high.load(); ++number) {
    ShareEntry& entry = ledger.share(number);
    const uint32_t state = entry.live.load();
    if (state == 0) continue;
    const bool held = entry.holders.has(slot);
    const bool owned = entry.owner == slot;
    if (!held && !owned) continue;
    // Whoever dies at this is followed by one who begins anew: the slot is cleared at the end.
    if (state == kReturned) {
      free_entry<Table>(ledger, number);
      continue;
    }
    if (owned) {
      entry.secret.store(0);
      entry.owner = ShareEntry::kNoSlot;
    }
    entry.holders.remove(slot);
    if (entry.holders.empty()) {
      end_share(ledger, number, slot);
    }
  }
}

void repair_shares(Ledger& ledger) {
  const uint32_t slots = ledger.header().slots.load();
  for (unsigned slot = 0; slot < slots; ++slot) {
    ledger.slot(slot).holds = 0;
    ledger.slot(slot).returned.store(0);
  }
  // Others charge meanwhile: a total is right before and after, and never in between.
  std::array<std::array<uint64_t, kPools>, kMaxDevices> totals{};
  for (uint32_t number = 0; number < ledger.header().shares.high.load(); ++number) {
    ShareEntry& entry = ledger.share(number);
    const bool has_owner = entry.owner != ShareEntry::kNoSlot;
    // Someone was about to end it.
    if (entry.live.load() == kShared && entry.holders.empty()) {
      entry.secret.store(0);
      entry.live.store(has_owner ? kReturned : 0);
    }
    if (entry.live.load() == kReturned && !has_owner) entry.live.store(0);
    if (entry.live.load() == kReturned) ledger.slot(entry.owner).returned.fetch_add(1);
    if (entry.live.load() != kShared) continue;
    if (is_charged(entry)) totals[entry.location_id][pool_of(entry)] += entry.pages;
    for (unsigned slot = 0; slot < slots; ++slot) {
      if (entry.holders.has(slot)) ++ledger.slot(slot).holds;
    }
  }
  for (unsigned device = 0; device < kMaxDevices; ++device) {
    for (unsigned pool = 0; pool < kPools; ++pool) {
      ledger.header().shared[device].words[pool].store(totals[device][pool]);
    }
  }
  relist_free_entries<Table>(ledger);
}

}  // namespace understudy
