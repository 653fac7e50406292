// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/device_memory_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/unit/recording/recording_maker.h"
#include "tools/recording/allocation_csv.h"
#include "tools/recording/memory_places.h"
#include "tools/recording/refused_allocations.h"
#include "tools/recording/torch_snapshot.h"

namespace understudy::command {
namespace {

constexpr uint64_t kBlock = 0x5b00000000000000;

// "5 taken 0" each.
std::string story_of(const Recording& recording) {
  std::string story;
  for (const DeviceMemoryEvent& event : device_memory_events(recording)) {
    constexpr const char* kNames[] = {"unused", "given back", "refused", "taken", "used"};
    story += std::to_string(event.time) + " " + kNames[static_cast<size_t>(event.action)];
    if (event.object != kNone) story += " " + std::to_string(event.object);
    story += "; ";
  }
  return story;
}

TEST(DeviceMemoryEvents, AnAllocationIsInUseAllItsLife) {
  RecordingMaker maker;
  maker.object("allocation", 16, 10, 5, 9);
  maker.object("host block", 64, 10, 6, 7);
  maker.object("allocation", 16, 10, 9);
  EXPECT_EQ(story_of(maker.made),
            "5 taken 0; 5 used 0; 9 unused 0; 9 given back 0; 9 taken 2; 9 used 2; ");
}

TEST(DeviceMemoryEvents, ABlockIsInUseWhileItIsMappedSomewhere) {
  RecordingMaker maker;
  maker.object("physical block", kBlock, 10, 1, 90);
  maker.mapping(100, kBlock, 10, 30);
  maker.mapping(200, kBlock, 20, 40);
  maker.mapping(100, kBlock, 50, 60);
  maker.mapping(100, kBlock, 60, 95);  // longer than the handle lives
  maker.mapping(300, kBlock + 1, 70);  // of another process
  EXPECT_EQ(story_of(maker.made),
            "1 taken 0; 10 used 0; 40 unused 0; 50 used 0; 60 unused 0; 60 used 0; 90 unused 0; "
            "90 given back 0; ");
}

TEST(DeviceMemoryEvents, ImportedMemoryIsOfItsOwner) {
  RecordingMaker maker;
  maker.object("physical block", kBlock, 0, 1);
  maker.mapping(100, kBlock, 10, 30);
  EXPECT_EQ(story_of(maker.made), "");
}

TEST(DeviceMemoryEvents, WhatDidNotFitIsOfTheDeviceItWasMeantFor) {
  RecordingMaker maker;
  maker.made.functions.push_back(
      {"aclrtMallocPhysical",
       {{"handle", 'p', 1, true}, {"size", 'u', 1, false}, {"prop", 'P', 4, false}}});
  maker.made.functions.push_back({"aclrtMallocHost", {{"size", 'u', 1, false}}});
  maker.call(0, 1, 1, 207001, {0, 64});
  maker.call(1, 2, 1, 0, {3});
  maker.call(1, 3, 1, 107001, {99});
  maker.call(0, 4, 1, 207001, {0, 65});
  maker.call(2, 5, 1, 207001, {0, 66, 0, uint64_t{1} << 32, 2, 0});
  maker.call(2, 6, 1, 207001, {0, 67, 0});  // cut short
  maker.call(3, 7, 1, 207001, {68});
  maker.call(0, 8, 1, 507899, {0, 69});
  std::string story;
  for (const RefusedAllocation& each : refused_allocations(maker.made)) {
    story += std::to_string(each.bytes) + " on " + std::to_string(each.device) + "; ";
  }
  EXPECT_EQ(story, "64 on 0; 65 on 3; 66 on 2; 67 on 3; ");
}

std::vector<uint64_t> places_of(const Recording& recording) {
  return memory_places(recording, device_memory_events(recording));
}

TEST(MemoryPlaces, PiecesAreWhereTheProcessHadThem) {
  RecordingMaker maker;
  maker.made.processes.emplace_back();
  maker.object("allocation", 0x1000, 0x1000, 1);
  maker.object("physical block", kBlock, 0x1000, 2);
  maker.object("allocation", 0x1000, 0x1000, 3);
  maker.made.objects.back().process = 1;
  maker.mapping(0x2000, kBlock, 4, 5);
  maker.mapping(0x4000, kBlock, 6);
  maker.object("physical block", kBlock + 1, 0x1000, 7);
  const std::vector<uint64_t> places = places_of(maker.made);
  EXPECT_EQ(places[0], 0x1000U);
  EXPECT_EQ(places[1], 0x2000U);
  EXPECT_EQ(places[2], 0x1000U + (uint64_t{1} << 47));
  EXPECT_EQ(places[3], kNowhere);
  EXPECT_EQ(places[5], uint64_t{1} << 52);
}

TEST(MemoryPlaces, WhatWouldOverlapIsElsewhere) {
  RecordingMaker maker;
  maker.object("allocation", 0x1000, 0x1000, 1);
  maker.object("allocation", 0x1fff, 0x1000, 2);
  maker.object("allocation", 0x0800, 0x0801, 3);
  maker.object("allocation", 0x2000, 0x1000, 4);
  maker.object("allocation", 0x0800, 0x0800, 5);
  const std::vector<uint64_t> places = places_of(maker.made);
  EXPECT_EQ(places[0], 0x1000U);
  EXPECT_GE(places[1], uint64_t{1} << 52);
  EXPECT_GT(places[2], places[1]);
  EXPECT_EQ(places[3], 0x2000U);
  EXPECT_EQ(places[4], 0x0800U);
}

// Of numbers as damaged files have them.
Recording extreme_recording() {
  RecordingMaker maker;
  const uint64_t extremes[] = {0, 1, uint64_t{1} << 47, uint64_t{1} << 62, INT64_MAX, UINT64_MAX};
  for (const uint64_t number : extremes) {
    for (const uint64_t taken : extremes) {
      maker.object("allocation", number, taken, 5, 6);
      maker.made.objects.back().device = 1023;
      maker.object("allocation", number, taken, UINT64_MAX - 2, UINT64_MAX - 1);
      maker.object("physical block", number, taken, UINT64_MAX - 2);
      maker.mapping(taken, number, UINT64_MAX - 2, UINT64_MAX - 1);
      maker.made.objects.back().device = INT32_MAX;
    }
  }
  maker.object("allocation", 1, 1, 7);
  maker.made.objects.back().device = INT32_MAX;
  std::stable_sort(maker.made.objects.begin(), maker.made.objects.end(),
                   [](const auto& left, const auto& right) { return left.begin < right.begin; });
  maker.made.wall_clock = UINT64_MAX;
  maker.call(0, UINT64_MAX, UINT64_MAX, 207001, {0, UINT64_MAX});
  return maker.made;
}

TEST(MemoryPlaces, ExtremeNumbersKeepPiecesApart) {
  const Recording recording = extreme_recording();
  std::set<std::pair<uint64_t, uint64_t>> alive;
  const auto events = device_memory_events(recording);
  const std::vector<uint64_t> places = memory_places(recording, events);
  for (const DeviceMemoryEvent& event : events) {
    if (event.object == kNone || places[event.object] == kNowhere) continue;
    const uint64_t place = places[event.object];
    ASSERT_LE(event.bytes, uint64_t{1} << 62);
    ASSERT_LE(place, (uint64_t{1} << 62) - event.bytes);
    if (event.action == MemoryAction::kTaken) {
      const auto behind = alive.lower_bound({place, 0});
      ASSERT_TRUE(behind == alive.end() || behind->first - place >= event.bytes);
      ASSERT_TRUE(behind == alive.begin() ||
                  std::prev(behind)->first + std::prev(behind)->second <= place);
      ASSERT_TRUE(alive.insert({place, event.bytes}).second);
    } else if (event.action == MemoryAction::kGivenBack) {
      ASSERT_EQ(alive.erase({place, event.bytes}), 1U);
    }
  }
}

TEST(MemoryPlaces, ExtremeNumbersCanBeExported) {
  const Recording recording = extreme_recording();
  EXPECT_LT(torch_snapshot(recording).size(), size_t{1} << 20);
  EXPECT_EQ(allocation_csv(recording).find('-'), std::string::npos);
}

TEST(AllocationCsv, RowsAreInTheOrderOfTime) {
  RecordingMaker maker;
  maker.made.functions.push_back({"aclrtMemPoolMallocAsync", {{"stream", 'p', 1, false}}});
  maker.made.wall_clock = 86'399'999'999'000;
  maker.object("allocation", 0x1000, 0x2000, 999, 5'000'000);
  maker.made.objects[0].begin_call = maker.call(2, 1, 1, 0, {0x5d01});
  maker.call(0, 2'000'000, 0, 207001, {0, 77});
  EXPECT_EQ(allocation_csv(maker.made),
            "Thread,Time,Action,Pointer,Size,Stream\n"
            "7,23:59:59.999999,allocate,0x1000,8192,0x5d01\n"
            "7,00:00:00.001999,allocate failure,0x0,77,0x0\n"
            "0,00:00:00.004999,free,0x1000,8192,0x0\n");
}

}  // namespace
}  // namespace understudy::command
