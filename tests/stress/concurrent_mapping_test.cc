// SPDX-License-Identifier: Apache-2.0
//
// Threads that create, map, fill, check, unmap and free blocks of one device at the same time, in
// reservations of their own and in a shared one.
#include <cstdint>
#include <vector>

#include "rules/live_mapping.h"
#include "stress/threads.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using ConcurrentMapping = DeviceTest;

constexpr size_t kLargestBlock = 3 * kGranule;

// One block's life at `place`, which this thread owns. Bytes at both ends are its own throughout.
void live_once(void* place, int thread, int round) {
  const size_t size = kGranule * (1 + static_cast<size_t>(thread + round) % 3);
  const auto seed = static_cast<uint8_t>(thread * 31 + round);
  const std::vector<uint8_t> first = pattern(kPage, seed);
  const std::vector<uint8_t> last = pattern(kPage, static_cast<uint8_t>(seed + 101));
  void* const end = at(place, size - kPage);

  const aclrtDrvMemHandle block = create_block(size);
  EXPECT_SUCCESS(aclrtMapMem(place, size, 0, block, 0));
  copy_in(place, first);
  copy_in(end, last);
  EXPECT_TRUE(copy_out(place, kPage) == first);
  EXPECT_TRUE(copy_out(end, kPage) == last);
  const bool free_first = round % 2 == 0;
  if (free_first) {
    EXPECT_SUCCESS(aclrtFreePhysical(block));
    EXPECT_TRUE(copy_out(place, kPage) == first);
  }
  EXPECT_SUCCESS(aclrtUnmapMem(place));
  if (!free_first) {
    EXPECT_SUCCESS(aclrtFreePhysical(block));
  }
}

void churn_in_own_reservations(int threads, int rounds) {
  const MemoryFigures before = memory_figures();
  run_on_threads(threads, [rounds](int thread) {
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      void* const place = reserve(kLargestBlock);
      live_once(place, thread, round);
      EXPECT_SUCCESS(aclrtReleaseMemAddress(place));
    }
  });
  EXPECT_EQ(memory_figures(), before);
}

// Neighbours in one reservation, with nothing between their places.
void churn_in_a_shared_reservation(int threads, int rounds) {
  const MemoryFigures before = memory_figures();
  void* const range = reserve(kLargestBlock * static_cast<size_t>(threads));
  run_on_threads(threads, [range, rounds](int thread) {
    void* const place = at(range, kLargestBlock * static_cast<size_t>(thread));
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      live_once(place, thread, round);
    }
  });
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(ConcurrentMapping, TwoThreadsInReservationsOfTheirOwn) {
  churn_in_own_reservations(2, 1000);
}

TEST_F(ConcurrentMapping, EightThreadsInReservationsOfTheirOwn) {
  churn_in_own_reservations(8, 250);
}

TEST_F(ConcurrentMapping, TwoThreadsInASharedReservation) {
  churn_in_a_shared_reservation(2, 1000);
}

TEST_F(ConcurrentMapping, EightThreadsInASharedReservation) {
  churn_in_a_shared_reservation(8, 250);
}

// One block mapped by every thread at a place of its own: each sees what the others wrote.
TEST_F(ConcurrentMapping, EightThreadsMapOneBlock) {
  constexpr int kThreads = 8;
  const MemoryFigures before = memory_figures();
  const aclrtDrvMemHandle block = create_block(kGranule);
  StartLine line(kThreads);
  run_on_threads(kThreads, [&](int thread) {
    const size_t own_page = kPage * static_cast<size_t>(thread);
    void* const place = reserve(kGranule);
    for (int round = 0; round < 50; ++round) {
      const auto seed = static_cast<uint8_t>(round + thread);
      EXPECT_SUCCESS(aclrtMapMem(place, kGranule, 0, block, 0));
      copy_in(at(place, own_page), pattern(kPage, seed));
      line.wait();
      const int other = (thread + 1) % kThreads;
      EXPECT_TRUE(copy_out(at(place, kPage * static_cast<size_t>(other)), kPage) ==
                  pattern(kPage, static_cast<uint8_t>(round + other)));
      line.wait();
      EXPECT_SUCCESS(aclrtUnmapMem(place));
    }
    EXPECT_SUCCESS(aclrtReleaseMemAddress(place));
  });
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_EQ(memory_figures(), before);
}

}  // namespace
}  // namespace understudy_test
