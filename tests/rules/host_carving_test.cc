// SPDX-License-Identifier: Apache-2.0
//
// One large host block cut into segments by the rule of HOST-09: no use of one touches another.
// Covers: HOST-04, HOST-06, HOST-08, HOST-09.
#include <cstdint>
#include <thread>
#include <vector>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

class HostCarving : public HostMemoryTest {};

const std::vector<size_t> kLengths = {
    1, 31, 32, 33, 63, 64, 65, 96, 100, 127, kPage - 1, kPage, kPage + 1, 10000, 1, 200, kMiB + 3};

// Fills the segment with its pattern.
using Fill = void (*)(const HostSegment&);

void fill_by_cpu(const HostSegment& segment) {
  store(segment.start, pattern(segment.length, segment.seed));
}

void fill_by_copy(const HostSegment& segment) {
  const std::vector<uint8_t> bytes = pattern(segment.length, segment.seed);
  EXPECT_SUCCESS(aclrtMemcpy(segment.start, segment.length, bytes.data(), bytes.size(),
                             ACL_MEMCPY_HOST_TO_HOST));
}

void fill_through_the_device(const HostSegment& segment) {
  const MallocedMemory device_memory(segment.length);
  copy_in(device_memory.data(), pattern(segment.length, segment.seed));
  EXPECT_SUCCESS(aclrtMemcpy(segment.start, segment.length, device_memory.data(), segment.length,
                             ACL_MEMCPY_DEVICE_TO_HOST));
}

constexpr Fill kFills[] = {fill_by_cpu, fill_by_copy, fill_through_the_device};

TEST_F(HostCarving, HOST_09_FormulaGivesTheDocumentedLayout) {
  const struct {
    size_t length;
    size_t room;
    size_t step;
  } cases[] = {
      {1, 64, 64},    {32, 64, 64},    {33, 96, 128},       {64, 96, 128},
      {65, 128, 128}, {100, 160, 192}, {kPage, 4128, 4160}, {kPage + 1, 4160, 4160},
  };
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.length);
    EXPECT_EQ(segment_room(expected.length), expected.room);
    EXPECT_EQ(segment_step(expected.length), expected.step);
  }
}

TEST_F(HostCarving, HOST_04_HOST_09_EverySegmentStartsAtAMultipleOf64InsideTheBlock) {
  const HostBlock block(room_for_segments(kLengths));
  for (const HostSegment& segment : cut_into_segments(block.data(), kLengths)) {
    SCOPED_TRACE(segment.length);
    EXPECT_EQ(number(segment.start) % 64, 0u);
    void* const last = at(segment.start, segment_room(segment.length) - 1);
    EXPECT_TRUE(cpu_can_write(last));
    expect_address_range(last, block.data(), block.size());
    expect_at_host(last);
  }
}

TEST_F(HostCarving, HOST_09_SegmentsNeverInterfereWhateverWritesThem) {
  const HostBlock block(room_for_segments(kLengths));
  const std::vector<HostSegment> segments = cut_into_segments(block.data(), kLengths);
  for (const Fill first : kFills) {
    for (const HostSegment& segment : segments) first(segment);
    expect_segments_intact(segments);
    // Writing any one of them again, in any way, leaves the others as they are.
    for (size_t i = 0; i < segments.size(); i += 5) {
      EXPECT_SUCCESS(aclrtMemset(segments[i].start, segments[i].length, 0, segments[i].length));
      kFills[i % 3](segments[i]);
    }
    expect_segments_intact(segments);
  }
}

TEST_F(HostCarving, HOST_06_HOST_09_MemsetOfASegmentStopsAtItsEnd) {
  const HostBlock block(room_for_segments(kLengths));
  std::vector<uint8_t> expected(block.size(), 0xEE);
  store(block.data(), expected);
  for (const HostSegment& segment : cut_into_segments(block.data(), kLengths)) {
    SCOPED_TRACE(segment.length);
    EXPECT_SUCCESS(aclrtMemset(segment.start, segment.length, segment.seed, segment.length));
    const size_t offset = number(segment.start) - number(block.data());
    for (size_t i = 0; i < segment.length; ++i) expected[offset + i] = segment.seed;
  }
  EXPECT_TRUE(holds(block.data(), expected));
}

TEST_F(HostCarving, HOST_09_SegmentsAreGoodSourcesForTheDevice) {
  const HostBlock block(room_for_segments(kLengths));
  const std::vector<HostSegment> segments = cut_into_segments(block.data(), kLengths);
  for (const HostSegment& segment : segments) fill_by_cpu(segment);
  for (const HostSegment& segment : segments) {
    SCOPED_TRACE(segment.length);
    const MallocedMemory device_memory(segment.length);
    EXPECT_SUCCESS(aclrtMemcpy(device_memory.data(), segment.length, segment.start, segment.length,
                               ACL_MEMCPY_HOST_TO_DEVICE));
    EXPECT_TRUE(copy_out(device_memory.data(), segment.length) ==
                pattern(segment.length, segment.seed));
  }
  expect_segments_intact(segments);
}

TEST_F(HostCarving, HOST_09_ThreadsWorkOnTheirSegmentsAtOnce) {
  const std::vector<size_t> lengths(6, 1000);
  const HostBlock block(room_for_segments(lengths));
  const std::vector<HostSegment> segments = cut_into_segments(block.data(), lengths);
  aclrtContext context = nullptr;
  ASSERT_SUCCESS(aclrtGetCurrentContext(&context));
  std::vector<std::thread> threads;
  for (const HostSegment& segment : segments) {
    threads.emplace_back([context, segment] {
      ASSERT_SUCCESS(aclrtSetCurrentContext(context));
      for (size_t round = 0; round < 30; ++round) {
        EXPECT_SUCCESS(aclrtMemset(segment.start, segment.length, 0, segment.length));
        kFills[round % 3](segment);
        expect_segments_intact({segment});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_segments_intact(segments);
}

TEST_F(HostCarving, HOST_08_HOST_09_OnlyTheWholeBlockIsFreed) {
  const HostBlock block(room_for_segments(kLengths));
  const std::vector<HostSegment> segments = cut_into_segments(block.data(), kLengths);
  for (const HostSegment& segment : segments) fill_by_cpu(segment);
  for (size_t i = 1; i < segments.size(); ++i) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(segments[i].start));
  }
  expect_segments_intact(segments);
}

}  // namespace
}  // namespace understudy_test
