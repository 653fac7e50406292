// SPDX-License-Identifier: Apache-2.0
//
// Many streams and events at once, and ways to wait for them that end even if the library hangs.
#pragma once

#include <chrono>
#include <deque>
#include <ostream>
#include <thread>

#include "rules/stream_objects.h"
#include "support/rule_test.h"

namespace understudy_test {

// Far longer than anything takes: whoever meets it hangs.
inline constexpr int32_t kHangMilliseconds = 60'000;

inline aclError synchronize_within_limit(aclrtStream stream) {
  return aclrtSynchronizeStreamWithTimeout(stream, kHangMilliseconds);
}

// Polls until `is_so` or it hangs. The calling thread does nothing for the streams meanwhile, as
// one that synchronises might.
template <typename Condition>
bool comes_true(Condition is_so) {
  const auto hang = std::chrono::steady_clock::now() + std::chrono::milliseconds(kHangMilliseconds);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > hang) return false;
    std::this_thread::yield();
  }
  return true;
}

inline bool completes_unaided(aclrtStream stream) {
  return comes_true([&] { return stream_status(stream) == ACL_STREAM_STATUS_COMPLETE; });
}

// Streams of all priorities.
class StreamFleet {
 public:
  explicit StreamFleet(size_t count) {
    for (size_t i = 0; i < count; ++i) streams_.emplace_back(static_cast<uint32_t>(i % 8));
  }

  size_t size() const { return streams_.size(); }
  aclrtStream operator[](size_t index) const { return streams_[index].get(); }
  void synchronize_all() const {
    for (const TestStream& stream : streams_) {
      EXPECT_SUCCESS(synchronize_within_limit(stream.get()));
    }
  }

 private:
  std::deque<TestStream> streams_;
};

// Events that can be recorded again and again.
class EventFleet {
 public:
  explicit EventFleet(size_t count) {
    for (size_t i = 0; i < count; ++i) events_.emplace_back();
  }

  size_t size() const { return events_.size(); }
  aclrtEvent operator[](size_t index) const { return events_[index].get(); }

 private:
  std::deque<TestEvent> events_;
};

// How many streams and events the current device can still make.
struct StreamFigures {
  uint32_t streams = 0;
  uint32_t events = 0;
  friend bool operator==(const StreamFigures&, const StreamFigures&) = default;
  friend std::ostream& operator<<(std::ostream& out, const StreamFigures& figures) {
    return out << figures.streams << " streams, " << figures.events << " events";
  }
};

inline StreamFigures stream_figures() {
  StreamFigures figures;
  EXPECT_SUCCESS(aclrtGetStreamAvailableNum(&figures.streams));
  EXPECT_SUCCESS(aclrtGetEventAvailNum(&figures.events));
  return figures;
}

}  // namespace understudy_test
