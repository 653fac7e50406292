// SPDX-License-Identifier: Apache-2.0
//
// Figures of recordings that are made as values.
#include "tools/recording/summary.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tools/recording/spread.h"

namespace understudy::command {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

class RecordingSummary : public testing::Test {
 protected:
  RecordingSummary() {
    recording.duration = 1'000;
    recording.object_kinds = {"allocation", "physical block", "mapping", "reservation"};
    recording.functions = {{"aclrtMalloc", {}}, {"aclrtFree", {}}};
    recording.processes.resize(1);
    recording.threads.resize(1);
  }

  enum Kind : uint16_t { kAllocation, kBlock, kMapping, kReservation };

  RecordedObject& add(Kind kind, uint64_t number, uint64_t size, uint64_t begin,
                      uint64_t end = kStillAlive) {
    RecordedObject object;
    object.kind = kind;
    object.device = kind == kReservation ? -1 : 0;
    object.number = number;
    object.size = size;
    object.taken = kind == kAllocation || kind == kBlock ? size : 0;
    object.begin = begin;
    object.end = end;
    recording.objects.push_back(object);
    return recording.objects.back();
  }
  Fragmentation at_end() { return summarize(recording, 10).fragmentation.at(0).at_end; }

  Recording recording;
};

TEST_F(RecordingSummary, SpreadIsByNearestRank) {
  std::vector<uint64_t> values(200);
  std::iota(values.rbegin(), values.rend(), 1U);
  const Spread spread = spread_of(values);
  EXPECT_EQ(spread.p50, 100U);
  EXPECT_EQ(spread.p99, 198U);
  EXPECT_EQ(spread.longest, 200U);
  EXPECT_EQ(spread.total, 20'100U);
  std::vector<uint64_t> one{7};
  EXPECT_EQ(spread_of(one).p50, 7U);
  EXPECT_EQ(spread_of(one).p99, 7U);
  EXPECT_EQ(spread_of({}).mean(), 0U);
}

TEST_F(RecordingSummary, SlowestCallsAreInOrder) {
  for (uint64_t call = 0; call < 100; ++call) {
    RecordedCall added;
    added.begin = call;
    added.duration = call * 37 % 100;
    added.code = call % 10 == 0 ? 5 : 0;
    recording.calls.push_back(added);
  }
  const CallFigures figures = call_figures(recording);
  ASSERT_EQ(figures.slowest.size(), kSlowestCalls);
  for (size_t place = 0; place < figures.slowest.size(); ++place) {
    EXPECT_EQ(recording.calls[figures.slowest[place]].duration, 99 - place);
  }
  EXPECT_EQ(figures.failed, 10U);
  ASSERT_EQ(figures.failures.size(), 1U);
  EXPECT_EQ(figures.failures[0].calls, 10U);
  EXPECT_EQ(figures.functions.size(), 1U) << "the other one was not called";
}

TEST_F(RecordingSummary, EndsComeBeforeBeginningsOfTheSameMoment) {
  add(kAllocation, 1, 10, 100, 200);
  add(kAllocation, 2, 10, 200);
  const MemoryFigures figures = memory_figures(recording, 10);
  ASSERT_EQ(figures.devices.size(), 1U);
  EXPECT_EQ(figures.devices[0].peak.bytes, 10U);
  EXPECT_EQ(figures.devices[0].peak.time, 100U);
  EXPECT_EQ(figures.devices[0].at_end, 10U);
}

TEST_F(RecordingSummary, CurveHasTheLargestOfEachPart) {
  add(kAllocation, 1, 5, 0);
  add(kAllocation, 2, 90, 210, 220);
  add(kAllocation, 3, 20, 500, 1'000);
  EXPECT_EQ(memory_figures(recording, 10).devices[0].curve,
            (std::vector<uint64_t>{5, 5, 95, 5, 5, 25, 25, 25, 25, 25}));
}

TEST_F(RecordingSummary, PlacesHaveWhatTheyHoldAtThePeakAndAtTheEnd) {
  recording.stacks = {"f at a.c:1"};
  add(kAllocation, 1, 10, 100, 900).stack = 0;
  add(kAllocation, 2, 30, 200).stack = 0;
  add(kAllocation, 3, 5, 950);
  const MemoryFigures figures = memory_figures(recording, 10);
  ASSERT_EQ(figures.places.size(), 2U);
  EXPECT_EQ(figures.places[0].stack, 0U);
  EXPECT_EQ(figures.places[0].at_peak, 40U);
  EXPECT_EQ(figures.places[0].at_end, 30U);
  EXPECT_EQ(figures.places[0].allocations, 2U);
  EXPECT_EQ(figures.places[1].stack, kNone);
  EXPECT_EQ(figures.places[1].at_peak, 0U);
  EXPECT_EQ(figures.alive, 2U);
  EXPECT_EQ(figures.alive_bytes, 35U);
}

TEST_F(RecordingSummary, HolesAreBetweenAllocationsOfARegion) {
  const uint64_t far = uint64_t{1} << 40;
  add(kAllocation, 0, kMib, 1);
  add(kAllocation, kMib, kMib, 2, 500);
  add(kAllocation, 2 * kMib, kMib, 3);
  add(kAllocation, 4 * kMib, kMib, 4);
  add(kAllocation, far, kMib, 5);
  const Fragmentation found = at_end();
  EXPECT_EQ(found.hole_count, 2U);
  EXPECT_EQ(found.holes, 2 * kMib) << "what is far away is another region";
  EXPECT_EQ(found.largest_hole, kMib);
  EXPECT_EQ(found.allocated, 4 * kMib);
  EXPECT_DOUBLE_EQ(found.hole_share(), 1.0 / 3);
}

TEST_F(RecordingSummary, ManyRegionsAreJoinedAcrossWiderGaps) {
  for (uint64_t number = 0; number < 49; ++number) add(kAllocation, number * 8 * kMib, kMib, 1);
  EXPECT_EQ(at_end().hole_count, 48U) << "gaps of 2 MiB would make 49 regions";
}

TEST_F(RecordingSummary, PhysicalMemoryIsIdleUntilItIsMapped) {
  add(kReservation, 0x1000'0000, 8 * kMib, 1);
  add(kBlock, 77, 2 * kMib, 2);
  add(kBlock, 78, 4 * kMib, 3);
  add(kMapping, 0x1000'0000, 2 * kMib, 4).part_of = 77;
  const Fragmentation found = at_end();
  EXPECT_EQ(found.physical, 6 * kMib);
  EXPECT_EQ(found.idle, 4 * kMib);
  EXPECT_DOUBLE_EQ(found.unmapped_share(), 0.75);
}

TEST_F(RecordingSummary, StreamsAreBusyWhileATaskRuns) {
  recording.task_kinds = {"copy"};
  recording.streams.resize(1);
  const auto add_task = [&](uint64_t queued, uint64_t begin, uint64_t duration) {
    RecordedTask task;
    task.queued = queued;
    task.begin = begin;
    task.duration = duration;
    task.bytes = 10 * duration;
    task.has_run = true;
    recording.tasks.push_back(task);
  };
  add_task(0, 10, 20);
  add_task(5, 50, 50);
  recording.tasks[1].awaited_task = 0;
  RecordedTask never;
  never.queued = never.begin = 60;
  recording.tasks.push_back(never);
  const TaskFigures figures = task_figures(recording);
  ASSERT_EQ(figures.streams.size(), 1U);
  const StreamFigures& stream = figures.streams[0];
  EXPECT_EQ(stream.tasks, 3U);
  EXPECT_EQ(stream.unfinished, 1U);
  EXPECT_EQ(stream.busy, 70U);
  EXPECT_DOUBLE_EQ(stream.busy_share(), 0.7);
  EXPECT_EQ(stream.waits, 1U);
  EXPECT_EQ(stream.waited, 20U) << "it stood in front from the end of the other one";
  EXPECT_EQ(stream.delays.mean(), (10U + 45U) / 2);
  EXPECT_DOUBLE_EQ(stream.rate(), 10e9);
}

}  // namespace
}  // namespace understudy::command
