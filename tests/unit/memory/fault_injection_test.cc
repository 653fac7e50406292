// SPDX-License-Identifier: Apache-2.0
//
// Every platform call made to fail in turn. The life of a mapping is played with the first call of
// a kind failing, then with the second, until there are no more calls of that kind: each time it
// either succeeds or fails with an Error, nothing stays taken, and a clean run works afterwards.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <string>

#include "base/scope_exit.h"
#include "unit/memory/memory_rig.h"
#include "unit/platform/planned_fault.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

constexpr uint64_t kBlock = 2 * kGranule;

// Backing files of exactly the size that is needed: a backing file that fails is not tried again
// smaller.
Settings scenario_settings(Backing backing) {
  Settings settings = rig_settings();
  settings.memory = 0;
  settings.backing = backing;
  return settings;
}

// Create, reserve, map, set, grant to the host, look, unmap, free, release. What was done is undone
// whatever fails, as a careful program does.
Result<void> play(MemoryRig& rig, VirtualAddress& reserved) {
  US_TRY_ASSIGN(const BlockHandle block,
                rig.physical.create({kBlock, BlockAttribute::kHuge, kDevice0}));
  ScopeExit free([&] { EXPECT_TRUE(is_ok(rig.physical.free(block))); });
  US_TRY_ASSIGN(const VirtualAddress base,
                rig.space.reservations().reserve(kBlock, ReservedPages::kHuge, std::nullopt));
  reserved = base;
  ScopeExit release([&] { EXPECT_TRUE(is_ok(rig.space.reservations().release(base))); });
  US_TRY(rig.map(base, kBlock, block));
  ScopeExit unmap([&] { EXPECT_TRUE(is_ok(rig.space.mapper().unmap(base))); });
  US_TRY(rig.transfer.set(base + 1, 0x3D, kGranule, 0));
  const Location host[] = {kHostLocation};
  US_TRY(rig.space.mapper().grant({base, kBlock}, host));
  const auto* const bytes = static_cast<const volatile uint8_t*>(to_pointer(base));
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[kGranule], 0x3D);
  EXPECT_EQ(bytes[kBlock - 1], 0);
  return {};
}

void expect_nothing_taken(MemoryRig& rig, VirtualAddress reserved) {
  EXPECT_EQ(rig.charged(0, PageKind::kHuge), 0u);
  EXPECT_EQ(rig.charged(0, PageKind::kNormal), 0u);
  EXPECT_FALSE(rig.space.reservations().contains(reserved));
  EXPECT_EQ(rig.host_bytes_in_use(), 0u);
}

constexpr SystemCall kCalls[] = {
    SystemCall::kCreateFile, SystemCall::kResizeFile, SystemCall::kReserveAddresses,
    SystemCall::kMapFile,    SystemCall::kUnmap,      SystemCall::kCommit,
    SystemCall::kDiscard};
// The last kinds are for host memory, for streams and for what is shared.
static_assert(std::size(kCalls) + 10 == static_cast<size_t>(SystemCall::kCount));

constexpr const char* kNames[] = {"CreateFile", "ResizeFile", "ReserveAddresses", "MapFile",
                                  "Unmap",      "Commit",     "Discard"};

constexpr int number_for(SystemCall call) {
  switch (call) {
    case SystemCall::kCreateFile:
      return EMFILE;
    case SystemCall::kCommit:
      return ENOSPC;
    case SystemCall::kDiscard:
      return EIO;
    default:
      return ENOMEM;
  }
}

// Plays under a plan, then looks whether anything stayed taken, then plays without one.
// `happened` is asked before the plan ends.
template <typename Happened>
Result<void> play_and_check(MemoryRig& rig, Happened happened) {
  VirtualAddress reserved = 0;
  const Result<void> played = play(rig, reserved);
  // What is cached goes back to the system under the same plan.
  (void)rig.host_bytes_in_use();
  happened();
  platform::clear_fault_plan();
  expect_nothing_taken(rig, reserved);
  EXPECT_TRUE(is_ok(play(rig, reserved)));
  expect_nothing_taken(rig, reserved);
  return played;
}

struct Outcome {
  int calls = 0;     // of that kind, in one play
  int failures = 0;  // how many of them made the play fail
};

