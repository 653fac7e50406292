// SPDX-License-Identifier: Apache-2.0
//
// What tests of streams, events and callbacks share: streams and events that end with their scope,
// and gates that hold a stream for as long as a test wants.
#pragma once

#include <future>
#include <utility>

#include "support/rule_test.h"

namespace understudy_test {

class TestStream {
 public:
  explicit TestStream(uint32_t priority = 0, uint32_t flags = 0) {
    EXPECT_SUCCESS(aclrtCreateStreamWithConfig(&stream_, priority, flags));
  }
  ~TestStream() {
    if (stream_ != nullptr) destroy();
  }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

  aclrtStream get() const { return stream_; }
  void destroy() { EXPECT_SUCCESS(aclrtDestroyStream(release())); }
  // The caller destroys it from now on.
  aclrtStream release() { return std::exchange(stream_, nullptr); }

 private:
  aclrtStream stream_ = nullptr;
};

// An event; of the Ex family with `flags`, or classic with them.
enum class EventFamily : uint8_t { kEx, kClassic };
class TestEvent {
 public:
  explicit TestEvent(EventFamily family = EventFamily::kEx, uint32_t flags = ACL_EVENT_SYNC) {
    const auto create =
        family == EventFamily::kEx ? aclrtCreateEventExWithFlag : aclrtCreateEventWithFlag;
    EXPECT_SUCCESS(create(&event_, flags));
  }
  ~TestEvent() {
    if (event_ != nullptr) {
      EXPECT_SUCCESS(aclrtDestroyEvent(event_));
    }
  }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;

  aclrtEvent get() const { return event_; }
  aclrtEvent release() { return std::exchange(event_, nullptr); }

 private:
  aclrtEvent event_ = nullptr;
};

// Holds a stream: nothing queued behind it runs before open(). It is a host function, so the stream
// cannot be subscribed to afterwards (CB-02); EventGate holds one without.
class Gate {
 public:
  explicit Gate(aclrtStream stream) {
    EXPECT_SUCCESS(aclrtLaunchHostFunc(
        stream, [](void* self) { static_cast<Gate*>(self)->pass(); }, this));
  }
  // Opens it and waits until the stream is past it: the function uses this object.
  ~Gate() {
    open();
    passed_.get_future().wait();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() {
    if (!std::exchange(is_open_, true)) opened_.set_value();
  }
  // Returns once the stream stands in the gate.
  void wait_until_reached() { reached_future_.wait(); }

 private:
  void pass() {
    reached_.set_value();
    opened_future_.wait();
    passed_.set_value();
  }

  bool is_open_ = false;
  std::promise<void> opened_;
  std::future<void> opened_future_ = opened_.get_future();
  std::promise<void> reached_;
  std::future<void> reached_future_ = reached_.get_future();
  std::promise<void> passed_;
};

// Holds a stream by an event of a helper stream that stands in a gate.
class EventGate {
 public:
  explicit EventGate(aclrtStream held) : gate_(helper_.get()) {
    EXPECT_SUCCESS(aclrtRecordEvent(event_.get(), helper_.get()));
    EXPECT_SUCCESS(aclrtStreamWaitEvent(held, event_.get()));
  }
  void open() { gate_.open(); }

 private:
  TestStream helper_;
  TestEvent event_;
  Gate gate_;
};

inline aclrtStreamStatus stream_status(aclrtStream stream) {
  auto status = ACL_STREAM_STATUS_RESERVED;
  EXPECT_SUCCESS(aclrtStreamQuery(stream, &status));
  return status;
}

inline aclrtEventRecordedStatus event_status(aclrtEvent event) {
  auto status = enum_value<aclrtEventRecordedStatus>(77);
  EXPECT_SUCCESS(aclrtQueryEventStatus(event, &status));
  return status;
}

}  // namespace understudy_test
