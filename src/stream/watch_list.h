// SPDX-License-Identifier: Apache-2.0
//
// Lists of those who wait for something: threads that sleep, and streams that are parked. All
// under the lock of Waiting.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace understudy {

struct Event;
struct Stream;

// A link of a list; alone, it is linked to itself. The head of a list is a link, too.
struct WatchLink {
  WatchLink* next = this;
  WatchLink* previous = this;

  WatchLink() = default;
  WatchLink(const WatchLink&) = delete;
  WatchLink& operator=(const WatchLink&) = delete;

  bool is_linked() const { return next != this; }
  void insert_before(WatchLink& other) {
    next = &other;
    previous = other.previous;
    previous->next = this;
    other.previous = this;
  }
  void unlink() {
    next->previous = previous;
    previous->next = next;
    next = previous = this;
  }
};

// Someone who wants a stream to get to a position: a parked stream, or else a thread.
struct Watcher : WatchLink {
  uint64_t position = 0;
  Stream* stream = nullptr;
  // Of a thread: what it sleeps on.
  enum Word : uint32_t { kAsleep, kReached, kInterrupted };
  std::atomic<uint32_t> word{kAsleep};
};

// A list of links of one type.
template <typename Link>
class LinkList {
 public:
  void add(Link& link) { link.insert_before(head_); }
  // The first link, and the one behind a link; null at the end.
  Link* first() { return at(head_.next); }
  Link* after(const Link& link) { return at(link.next); }

 private:
  Link* at(WatchLink* link) { return link != &head_ ? static_cast<Link*>(link) : nullptr; }

  WatchLink head_;
};
using WatchList = LinkList<Watcher>;

// A link by which a list finds the stream.
struct StreamLink : WatchLink {
  Stream* stream = nullptr;
};

// What a parked stream waits for.
struct ParkedStream {
  Watcher watcher;  // in the list of what it waits for, if that is one of the next two
  Stream* waits_for = nullptr;
  Event* event = nullptr;
  StreamLink timed;  // in the list of those with a time to wake up
  Deadline wake_at = kNever;
  StreamLink values;  // in the list of those that wait for memory to change
};

}  // namespace understudy
