// SPDX-License-Identifier: Apache-2.0
#include "stream/notify_tasks.h"

#include "stream/notifies.h"
#include "stream/shared_notify_link.h"
#include "stream/task.h"

namespace understudy {

namespace {

uint32_t changed(uint32_t number, NotifyChange change) {
  switch (change.update) {
    case NotifyUpdate::kSet:
      return change.value;
    case NotifyUpdate::kAdd:
      return number + change.value;
    case NotifyUpdate::kOr:
      return number | change.value;
    case NotifyUpdate::kAnd:
      return number & change.value;
  }
  return number;
}

bool holds(const NotifyCondition& condition, uint32_t number) {
  switch (condition.comparison) {
    case NotifyComparison::kLess:
      return number < condition.value;
    case NotifyComparison::kEqual:
      return number == condition.value;
    case NotifyComparison::kGreater:
      return number > condition.value;
    case NotifyComparison::kAtLeast:
      return number >= condition.value;
    case NotifyComparison::kAllBits:
      return (number & condition.value) == condition.value;
  }
  return true;
}

// Null if the number is here: then it was changed.
SharedNotifyLink* change_here(Notify& notify, NotifyChange change) {
  BriefLock lock(notify.mutex);
  if (notify.shared == nullptr) notify.number = changed(notify.number, change);
  return notify.shared;
}

}  // namespace

void release_notify(Task& task) {
  Notify& notify =
      task.kind == TaskKind::kWaitForNotify ? *task.notify_wait.notify : *task.notify_change.notify;
  notify.home->drop_user(notify);
}

void change_notify(Notify& notify, NotifyChange change, WaitGraph& wait_graph) {
  SharedNotifyLink* const shared = change_here(notify, change);
  if (shared == nullptr) {
    notify.changes.fetch_add(1);
    wait_graph.note_change(notify.waits);
  } else if (change.value != 0) {  // flags are set or cleared
    shared->set();
    wait_graph.note_ring();
  } else {
    shared->clear();
  }
}

NotifyLook look_at_notify(Notify& notify, const NotifyCondition& condition) {
  NotifyLook look{.is_over = false, .shared = nullptr, .seen = notify.changes.load()};
  {
    BriefLock lock(notify.mutex);
    look.shared = notify.shared;
    if (look.shared == nullptr) {
      look.is_over = holds(condition, notify.number);
      if (look.is_over && condition.clears) notify.number = 0;
    }
  }
  if (look.shared != nullptr) {
    look.seen = look.shared->rings().load();
    look.is_over = look.shared->take();
  }
  return look;
}

}  // namespace understudy
