// SPDX-License-Identifier: Apache-2.0
//
// Two threads make conflicting calls on one object at the same moment: exactly one succeeds, the
// other answers 107000, and nothing is left behind.
#include <array>
#include <atomic>
#include <functional>

#include "rules/live_mapping.h"
#include "stress/threads.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr int kRounds = 2000;

using Results = std::array<aclError, 2>;

// The steps of one round. `settle` learns which of the two calls succeeded.
struct Race {
  std::function<void()> prepare;
  std::function<aclError(int)> call;
  std::function<void(int)> settle;
};

// The index of the only success, or -1 if the results are not one success and one 107000.
int winner_of(const Results& results) {
  if (results == Results{ACL_SUCCESS, ACL_ERROR_RT_PARAM_INVALID}) return 0;
  if (results == Results{ACL_ERROR_RT_PARAM_INVALID, ACL_SUCCESS}) return 1;
  return -1;
}

class RacingCalls : public DeviceTest {
 protected:
  // Runs the race many times; a round with another outcome ends it.
  void expect_one_success_each_round(const Race& race) {
    const MemoryFigures before = memory_figures();
    StartLine line(2);
    Results results = {};
    bool ended = false;
    run_on_threads(2, [&](int me) {
      for (int round = 0; round < kRounds && !ended; ++round) {
        if (me == 0) race.prepare();
        line.wait();
        results[static_cast<size_t>(me)] = race.call(me);
        line.wait();
        if (me == 0) {
          const int winner = winner_of(results);
          ended = winner < 0;
          EXPECT_GE(winner, 0) << "round " << round << ": " << results[0] << " and " << results[1];
          if (!ended) race.settle(winner);
        }
        line.wait();
      }
    });
    EXPECT_EQ(memory_figures(), before);
  }

  aclrtDrvMemHandle block_ = nullptr;
  void* range_ = nullptr;
};

TEST_F(RacingCalls, OneOfTwoFreesOfOneReferenceSucceeds) {
  expect_one_success_each_round({.prepare = [this] { block_ = create_block(kGranule); },
                                 .call = [this](int) { return aclrtFreePhysical(block_); },
                                 .settle = [](int) {}});
}

TEST_F(RacingCalls, OneOfTwoFreesOfAMappedBlockSucceeds) {
  range_ = reserve(kGranule);
  expect_one_success_each_round({.prepare =
                                     [this] {
                                       block_ = create_block(kGranule);
                                       EXPECT_SUCCESS(aclrtMapMem(range_, kGranule, 0, block_, 0));
                                     },
                                 .call = [this](int) { return aclrtFreePhysical(block_); },
                                 .settle = [this](int) { EXPECT_SUCCESS(aclrtUnmapMem(range_)); }});
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
}

TEST_F(RacingCalls, OneOfTwoUnmapsSucceeds) {
  range_ = reserve(kGranule);
  block_ = create_block(kGranule);
  expect_one_success_each_round(
      {.prepare = [this] { EXPECT_SUCCESS(aclrtMapMem(range_, kGranule, 0, block_, 0)); },
       .call = [this](int) { return aclrtUnmapMem(range_); },
       .settle = [](int) {}});
  EXPECT_SUCCESS(aclrtFreePhysical(block_));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
}

TEST_F(RacingCalls, OneOfTwoReleasesSucceeds) {
  expect_one_success_each_round({.prepare = [this] { range_ = reserve(kGranule); },
                                 .call = [this](int) { return aclrtReleaseMemAddress(range_); },
                                 .settle = [](int) {}});
}

TEST_F(RacingCalls, OneOfTwoMapsAtOneAddressSucceedsAndItsBytesShow) {
  range_ = reserve(kGranule);
  const aclrtDrvMemHandle blocks[] = {create_block(kGranule), create_block(kGranule)};
  for (const int index : {0, 1}) {
    ASSERT_SUCCESS(aclrtMapMem(range_, kGranule, 0, blocks[index], 0));
    EXPECT_SUCCESS(aclrtMemset(range_, kGranule, index + 1, 1));
    ASSERT_SUCCESS(aclrtUnmapMem(range_));
  }
  expect_one_success_each_round(
      {.prepare = [] {},
       .call = [&](int me) { return aclrtMapMem(range_, kGranule, 0, blocks[me], 0); },
       .settle =
           [this](int winner) {
             EXPECT_EQ(copy_out(range_, 1)[0], winner + 1);
             EXPECT_SUCCESS(aclrtUnmapMem(range_));
           }});
  for (const aclrtDrvMemHandle block : blocks) EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
}

