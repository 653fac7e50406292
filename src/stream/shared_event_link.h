// SPDX-License-Identifier: Apache-2.0
//
// This process's hold on events that processes share: one link per event, for as long as an event
// of this process or a task of its streams needs it. Any thread may call anything.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"
#include "device/shared_events.h"

namespace understudy {

class SharedEventLinks;

class SharedEventLink {
 public:
  SharedEventLink(SharedEventLinks& links, ShareToken token) : links_(links), token_(token) {}

  ShareToken token() const { return token_; }
  void add_user();
  // The link may be gone afterwards.
  void drop_user();

  // Nobody new can open it from now on.
  void close();
  Result<uint64_t> record(uint64_t stream);
  void reach(uint64_t record);
  uint64_t latest() const;
  RecordState state(uint64_t record) const;
  // False if the deadline came first.
  bool wait(uint64_t record, Deadline deadline) const;

 private:
  friend class SharedEventLinks;
  uint32_t number() const { return token_.number(); }

  SharedEventLinks& links_;
  const ShareToken token_;
  unsigned users_ = 1;  // under the lock of the links
};

class SharedEventLinks {
 public:
  explicit SharedEventLinks(Ledger& ledger) : events_(ledger) {}

  // A new event, or one that another process made; null if there is no such event. The caller is a
  // user of it.
  Result<SharedEventLink*> make();
  Result<SharedEventLink*> open(ShareToken token);

 private:
  friend class SharedEventLink;

  SharedEvents events_;
  Mutex mutex_{LockRank::kSharedEvents};
  std::map<uint32_t, std::unique_ptr<SharedEventLink>> links_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
