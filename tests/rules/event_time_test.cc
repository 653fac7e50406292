// SPDX-License-Identifier: Apache-2.0
//
// The time at which an event was reached, and the time between two events.
// Covers: EVENT-16.
#include <chrono>
#include <vector>

#include "rules/callback_objects.h"

namespace understudy_test::callbacks {
namespace {

class EventTime : public DeviceTest {};

constexpr uint32_t kAllFlags =
    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;
constexpr EventFamily kFamilies[] = {EventFamily::kEx, EventFamily::kClassic};

void record_fully(const TestEvent& event, aclrtStream stream = nullptr) {
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream));
  EXPECT_SUCCESS(reach(event.get()));
}

uint64_t timestamp(const TestEvent& event) {
  uint64_t microseconds = UINT64_MAX;
  EXPECT_SUCCESS(aclrtEventGetTimestamp(event.get(), &microseconds));
  return microseconds;
}

float elapsed(const TestEvent& start, const TestEvent& end) {
  float milliseconds = -77;
  EXPECT_SUCCESS(aclrtEventElapsedTime(&milliseconds, start.get(), end.get()));
  return milliseconds;
}

// Expects that the event has no time, neither alone nor beside one that has.
void expect_no_time(aclError code, aclrtEvent event) {
  const TestEvent good(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  record_fully(good);
  uint64_t microseconds = 77;
  EXPECT_FAILS(code, aclrtEventGetTimestamp(event, &microseconds));
  EXPECT_EQ(microseconds, 77u);
  float milliseconds = -77;
  EXPECT_FAILS(code, aclrtEventElapsedTime(&milliseconds, event, good.get()));
  EXPECT_FAILS(code, aclrtEventElapsedTime(&milliseconds, good.get(), event));
  EXPECT_FAILS(code, aclrtEventElapsedTime(&milliseconds, event, event));
  EXPECT_EQ(milliseconds, -77);
}

// Records `later` until its time differs from that of `earlier`: a microsecond has to pass.
void record_after(const TestEvent& earlier, const TestEvent& later) {
  const uint64_t before = timestamp(earlier);
  for (int i = 0; i < 1'000'000; ++i) {
    record_fully(later);
    if (timestamp(later) != before) return;
  }
  ADD_FAILURE() << "the clock of the events stands still";
}

TEST_F(EventTime, EVENT_16_WithoutTimeLineThereIsNoTime) {
  for (const EventFamily family : kFamilies) {
    for (uint32_t flags : {ACL_EVENT_SYNC, ACL_EVENT_CAPTURE_STREAM_PROGRESS,
                           ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS}) {
      SCOPED_TRACE(testing::Message()
                   << (family == EventFamily::kEx ? "Ex" : "classic") << ", flags " << flags);
      const TestEvent event(family, flags);
      // Before the question whether it was recorded.
      expect_no_time(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, event.get());
      record_fully(event);
      expect_no_time(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, event.get());
    }
  }
  for (uint32_t flags : {ACL_EVENT_EXTERNAL, ACL_EVENT_DEVICE_USE_ONLY}) {
    SCOPED_TRACE(flags);
    const TestEvent event(EventFamily::kClassic, flags);
    expect_no_time(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, event.get());
  }
}

TEST_F(EventTime, EVENT_16_AnEventNeverRecordedHasNoTime) {
  for (const EventFamily family : kFamilies) {
    for (uint32_t flags : {ACL_EVENT_TIME_LINE, kAllFlags}) {
      SCOPED_TRACE(testing::Message()
                   << (family == EventFamily::kEx ? "Ex" : "classic") << ", flags " << flags);
      const TestEvent event(family, flags);
      expect_no_time(ACL_ERROR_RT_INTERNAL_ERROR, event.get());
    }
  }
}

TEST_F(EventTime, EVENT_16_AnEventNotYetReachedHasNoTime) {
  for (const EventFamily family : kFamilies) {
    SCOPED_TRACE(family == EventFamily::kEx ? "Ex" : "classic");
    const TestStream stream;
    const TestEvent event(family, kAllFlags);
    // The first record, then one that replaces a time.
    uint64_t last = 0;
    for (int i = 0; i < 2; ++i) {
      Gate gate(stream.get());
      EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
      expect_no_time(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, event.get());
      gate.open();
      EXPECT_SUCCESS(reach(event.get()));
      EXPECT_GE(timestamp(event), last);
      last = timestamp(event);
    }
  }
}

TEST_F(EventTime, EVENT_16_TheTimeIsThatOfReachingTheEvent) {
  const TestStream held;
  const TestEvent recorded_first(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  const TestEvent reached_first(EventFamily::kClassic, ACL_EVENT_TIME_LINE);
  const TestEvent before_opening(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  Gate gate(held.get());
  EXPECT_SUCCESS(aclrtRecordEvent(recorded_first.get(), held.get()));
  record_fully(reached_first);
  record_after(reached_first, before_opening);
  gate.open();
  EXPECT_SUCCESS(reach(recorded_first.get()));
  EXPECT_LT(timestamp(reached_first), timestamp(recorded_first));
  EXPECT_LE(timestamp(before_opening), timestamp(recorded_first));
  EXPECT_GT(elapsed(reached_first, recorded_first), 0);
}

TEST_F(EventTime, EVENT_16_TheTimeStaysUntilTheNextRecord) {
  const TestEvent event(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  const TestEvent other(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  record_fully(event);
  const uint64_t first = timestamp(event);
  record_after(event, other);
  EXPECT_EQ(timestamp(event), first);
  record_after(other, event);
  EXPECT_GT(timestamp(event), timestamp(other));
}

TEST_F(EventTime, EVENT_16_TimesOfOneStreamRiseInStreamOrder) {
  const TestStream stream;
  std::vector<aclrtEvent> events(100);
  for (aclrtEvent& event : events) {
    ASSERT_SUCCESS(aclrtCreateEventExWithFlag(&event, ACL_EVENT_TIME_LINE));
    EXPECT_SUCCESS(aclrtRecordEvent(event, stream.get()));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  uint64_t last = 0;
  for (aclrtEvent event : events) {
    uint64_t microseconds = 0;
    EXPECT_SUCCESS(aclrtEventGetTimestamp(event, &microseconds));
    EXPECT_GE(microseconds, last);
    last = microseconds;
    EXPECT_SUCCESS(aclrtDestroyEvent(event));
  }
}

TEST_F(EventTime, EVENT_16_ElapsedMillisecondsAgreeWithTheTimestamps) {
  for (const EventFamily start_family : kFamilies) {
    for (const EventFamily end_family : kFamilies) {
      const TestEvent start(start_family, kAllFlags);
      const TestEvent end(end_family, kAllFlags);
      record_fully(start);
      record_after(start, end);
      const double expected = static_cast<double>(timestamp(end) - timestamp(start)) / 1000;
      // Two whole microseconds may be cut off, and a float has 24 bits.
      EXPECT_NEAR(elapsed(start, end), expected, 0.002 + expected * 1e-6);
      EXPECT_EQ(elapsed(start, start), 0);
    }
  }
}

TEST_F(EventTime, EVENT_16_AnEndBeforeItsStartIsRefused) {
  const TestEvent earlier(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  const TestEvent later(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  record_fully(earlier);
  record_after(earlier, later);
  float milliseconds = -77;
  EXPECT_FAILS(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL,
               aclrtEventElapsedTime(&milliseconds, later.get(), earlier.get()));
  EXPECT_EQ(milliseconds, -77);
  EXPECT_GT(elapsed(earlier, later), 0);
}

// Measures no speed: it compares two clocks over the same stretch of time.
TEST_F(EventTime, EVENT_16_TimestampsCountMicroseconds) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::microseconds;
  const TestEvent first(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  const TestEvent second(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  const auto outer_start = Clock::now();
  record_fully(first);
  const auto inner_start = Clock::now();
  // A millisecond tells the unit from its neighbours.
  auto inner_end = inner_start;
  while (inner_end - inner_start < std::chrono::milliseconds(1)) inner_end = Clock::now();
  record_fully(second);
  const auto outer_end = Clock::now();

  const auto inner = std::chrono::duration_cast<microseconds>(inner_end - inner_start).count();
  const auto outer = std::chrono::duration_cast<microseconds>(outer_end - outer_start).count();
  const auto told = static_cast<int64_t>(timestamp(second) - timestamp(first));
  // Clocks of one machine may differ by a thousandth, and each figure is cut to a whole number.
  EXPECT_GE(told, inner - inner / 1000 - 2);
  EXPECT_LE(told, outer + outer / 1000 + 2);
}

}  // namespace
}  // namespace understudy_test::callbacks
