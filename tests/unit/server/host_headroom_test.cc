// SPDX-License-Identifier: Apache-2.0
//
// The host memory that the processes of a server share, on a host that the test makes up.
#include "server/host_headroom.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/sizes.h"
#include "unit/expect_result.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

using platform::MemoryLimit;

constexpr uint64_t kStep = 2 * kMiB;
constexpr uint64_t kLimit = 300 * kMiB;

struct FakeHost {
  explicit FakeHost(uint64_t total = kLimit) : machine{0, 64 * kGiB, 64 * kGiB} {
    cgroup.total = total;
    available = total;
  }
  // A process uses memory, with or without having asked.
  void use(uint64_t bytes) { available.fetch_sub(bytes); }

  MemoryLimit machine;
  MemoryLimit cgroup{77, 0, 0};
  std::atomic<uint64_t> available;  // in the cgroup
  std::atomic<uint32_t> now{5000};
  std::array<std::atomic<bool>, HostHeadroomWords::kSlots> dead{};
  std::atomic<int> measured{0};
  HostHeadroomWords words;
};

// One process, in a cgroup of the host.
class FakeProcess final : private HostProbe {
 public:
  FakeProcess(FakeHost& host, unsigned slot, uint64_t cgroup = 77)
      : host_(host), slot_(slot), cgroup_(cgroup), headroom(host.words, *this) {}

  Result<void> take_and_use(uint64_t bytes) {
    US_TRY(headroom.take(bytes));
    host_.use(bytes);
    headroom.note_committed(bytes);
    return {};
  }
  uint64_t take_all_that_is_given() {
    uint64_t taken = 0;
    while (headroom.take(kStep).ok()) taken += kStep;
    return taken;
  }

 private:
  std::vector<MemoryLimit> limits() const override {
    ++host_.measured;
    MemoryLimit cgroup = host_.cgroup;
    cgroup.id = cgroup_;
    cgroup.available = host_.available.load();
    return {host_.machine, cgroup};
  }
  uint32_t milliseconds() const override { return host_.now; }
  unsigned own_slot() const override { return slot_; }
  bool is_alive(unsigned slot) const override { return !host_.dead[slot]; }

  FakeHost& host_;
  const unsigned slot_;
  const uint64_t cgroup_;

 public:
  HostHeadroom headroom;
};

TEST(HostHeadroom, WordsKeepTheirParts) {
  const GrantWord grant = GrantWord::unpack(GrantWord{4095, 0xFEDCBA98, 12345}.pack());
  EXPECT_EQ(grant.sequence, 4095u);
  EXPECT_EQ(grant.expiry, 0xFEDCBA98u);
  EXPECT_EQ(grant.pages, 12345u);
  const InFlightWord flight = InFlightWord::unpack(InFlightWord{uint64_t{1} << 52, 7}.pack());
  EXPECT_EQ(flight.pages, uint64_t{1} << 52);
  EXPECT_EQ(flight.grant, 7u);
}

TEST(HostHeadroom, ReserveIsAQuarterOfALittleAndAGibibyteOfMuch) {
  EXPECT_EQ(HostHeadroom::reserve_of(64 * kMiB), 16 * kMiB);
  EXPECT_EQ(HostHeadroom::reserve_of(kLimit), 32 * kMiB);
  EXPECT_EQ(HostHeadroom::reserve_of(16 * kGiB), 512 * kMiB);
  EXPECT_EQ(HostHeadroom::reserve_of(kTiB), kGiB);
  EXPECT_EQ(HostHeadroom::reserve_of(platform::kUnknownMemory), 0u);
}

TEST(HostHeadroom, OneProcessGetsAllButTheReserve) {
  FakeHost host;
  FakeProcess process(host, 0);
  uint64_t taken = 0;
  while (process.take_and_use(kStep).ok()) taken += kStep;
  EXPECT_EQ(taken, kLimit - HostHeadroom::reserve_of(kLimit));
  EXPECT_TRUE(fails_with(process.headroom.take(1), ErrorCode::kOutOfMemory));
  // What others give back is there again.
  host.available += 4 * kStep;
  EXPECT_TRUE(is_ok(process.take_and_use(4 * kStep)));
}