// Plays with each call of a kind failing in turn, until there are no more.
Outcome fail_each(SystemCall call, int system_number, Backing backing) {
  // Where the host keeps the near window for itself, one reservation makes many tries, all alike.
  constexpr int kEnough = 6;
  Outcome outcome;
  while (outcome.calls < kEnough) {
    SCOPED_TRACE("call " + std::to_string(outcome.calls + 1));
    MemoryRig rig(scenario_settings(backing));
    const PlannedFault fault(call, outcome.calls + 1, system_number);
    bool happened = false;
    const Result<void> played = play_and_check(rig, [&] { happened = fault.happened(); });
    if (!played.ok()) {
      EXPECT_TRUE(happened) << played.error().text();
      EXPECT_NE(played.error().text()[0], '\0');
      ++outcome.failures;
    }
    if (!happened) break;
    ++outcome.calls;
  }
  return outcome;
}

class FaultInjection : public testing::TestWithParam<Backing> {};

// Where a sanitizer keeps the near window for itself, a reservation has one place on the host, and
// without it the CPU gets no access.
int most_failures_for_addresses() {
  MemoryRig rig;
  return kNearWindow.contains(rig.reserve(kGranule)) ? 0 : 1;
}

// What is tried again after a failure gets through: the backing file in which a block is placed,
// and the memory behind it. What has a substitute does, too: addresses, covers, large pages.
TEST_P(FaultInjection, OneFaultFailsOnlyTheWindowOfTheHost) {
  for (const SystemCall call : kCalls) {
    if (call == SystemCall::kReserveAddresses) continue;
    SCOPED_TRACE(kNames[static_cast<size_t>(call)]);
    const Outcome outcome = fail_each(call, number_for(call), GetParam());
    EXPECT_GE(outcome.calls, 1);
    EXPECT_EQ(outcome.failures, call == SystemCall::kMapFile ? 1 : 0);
  }
}

TEST_P(FaultInjection, AddressesThatCannotBeHad) {
  const Outcome outcome = fail_each(SystemCall::kReserveAddresses, ENOMEM, GetParam());
  EXPECT_GE(outcome.calls, 2);
  EXPECT_LE(outcome.failures, most_failures_for_addresses());
}

TEST_P(FaultInjection, AddressesThatAreOccupied) {
  const Outcome outcome = fail_each(SystemCall::kReserveAddresses, EEXIST, GetParam());
  EXPECT_GE(outcome.calls, 2);
  EXPECT_LE(outcome.failures, most_failures_for_addresses());
}

TEST_P(FaultInjection, PagesThatThisKernelNeverGives) {
  const Outcome outcome = fail_each(SystemCall::kCommit, EINVAL, GetParam());
  EXPECT_GE(outcome.calls, 1);
  EXPECT_EQ(outcome.failures, 0);
}

INSTANTIATE_TEST_SUITE_P(Backings, FaultInjection, testing::Values(Backing::kSmall, Backing::kThp),
                         [](const testing::TestParamInfo<Backing>& parameter) {
                           return parameter.param == Backing::kSmall ? "SmallPages" : "LargePages";
                         });

// Two faults of different kinds, so that the second try fails as well.
class TwoFaults : public testing::TestWithParam<SystemCall> {};

TEST_P(TwoFaults, FailWithAnErrorAndLeaveNothingTaken) {
  int failures = 0;
  for (const SystemCall other : kCalls) {
    if (other == GetParam()) continue;
    for (const int n : {1, 2, 3}) {
      SCOPED_TRACE(std::string("and call ") + std::to_string(n) + " of " +
                   kNames[static_cast<size_t>(other)]);
      MemoryRig rig(scenario_settings(Backing::kSmall));
      const PlannedFault first(GetParam(), 1, number_for(GetParam()));
      const PlannedFault second(other, n, number_for(other));
      const Result<void> played = play_and_check(rig, [] {});
      if (played.ok()) continue;
      EXPECT_NE(played.error().text()[0], '\0');
      EXPECT_NE(played.error().code(), ErrorCode::kInternal);
      ++failures;
    }
  }
  EXPECT_GE(failures, 1);
}

INSTANTIATE_TEST_SUITE_P(Calls, TwoFaults, testing::ValuesIn(kCalls),
                         [](const testing::TestParamInfo<SystemCall>& parameter) {
                           return kNames[static_cast<size_t>(parameter.param)];
                         });

}  // namespace
}  // namespace understudy
