// SPDX-License-Identifier: Apache-2.0
#include "stream/shared_event_link.h"

namespace understudy {

Result<SharedEventLink*> SharedEventLinks::make() {
  MutexLock lock(mutex_);
  US_TRY_ASSIGN(const ShareToken token, events_.add());
  auto& link = links_[token.number()];
  link = std::make_unique<SharedEventLink>(*this, token);
  return link.get();
}

Result<SharedEventLink*> SharedEventLinks::open(ShareToken token) {
  MutexLock lock(mutex_);
  US_TRY_ASSIGN(const bool held, events_.hold(token));
  if (!held) return static_cast<SharedEventLink*>(nullptr);
  auto& link = links_[token.number()];
  if (link != nullptr) {
    ++link->users_;
  } else {
    link = std::make_unique<SharedEventLink>(*this, token);
  }
  return link.get();
}

void SharedEventLink::add_user() {
  MutexLock lock(links_.mutex_);
  ++users_;
}

void SharedEventLink::drop_user() {
  SharedEventLinks& links = links_;
  MutexLock lock(links.mutex_);
  if (--users_ > 0) return;
  const uint32_t ended = number();
  links.events_.drop(ended);
  links.links_.erase(ended);
}

void SharedEventLink::close() { links_.events_.close(number()); }
Result<uint64_t> SharedEventLink::record(uint64_t stream) {
  return links_.events_.record(number(), stream);
}
void SharedEventLink::reach(uint64_t record) { links_.events_.reach(number(), record); }
uint64_t SharedEventLink::latest() const { return links_.events_.latest(number()); }

RecordState SharedEventLink::state(uint64_t record) const {
  return links_.events_.state(number(), record);
}

bool SharedEventLink::wait(uint64_t record, Deadline deadline) const {
  while (state(record) == RecordState::kPending) {
    if (has_passed(deadline)) return false;
    links_.events_.sleep(number(), record, deadline);
  }
  return true;
}

}  // namespace understudy