// Neither contains the other: the second one to come meets the middle granule occupied.
TEST_F(RacingCalls, OneOfTwoOverlappingMapsSucceeds) {
  range_ = reserve(3 * kGranule);
  const aclrtDrvMemHandle blocks[] = {create_block(2 * kGranule), create_block(2 * kGranule)};
  const auto place = [this](int me) { return at(range_, static_cast<size_t>(me) * kGranule); };
  expect_one_success_each_round(
      {.prepare = [] {},
       .call = [&](int me) { return aclrtMapMem(place(me), 2 * kGranule, 0, blocks[me], 0); },
       .settle = [&](int winner) { EXPECT_SUCCESS(aclrtUnmapMem(place(winner))); }});
  for (const aclrtDrvMemHandle block : blocks) EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
}

// A reservation binds to one device while mapped (MAP-15), so two devices race for an empty one.
TEST_F(RacingCalls, OneOfTwoMapsOfDifferentDevicesSucceeds) {
  range_ = reserve(2 * kGranule);
  const aclrtDrvMemHandle blocks[] = {
      create_block(kGranule),
      create_block(kGranule, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1))};
  const auto place = [this](int me) { return at(range_, static_cast<size_t>(me) * kGranule); };
  expect_one_success_each_round(
      {.prepare = [] {},
       .call = [&](int me) { return aclrtMapMem(place(me), kGranule, 0, blocks[me], 0); },
       .settle = [&](int winner) { EXPECT_SUCCESS(aclrtUnmapMem(place(winner))); }});
  for (const aclrtDrvMemHandle block : blocks) EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
}

TEST_F(RacingCalls, MapAndReleaseExcludeEachOther) {
  block_ = create_block(kGranule);
  expect_one_success_each_round({.prepare = [this] { range_ = reserve(kGranule); },
                                 .call =
                                     [this](int me) {
                                       return me == 0 ? aclrtReleaseMemAddress(range_)
                                                      : aclrtMapMem(range_, kGranule, 0, block_, 0);
                                     },
                                 .settle =
                                     [this](int winner) {
                                       if (winner == 0) return;
                                       EXPECT_SUCCESS(aclrtUnmapMem(range_));
                                       EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
                                     }});
  EXPECT_SUCCESS(aclrtFreePhysical(block_));
}

// Here the free always succeeds; the map comes before or after it, and no memory is lost.
TEST_F(RacingCalls, MapAgainstFreeIsBeforeOrAfterIt) {
  const MemoryFigures before = memory_figures();
  range_ = reserve(kGranule);
  StartLine line(2);
  aclError mapped = ACL_SUCCESS;
  run_on_threads(2, [&](int me) {
    for (int round = 0; round < kRounds; ++round) {
      if (me == 0) block_ = create_block(kGranule);
      line.wait();
      if (me == 0) {
        EXPECT_SUCCESS(aclrtFreePhysical(block_));
      } else {
        mapped = aclrtMapMem(range_, kGranule, 0, block_, 0);
      }
      line.wait();
      if (me != 0) continue;
      if (mapped == ACL_SUCCESS) {
        EXPECT_SUCCESS(aclrtMemset(range_, kGranule, 1, 1));
        EXPECT_SUCCESS(aclrtUnmapMem(range_));
      } else {
        EXPECT_EQ(mapped, ACL_ERROR_RT_PARAM_INVALID);
      }
    }
  });
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
  EXPECT_EQ(memory_figures(), before);
}

// With n references exactly n of the frees succeed, whoever makes them.
TEST_F(RacingCalls, EachReferenceIsFreedOnce) {
  constexpr int kThreads = 4;
  const MemoryFigures before = memory_figures();
  range_ = reserve(kGranule);
  StartLine line(kThreads);
  std::atomic<int> successes{0};
  run_on_threads(kThreads, [&](int me) {
    for (int round = 0; round < kRounds / 4; ++round) {
      if (me == 0) {
        block_ = create_block(kGranule);
        EXPECT_SUCCESS(aclrtMapMem(range_, kGranule, 0, block_, 0));
        aclrtDrvMemHandle again = nullptr;
        EXPECT_SUCCESS(aclrtMemRetainAllocationHandle(range_, &again));
        EXPECT_EQ(again, block_);
        EXPECT_SUCCESS(aclrtUnmapMem(range_));
        successes = 0;
      }
      line.wait();
      if (aclrtFreePhysical(block_) == ACL_SUCCESS) ++successes;
      line.wait();
      if (me == 0) {
        EXPECT_EQ(successes, 2);
      }
    }
  });
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
  EXPECT_EQ(memory_figures(), before);
}

}  // namespace
}  // namespace understudy_test
