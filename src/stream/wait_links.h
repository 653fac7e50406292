// SPDX-License-Identifier: Apache-2.0
//
// The lists that the wait graph is made of: threads that sleep and streams that are parked, linked
// to what they wait for. Not synchronised: the wait graph guards them.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"
#include "stream/kept_by.h"

namespace understudy {

struct Stream;
class WaitGraph;

// A link of a list; alone, it is linked to itself. The head of a list is a link, too.
struct WaitLink {
  WaitLink* next = this;
  WaitLink* previous = this;

  WaitLink() = default;
  WaitLink(const WaitLink&) = delete;
  WaitLink& operator=(const WaitLink&) = delete;

  bool is_linked() const { return next != this; }
  void insert_before(WaitLink& other) {
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

// Waits for a stream to get to a position: a parked stream, or else a thread.
struct Waiter : WaitLink {
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
  Link* at(WaitLink* link) { return link != &head_ ? static_cast<Link*>(link) : nullptr; }

  WaitLink head_;
};
using WaitList = LinkList<Waiter>;

// Streams that are parked until something happens to one object.
struct ParkedStreams {
  std::atomic<uint32_t> count{0};
  KeptBy<WaitGraph, WaitList> waiters;
};

// A link by which a list finds the stream.
struct StreamLink : WaitLink {
  Stream* stream = nullptr;
};

// What a parked stream waits for.
struct ParkedStream {
  Waiter waiter;  // in the list of what it waits for, if that is one of the next two
  Stream* waits_for = nullptr;
  ParkedStreams* parked_with = nullptr;
  StreamLink timed;  // in the list of streams with a time to wake up
  Deadline wake_at = kNever;
  StreamLink values;  // in the list of streams that wait for memory to change
};

}  // namespace understudy
