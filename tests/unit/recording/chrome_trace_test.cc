// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/chrome_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/unit/recording/recording_maker.h"
#include "tools/recording/memory_samples.h"
#include "tools/recording/memory_series.h"

namespace understudy::command {
namespace {

using Json = nlohmann::json;

Json trace_of(const Recording& recording) { return Json::parse(chrome_trace(recording)); }

std::vector<Json> events_of(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

TEST(ChromeTrace, NothingRecordedIsJson) { EXPECT_EQ(events_of(trace_of({}), "X").size(), 0U); }

TEST(ChromeTrace, CallsHaveTheirArguments) {
  RecordingMaker maker;
  maker.call(0, 1500, 2001, 0, {0x40, 64});
  maker.made.calls[0].stack = maker.stack("f \"quoted\" at a.cc:1");
  maker.call(0, 5000, 1, 207001, {0x7fff, 64});
  const Json trace = trace_of(maker.made);
  const std::vector<Json> slices = events_of(trace, "X");
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0]["name"], "aclrtMalloc");
  EXPECT_EQ(slices[0]["ts"], 1.5);
  EXPECT_EQ(slices[0]["dur"], 2.001);
  EXPECT_EQ(slices[0]["args"]["devPtr"], "0x40");
  EXPECT_EQ(slices[0]["args"]["size"], "64");
  EXPECT_EQ(slices[0]["args"]["stack"], "f \"quoted\" at a.cc:1");
  const std::vector<Json> failures = events_of(trace, "i");
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0]["name"], "aclrtMalloc failed: 207001");
}

TEST(ChromeTrace, AnOpenCallBeginsAndDoesNotEnd) {
  RecordingMaker maker;
  maker.made.threads[0].open_function = 1;
  maker.made.threads[0].open_since = 2000;
  maker.call(0, 1000, 10, 0, {});
  maker.call(0, 3000, 10, 0, {});  // of a callback within it
  const Json trace = trace_of(maker.made);
  ASSERT_EQ(events_of(trace, "B").size(), 1U);
  std::string phases;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "M") phases += event["ph"];
  }
  EXPECT_EQ(phases, "XBX");
}

TEST(ChromeTrace, BrokenNamesAndNumbersStayJson) {
  RecordingMaker maker;
  maker.made.notes = {"note \xff"};
  maker.made.processes[0].program = "pro\xffgram\"\\";
  maker.process(7);  // twice, and one that viewers refuse
  maker.process(0);
  maker.made.functions.push_back({"f\xff\"", {{"\xff", '?', 255, true}, {"size", 't', 1, false}}});
  maker.call(2, UINT64_MAX, UINT64_MAX, INT32_MIN, {UINT64_MAX});
  maker.made.calls[0].stack = maker.stack("\xff\xff");
  maker.made.task_kinds = {"\"\xc0"};
  maker.made.streams = {{.process = 1, .device = INT32_MIN, .index = UINT32_MAX}};
  RecordedTask task;
  task.begin = UINT64_MAX;
  task.duration = UINT64_MAX;
  task.has_run = true;
  task.bytes = UINT64_MAX;
  task.queued_by = 0;
  task.awaited_task = 0;  // itself
  maker.made.tasks = {task};
  maker.object("allocation", UINT64_MAX, UINT64_MAX, UINT64_MAX - 1);
  const Json trace = trace_of(maker.made);
  EXPECT_EQ(events_of(trace, "X").size(), 2U);
  EXPECT_EQ(events_of(trace, "s").size(), events_of(trace, "f").size());
  std::set<Json> processes;
  for (const Json& event : events_of(trace, "M")) {
    if (event["name"] == "process_name") processes.insert(event["pid"]);
  }
  EXPECT_EQ(processes.size(), 4U);  // with that of the memory
  EXPECT_EQ(processes.count(0), 0U);
}

TEST(ChromeTrace, SlicesOfDamagedTimesAreCut) {
  RecordingMaker maker;
  maker.call(0, 1000, 1000, 0, {});
  maker.call(0, 1500, 5000, 0, {});
  maker.call(0, 1600, 100, 0, {});
  const std::vector<Json> slices = events_of(trace_of(maker.made), "X");
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_EQ(slices[1]["dur"], 0.5);
  EXPECT_EQ(slices[2]["dur"], 0.1);
}

TEST(ChromeTrace, ArrowsLeadToWhatWaited) {
  RecordingMaker maker;
  maker.call(0, 100, 10, 0, {});
  maker.made.task_kinds = {"event record", "event wait"};
  maker.made.streams = {{}, {.index = 1}};
  RecordedTask record{.stream = 0, .queued = 105, .queued_by = 0, .begin = 200, .has_run = true};
  RecordedTask wait{.kind = 1, .stream = 1, .queued = 106, .begin = 300, .has_run = true};
  wait.awaited_task = 0;
  RecordedTask other_wait = wait;
  RecordedTask waits_still = wait;
  waits_still.has_run = false;
  maker.made.tasks = {record, wait, other_wait, waits_still};
  const Json trace = trace_of(maker.made);
  std::map<std::string, int> begun;
  for (const Json& event : events_of(trace, "s")) ++begun[event["cat"]];
  EXPECT_EQ(begun, (std::map<std::string, int>{{"queue", 1}, {"wait", 2}}));
  EXPECT_EQ(events_of(trace, "f").size(), 3U);
  EXPECT_EQ(events_of(trace, "i").size(), 1U);  // has not run
}

TEST(MemorySamples, FewAreAllThere) {
  RecordingMaker maker;
  maker.object("allocation", 1, 10, 5, 20);
  maker.object("allocation", 2, 30, 10);
  maker.object("allocation", 3, 7, 20);
  maker.object("host block", 4, 9, 20);
  const auto series = memory_samples(maker.made, 100);
  ASSERT_EQ(series.size(), 2U);
  std::vector<std::pair<uint64_t, uint64_t>> device;
  for (const MemorySample& sample : series.at(0)) device.emplace_back(sample.time, sample.bytes);
  EXPECT_EQ(device, (decltype(device){{0, 0}, {5, 10}, {10, 40}, {20, 37}}));
  EXPECT_EQ(series.at(kHost).back().bytes, 9U);
}

TEST(MemorySamples, ThinnedOutTheyKeepThePeakAndTheEnd) {
  for (const uint64_t spike : {0U, 1U, 4999U, 9999U}) {
    RecordingMaker maker;
    for (uint64_t index = 0; index < 10000; ++index) {
      const uint64_t begin = 10 * (index + 1);
      maker.object("allocation", index, index == spike ? 1000 : 10, begin, begin + 15);
    }
    const auto series = memory_samples(maker.made, 100);
    const std::vector<MemorySample>& samples = series.at(0);
    EXPECT_LE(samples.size(), 110U);
    const MemoryPeak peak = memory_peaks(maker.made, memory_changes(maker.made)).at(0);
    uint64_t most = 0;
    uint64_t last = 0;
    for (const MemorySample& sample : samples) {
      most = std::max(most, sample.bytes);
      EXPECT_GE(sample.time, last);
      last = sample.time;
    }
    EXPECT_EQ(most, peak.bytes);
    EXPECT_EQ(samples.back().bytes, 0U);
  }
}

}  // namespace
}  // namespace understudy::command