TEST(HostHeadroom, LargePieceIsTakenOnOneMeasurement) {
  FakeHost host;
  FakeProcess process(host, 0);
  EXPECT_TRUE(is_ok(process.take_and_use(128 * kMiB)));
  EXPECT_TRUE(fails_with(process.take_and_use(256 * kMiB), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(fails_with(process.take_and_use(UINT64_MAX), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(is_ok(process.take_and_use(128 * kMiB)));
}

TEST(HostHeadroom, MemoryThatIsNotYetCommittedIsNotGivenTwice) {
  FakeHost host;
  std::deque<FakeProcess> processes;
  uint64_t taken = 0;
  for (unsigned slot = 0; slot < 4; ++slot) {
    processes.emplace_back(host, slot);
    taken += processes.back().take_all_that_is_given();  // and commits none of it for now
  }
  EXPECT_EQ(taken, kLimit - HostHeadroom::reserve_of(kLimit));
}

TEST(HostHeadroom, WhatADeadProcessHadInFlightIsForgotten) {
  FakeHost host;
  FakeProcess process(host, 0);
  {
    FakeProcess other(host, 9);
    EXPECT_GT(other.take_all_that_is_given(), 0u);
  }
  EXPECT_TRUE(fails_with(process.take_and_use(kStep), ErrorCode::kOutOfMemory));
  host.dead[9] = true;
  EXPECT_TRUE(is_ok(process.take_and_use(128 * kMiB)));
}

TEST(HostHeadroom, SlotThatIsTakenAgainBeginsWithNothingInFlight) {
  FakeHost host;
  FakeProcess process(host, 0);
  { EXPECT_GT(FakeProcess(host, 9).take_all_that_is_given(), 0u); }
  const FakeProcess next(host, 9);
  EXPECT_TRUE(is_ok(process.take_and_use(128 * kMiB)));
}

TEST(HostHeadroom, GrantServesSeveralTakesAndExpires) {
  FakeHost host;
  FakeProcess process(host, 0);
  FakeProcess other(host, 1);
  ASSERT_TRUE(is_ok(process.take_and_use(kStep)));
  ASSERT_TRUE(is_ok(other.take_and_use(kStep)));  // learns which limit is closest
  const int measured = host.measured;
  ASSERT_TRUE(is_ok(other.take_and_use(kStep)));
  ASSERT_TRUE(is_ok(process.take_and_use(kStep)));
  EXPECT_EQ(host.measured, measured);
  host.now += 100;
  ASSERT_TRUE(is_ok(process.take_and_use(kStep)));
  EXPECT_EQ(host.measured, measured + 1);
}

TEST(HostHeadroom, StaleGrantIsFarLessThanTheReserve) {
  FakeHost host;
  FakeProcess process(host, 0);
  ASSERT_TRUE(is_ok(process.take_and_use(kStep)));
  host.available = 0;  // to a neighbour that asks no one
  EXPECT_LE(process.take_all_that_is_given(), HostHeadroom::reserve_of(kLimit) / 4);
  host.now += 100;
  EXPECT_TRUE(fails_with(process.take_and_use(kStep), ErrorCode::kOutOfMemory));
}

TEST(HostHeadroom, GrantDoesNotComeToLifeWhenTheClockWraps) {
  FakeHost host;
  host.now = UINT32_MAX - 50;
  FakeProcess process(host, 0);
  ASSERT_TRUE(is_ok(process.take_and_use(kStep)));
  host.available = 0;
  host.now = 49;
  EXPECT_TRUE(fails_with(process.take_and_use(kStep), ErrorCode::kOutOfMemory));
}

TEST(HostHeadroom, OtherCgroupsCountForTheMachineAlone) {
  FakeHost host;
  FakeProcess process(host, 0, 77);
  FakeProcess elsewhere(host, 1, 88);
  EXPECT_GT(elsewhere.take_all_that_is_given(), 0u);
  EXPECT_TRUE(is_ok(process.headroom.take(64 * kMiB)));
  process.headroom.note_committed(64 * kMiB);
  // The machine has little now, and knows of what is on its way.
  host.machine = {0, 4 * kGiB, 400 * kMiB};
  EXPECT_TRUE(fails_with(process.headroom.take(64 * kMiB), ErrorCode::kOutOfMemory));
}

TEST(HostHeadroom, CgroupsBeyondTheTableMeasureEveryTime) {
  FakeHost host;
  for (uint64_t cgroup = 100; cgroup < 110; ++cgroup) {
    FakeProcess process(host, 0, cgroup);
    EXPECT_TRUE(is_ok(process.headroom.take(kStep)));
    process.headroom.note_committed(kStep);
    EXPECT_TRUE(is_ok(process.headroom.take(kStep)));
    process.headroom.note_committed(kStep);
    EXPECT_TRUE(fails_with(process.headroom.take(kLimit), ErrorCode::kOutOfMemory));
  }
}

TEST(HostHeadroom, HostThatTellsNothingDoesNotLimit) {
  FakeHost host;
  host.machine = {};
  host.cgroup = {};
  host.available = platform::kUnknownMemory;
  FakeProcess process(host, 0);
  EXPECT_TRUE(is_ok(process.headroom.take(1024 * kGiB)));
}

TEST(HostHeadroom, ProcessesAtTheSameTimeLeaveTheReserve) {
  for (int round = 0; round < 20; ++round) {
    FakeHost host;
    run_on_threads(4, [&](int number) {
      FakeProcess process(host, static_cast<unsigned>(number));
      // Steps of different sizes, beyond a grant at times.
      uint64_t step = kStep << number;
      for (; step >= kStep; step /= 2) {
        while (process.take_and_use(step).ok()) ++host.now;
      }
    });
    EXPECT_GE(host.available.load(), HostHeadroom::reserve_of(kLimit));
    EXPECT_LT(host.available.load(), HostHeadroom::reserve_of(kLimit) + 64 * kMiB);
  }
}

}  // namespace
}  // namespace understudy
