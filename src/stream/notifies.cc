// SPDX-License-Identifier: Apache-2.0
#include "stream/notifies.h"

#include <cinttypes>
#include <optional>
#include <utility>

#include "base/scope_exit.h"
#include "observe/history.h"
#include "observe/order.h"
#include "stream/notify_tasks.h"

namespace understudy {

namespace {

Error not_a_notify(uint64_t handle) {
  return Error::format(ErrorCode::kInvalidHandle, "0x%" PRIx64 " is not a live notify", handle)
      .about(handle);
}

Error was_destroyed(const NotifyReference& reference) {
  return not_a_notify(Notifies::handle_of(reference));
}

bool is_same(const Notify& notify, const NotifyReference& reference) {
  return notify.state.load(std::memory_order_acquire) == reference.state;
}

Error is_imported(const NotifyReference& reference) {
  return Error::format(ErrorCode::kInvalidParam,
                       "notify %u was imported, and only its own process can share it",
                       reference.id());
}

}  // namespace

Error unknown_notify() {
  return Error::format(ErrorCode::kInvalidHandle,
                       "no notify is shared by this key: it was never issued by this server, or "
                       "its exporter has destroyed the notify or ended");
}

// ---- Life ----

Result<NotifyReference> Notifies::create(unsigned device, NotifyFamily family) {
  std::atomic<uint32_t>& created = created_[device];
  ScopeExit uncount([&] { created.fetch_sub(1); });
  const unsigned most = settings_.product.most_notifies;
  if (created.fetch_add(1) >= most) {
    return Error::format(ErrorCode::kOutOfNotifies, "notify limit (%u) of device %u reached", most,
                         device);
  }
  US_TRY_ASSIGN(const NotifyReference made, make(device, family, nullptr));
  uncount.dismiss();
  return made;
}

// Takes the link over, also where it fails.
Result<NotifyReference> Notifies::make(unsigned device, NotifyFamily family,
                                       SharedNotifyLink* link) {
  ScopeExit unlink([&] {
    if (link != nullptr) link->drop_user();
  });
  US_TRY_ASSIGN(Notify* const taken, notifies_.take());
  Notify& notify = *taken;
  if (notify.home == nullptr) notify.home = this;  // once: it is read without a lock
  notify.device.store(device);
  notify.family.store(family);
  notify.is_imported.store(link != nullptr);
  const NotifyReference made{&notify, notify.state.load() + 1};
  {
    BriefLock lock(notify.mutex);
    notify.users = 1;
    notify.number = 0;
    notify.shared = link;
    unlink.dismiss();
    notify.state.store(made.state, std::memory_order_release);
  }
  History::begin({ObjectKind::kNotify, handle_of(made), 0, static_cast<int32_t>(device)});
  return made;
}

Result<NotifyReference> Notifies::find(uint64_t handle, NotifyFamily family) {
  Notify* const notify = notifies_.find_live(handle);
  if (notify != nullptr && notify->family.load() == family) {
    return NotifyReference{notify, SlotState::of_live(handle)};
  }
  return not_a_notify(handle);
}

uint64_t Notifies::handle_of(const NotifyReference& notify) {
  return HandleParts{HandleTag::kNotify, SlotState::generation(notify.state), notify.notify->index}
      .pack();
}

Result<void> Notifies::destroy(const NotifyReference& reference) {
  Notify& notify = *reference.notify;
  const ObjectEnd end(ObjectKind::kNotify, handle_of(reference));
  SharedNotifyLink* exported = nullptr;
  {
    BriefLock lock(notify.mutex);
    if (!is_same(notify, reference)) return was_destroyed(reference);
    notify.state.store(reference.state + 1);
    if (!notify.is_imported.load()) exported = notify.shared;
  }
  if (exported != nullptr) {  // the handle is a user of it until the end of this call
    exported->close();
    export_ended_(exported->token());
  }
  if (!notify.is_imported.load()) created_[notify.device.load()].fetch_sub(1);
  drop_user(notify);
  end.confirm();
  return {};
}

void Notifies::end_device(unsigned device) {
  notifies_.for_each([&](Notify& notify) {
    const uint32_t state = notify.state.load(std::memory_order_acquire);
    if (!SlotState::alive(state) || notify.device.load() != device) return;
    (void)destroy({&notify, state});  // unless another thread does just now
  });
}

Result<void> Notifies::add_user(const NotifyReference& reference) {
  Notify& notify = *reference.notify;
  BriefLock lock(notify.mutex);
  if (!is_same(notify, reference)) return was_destroyed(reference);
  ++notify.users;
  return {};
}

void Notifies::drop_user(Notify& notify) noexcept {
  {
    BriefLock lock(notify.mutex);
    if (--notify.users > 0) return;
  }
  recycle(notify);
}

void Notifies::recycle(Notify& notify) noexcept {
  SharedNotifyLink* link = nullptr;
  {
    BriefLock lock(notify.mutex);
    link = std::exchange(notify.shared, nullptr);
  }
  if (link != nullptr) link->drop_user();
  notifies_.recycle(notify);
}

// ---- Tasks ----

Result<void> Notifies::record(const NotifyReference& reference, const StreamReference& stream,
                              NotifyChange change) {
  US_TRY(add_user(reference));
  Task task(TaskKind::kChangeNotify, stream.device());
  task.notify_change = {reference.notify, change};
  US_TRY(streams_.submit(stream, task));
  return {};
}

Result<void> Notifies::let_wait(const NotifyReference& reference, const StreamReference& stream,
                                const NotifyCondition& condition, uint32_t limit_seconds) {
  US_TRY(add_user(reference));
  Task task(TaskKind::kWaitForNotify, stream.device());
  task.notify_wait = {.notify = reference.notify,
                      .condition = condition,
                      .limit_seconds = limit_seconds,
                      .looks = 0,
                      .has_begun = false,
                      .deadline = kNever};
  US_TRY(streams_.submit(stream, task));
  return {};
}

Result<void> Notifies::clear(const NotifyReference& reference) {
  US_TRY(add_user(reference));
  change_notify(*reference.notify, kClearNotify, streams_.wait_graph());
  drop_user(*reference.notify);
  return {};
}

// ---- Between processes ----

Result<ShareToken> Notifies::share(const NotifyReference& reference,
                                   const NotifyDescription& description) {
  if (reference.is_imported()) return is_imported(reference);
  Notify& notify = *reference.notify;
  US_TRY(add_user(reference));
  ScopeExit leave([&] { drop_user(notify); });
  if (Result<Shared> known = shared(reference); known.ok()) {
    if (known.value().open_to_all == description.open_to_all) return known.value().token;
    return Error::format(ErrorCode::kInvalidParam, "notify %u is exported already, with flags %d",
                         reference.id(), known.value().open_to_all ? 2 : 0);
  }
  US_TRY_ASSIGN(SharedNotifyLink* const link,
                links_.make([&](NotifyTable& table) { return table.add(description); }));
  const ShareToken token = link->token();
  bool is_taken = false;
  {
    BriefLock lock(notify.mutex);
    if (is_same(notify, reference) && notify.shared == nullptr) {
      // Streams that wait for it look from now on where other processes look, too.
      if (notify.number != 0) link->set();
      notify.shared = link;
      is_taken = true;
    }
  }
  if (is_taken) {
    if (is_order_checked()) [[unlikely]]
      Order::note_notify_shared(notify.index);
    listener_.start();
    notify.changes.fetch_add(1);
    streams_.wait_graph().note_change(notify.waits);
    return token;
  }
  // Another thread has destroyed it, or shared it, meanwhile.
  link->close();
  link->drop_user();
  US_TRY_ASSIGN(const Shared theirs, shared(reference));
  return theirs.token;
}

Result<Notifies::Shared> Notifies::shared(const NotifyReference& reference) {
  Notify& notify = *reference.notify;
  BriefLock lock(notify.mutex);
  if (!is_same(notify, reference)) return was_destroyed(reference);
  if (notify.is_imported.load()) return is_imported(reference);
  if (notify.shared == nullptr) {
    return Error::format(ErrorCode::kInvalidParam, "notify %u was not exported", reference.id());
  }
  return Shared{notify.shared->token(), notify.shared->is_open_to_all()};
}

Result<NotifyReference> Notifies::open(ShareToken token, unsigned device, Deadline deadline) {
  US_TRY_ASSIGN(SharedNotifyLink* const link, links_.open(token, deadline));
  if (link == nullptr) return unknown_notify();
  listener_.start();
  return make(device, NotifyFamily::kFlag, link);
}

}  // namespace understudy
