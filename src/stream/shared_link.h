// SPDX-License-Identifier: Apache-2.0
//
// This process's hold on what processes share: one link per entry of a table of the ledger, for as
// long as an object of this process or a task of its streams uses it. The ledger knows one hold per
// process; links count the users behind it.
//
// No lock is held while the ledger is waited for. The last user gives the hold up with one attempt
// at the ledger's lock; where that fails the link stays, without users, and is tried again by the
// next call here. Any thread may call anything.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "server/ledger_mutex.h"
#include "server/process_tag.h"

namespace understudy {

template <typename Link>
class SharedLinks;

// The base of links of one kind. `Self` is the kind.
template <typename Self, typename TableType>
class SharedLink {
 public:
  using Table = TableType;

  explicit SharedLink(SharedLinks<Self>& links) : links_(links) {}
  SharedLink(const SharedLink&) = delete;
  SharedLink& operator=(const SharedLink&) = delete;

  ShareToken token() const { return token_; }
  void add_user();
  // The link may be gone afterwards. Waits for nothing.
  void drop_user() noexcept;
  // No process comes in from now on. For the process that made it.
  void close() noexcept { table().close(number()); }

 protected:
  ~SharedLink() = default;
  Table& table() const { return links_.table_; }
  uint32_t number() const { return token_.number(); }

 private:
  friend class SharedLinks<Self>;

  SharedLinks<Self>& links_;
  ShareToken token_{0};  // constant once it is linked
  // Under the lock of the links.
  unsigned users_ = 1;
  bool is_held_ = false;  // by this process, as the ledger says
};

template <typename Link>
class SharedLinks {
 public:
  using Table = typename Link::Table;

  explicit SharedLinks(Table& table) : table_(table) {}

  // The link to what add(table) makes. The caller is a user of it.
  template <typename Add>
  Result<Link*> make(Add add);
  // The same for what another process, or this one, made; null if there is no such thing.
  Result<Link*> open(ShareToken token, Deadline deadline = ledger_deadline());

 private:
  template <typename Self, typename TableType>
  friend class SharedLink;
  using Links = std::map<uint64_t, std::unique_ptr<Link>>;  // by token

  // A link as a node: what needs memory comes before what cannot be undone.
  typename Links::node_type fresh_node() {
    Links made;
    made.emplace(0, std::make_unique<Link>(*this));
    return made.extract(made.begin());
  }
  Link* insert_locked(typename Links::node_type& node, ShareToken token) US_REQUIRES(mutex_);
  void drop_user_locked(Link& link) noexcept US_REQUIRES(mutex_);
  // Gives up what has no user any more.
  void release_unused_locked() noexcept US_REQUIRES(mutex_);

  Table& table_;
  Mutex mutex_{LockRank::kSharedLinks};
  Links links_ US_GUARDED_BY(mutex_);
  size_t unused_ US_GUARDED_BY(mutex_) = 0;  // links without users
};

template <typename Self, typename TableType>
void SharedLink<Self, TableType>::add_user() {
  MutexLock lock(links_.mutex_);
  ++users_;
}

template <typename Self, typename TableType>
void SharedLink<Self, TableType>::drop_user() noexcept {
  SharedLinks<Self>& links = links_;
  MutexLock lock(links.mutex_);
  links.drop_user_locked(static_cast<Self&>(*this));
}

template <typename Link>
template <typename Add>
Result<Link*> SharedLinks<Link>::make(Add add) {
  auto node = fresh_node();
  US_TRY_ASSIGN(const ShareToken token, add(table_));
  MutexLock lock(mutex_);
  release_unused_locked();
  Link* const link = insert_locked(node, token);
  link->is_held_ = true;
  return link;
}

template <typename Link>
Result<Link*> SharedLinks<Link>::open(ShareToken token, Deadline deadline) {
  auto node = fresh_node();
  Link* link = nullptr;
  {
    MutexLock lock(mutex_);
    release_unused_locked();
    const auto found = links_.find(token.word());
    if (found == links_.end()) {
      link = insert_locked(node, token);
    } else {
      link = found->second.get();
      if (link->users_++ == 0) --unused_;
    }
  }
  // Also if it is held already: its maker may have closed it, or be dead.
  const Result<bool> held = table_.hold(token, deadline);
  MutexLock lock(mutex_);
  if (held.ok() && held.value()) {
    link->is_held_ = true;
    return link;
  }
  drop_user_locked(*link);
  if (!held.ok()) return held.error();
  return static_cast<Link*>(nullptr);
}

template <typename Link>
Link* SharedLinks<Link>::insert_locked(typename Links::node_type& node, ShareToken token) {
  node.key() = token.word();
  node.mapped()->token_ = token;
  return links_.insert(std::move(node)).position->second.get();
}

template <typename Link>
void SharedLinks<Link>::drop_user_locked(Link& link) noexcept {
  if (--link.users_ > 0) return;
  ++unused_;
  release_unused_locked();
}

template <typename Link>
void SharedLinks<Link>::release_unused_locked() noexcept {
  for (auto each = links_.begin(); unused_ > 0 && each != links_.end();) {
    Link& link = *each->second;
    const bool is_unused = link.users_ == 0;
    if (is_unused && link.is_held_ && !table_.drop(link.number(), kOneAttempt)) return;
    if (is_unused) --unused_;
    each = is_unused ? links_.erase(each) : std::next(each);
  }
}

}  // namespace understudy
