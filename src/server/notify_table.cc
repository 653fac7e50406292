// SPDX-License-Identifier: Apache-2.0
#include "server/notify_table.h"

namespace understudy {

NotifyTable::NotifyTable(LedgerFile& file, ProcessSlots& slots)
    : HeldTable(file, slots, file.header().notifies, file.notifies(), kMostNotifies) {}

Result<ShareToken> NotifyTable::add(const NotifyDescription& description, Deadline deadline) {
  return add_entry(
      [&](NotifyEntry& notify) {
        notify.device = description.device;
        notify.open_to_all = description.open_to_all ? 1 : 0;
        notify.is_set.store(0);
      },
      deadline);
}

Result<std::optional<NotifyView>> NotifyTable::find(ShareToken token, Deadline deadline) {
  const LedgerLock lock(slots_.mutex(), deadline);
  US_TRY(lock.taken());
  const NotifyEntry* const notify = find_open(token);
  if (notify == nullptr) return std::optional<NotifyView>();
  return std::optional(NotifyView{
      .owner = slots_.tag_of(notify->owner),
      .description = {.device = notify->device, .open_to_all = notify->open_to_all != 0}});
}

void NotifyTable::set(uint32_t number) {
  NotifyEntry& notify = entries_[number];
  notify.is_set.store(1);
  US_KILL_POINT("notify.set");
  slots_.ring(notify.holders);
}

void NotifyTable::clear(uint32_t number) { entries_[number].is_set.store(0); }

bool NotifyTable::take(uint32_t number) {
  uint32_t set = 1;
  return entries_[number].is_set.compare_exchange_strong(set, 0);
}

}  // namespace understudy
