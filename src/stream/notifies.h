// SPDX-License-Identifier: Apache-2.0
//
// All notifies of the process, plain and counting: made, changed on streams, waited for by streams,
// shared with other processes. Rules: XPROC-03 to XPROC-14, CNT. Any thread may call anything,
// without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>

#include "base/deadline.h"
#include "base/handle_table.h"
#include "base/result.h"
#include "device/settings.h"
#include "stream/notify.h"
#include "stream/ring_listener.h"
#include "stream/shared_notify_link.h"
#include "stream/streams.h"

namespace understudy {

// The error for a token that finds nothing.
Error unknown_notify();

class Notifies {
 public:
  // Told when a notify that other processes could import has ended here.
  using ExportEnded = std::function<void(ShareToken)>;

  Notifies(const Settings& settings, Streams& streams, NotifyTable& table, RingListener& listener,
           ExportEnded export_ended)
      : settings_(settings),
        streams_(streams),
        links_(table),
        listener_(listener),
        export_ended_(std::move(export_ended)) {}

  Result<NotifyReference> create(unsigned device, NotifyFamily family);
  // Refuses handles of notifies that ended or never were, or are of the other family.
  Result<NotifyReference> find(uint64_t handle, NotifyFamily family);
  static uint64_t handle_of(const NotifyReference& notify);
  uint64_t count() const { return notifies_.count_live(); }
  // Does not wait. Tasks that are queued still work.
  Result<void> destroy(const NotifyReference& reference);
  // Ends all notifies of a device.
  void end_device(unsigned device);

  // Queue a change, and a wait of so many seconds at most; 0: without a limit.
  Result<void> record(const NotifyReference& reference, const StreamReference& stream,
                      NotifyChange change);
  Result<void> let_wait(const NotifyReference& reference, const StreamReference& stream,
                        const NotifyCondition& condition, uint32_t limit_seconds);
  // At once.
  Result<void> clear(const NotifyReference& reference);

  // Lets other processes have it. A second time gives the same token.
  Result<ShareToken> share(const NotifyReference& reference, const NotifyDescription& description);
  // By what others find it. Refuses those that are not shared, or were imported.
  struct Shared {
    ShareToken token;
    bool open_to_all;
  };
  Result<Shared> shared(const NotifyReference& reference);
  // One that another process, or this one, shares.
  Result<NotifyReference> open(ShareToken token, unsigned device,
                               Deadline deadline = ledger_deadline());

  // For tasks: one user less.
  void drop_user(Notify& notify) noexcept;

 private:
  Result<NotifyReference> make(unsigned device, NotifyFamily family, SharedNotifyLink* link);
  Result<void> add_user(const NotifyReference& reference);
  // Gives the slot back. REQUIRES: it has no user any more.
  void recycle(Notify& notify) noexcept;

  const Settings& settings_;
  Streams& streams_;
  SharedNotifyLinks links_;
  RingListener& listener_;
  const ExportEnded export_ended_;
  HandleTable<Notify> notifies_{HandleTag::kNotify, {"notify", "created", "destroyed"}};
  std::array<std::atomic<uint32_t>, kMaxDevices> created_{};  // alive; imported ones do not count
};

}  // namespace understudy
