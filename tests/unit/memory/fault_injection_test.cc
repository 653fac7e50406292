// SPDX-License-Identifier: Apache-2.0
//
// Every platform call made to fail in turn. The life of a mapping is played with the first call of
// a kind failing, then with the second, until there are no more calls of that kind: each time it
// either succeeds or fails with an Error, nothing stays taken, and a clean run works afterwards.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "base/scope_exit.h"
#include "unit/memory/memory_rig.h"
#include "unit/platform/planned_fault.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

constexpr uint64_t kBlock = 2 * kGranule;

// Stores of exactly the size that is needed: a store that fails is not tried again smaller.
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
                rig.space.reserve(kBlock, ReservedPages::kHuge, std::nullopt));
  reserved = base;
  ScopeExit release([&] { EXPECT_TRUE(is_ok(rig.space.release(base))); });
  US_TRY(rig.map(base, kBlock, block));
  ScopeExit unmap([&] { EXPECT_TRUE(is_ok(rig.space.unmap(base))); });
  US_TRY(rig.transfer.set(base + 1, 0x3D, kGranule, 0));
  const Location host[] = {kHostLocation};
  US_TRY(rig.space.grant({base, kBlock}, host));
  const auto* const bytes = static_cast<const volatile uint8_t*>(to_pointer(base));
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[kGranule], 0x3D);
  EXPECT_EQ(bytes[kBlock - 1], 0);
  return {};
}

void expect_nothing_taken(MemoryRig& rig, VirtualAddress reserved) {
  EXPECT_EQ(rig.charged(0, PageKind::kHuge), 0u);
  EXPECT_EQ(rig.charged(0, PageKind::kNormal), 0u);
  EXPECT_FALSE(rig.space.is_reserved(reserved));
  EXPECT_EQ(rig.host_bytes_in_use(), 0u);
}

struct Outcome {
  int calls = 0;     // of that kind, in one play
  int failures = 0;  // how many of them made the play fail
};

// Plays with each call of a kind failing in turn.
Outcome fail_each(SystemCall call, int system_number, Backing backing) {
  constexpr int kTooMany = 50;
  Outcome outcome;
  for (int n = 1; n < kTooMany; ++n) {
    SCOPED_TRACE("call " + std::to_string(n));
    MemoryRig rig(scenario_settings(backing));
    VirtualAddress reserved = 0;
    bool happened = false;
    {
      const PlannedFault fault(call, n, system_number);
      const Result<void> played = play(rig, reserved);
      // What is cached goes back to the system under the same plan.
      (void)rig.host_bytes_in_use();
      happened = fault.happened();
      if (!played.ok()) {
        EXPECT_TRUE(happened);
        EXPECT_NE(played.error().text()[0], '\0');
        ++outcome.failures;
      }
    }
    expect_nothing_taken(rig, reserved);
    EXPECT_TRUE(is_ok(play(rig, reserved)));
    expect_nothing_taken(rig, reserved);
    if (!happened) return outcome;
    ++outcome.calls;
  }
  ADD_FAILURE() << "the play made " << kTooMany << " calls";
  return outcome;
}

class FaultInjection : public testing::TestWithParam<Backing> {};

TEST_P(FaultInjection, FileThatCannotBeMade) {
  const Outcome outcome = fail_each(SystemCall::kCreateFile, EMFILE, GetParam());
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(outcome.failures, 1);
}

TEST_P(FaultInjection, FileThatCannotBeSized) {
  const Outcome outcome = fail_each(SystemCall::kResizeFile, ENOMEM, GetParam());
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(outcome.failures, 1);
}

TEST_P(FaultInjection, AddressesThatCannotBeHad) {
  const Outcome outcome = fail_each(SystemCall::kReserveAddresses, ENOMEM, GetParam());
  EXPECT_GE(outcome.calls, 2);
  // The window of the store has no substitute; a reservation finds another place.
  EXPECT_EQ(outcome.failures, 1);
}

TEST_P(FaultInjection, AddressesThatAreOccupied) {
  const Outcome outcome = fail_each(SystemCall::kReserveAddresses, EEXIST, GetParam());
  EXPECT_GE(outcome.calls, 2);
  EXPECT_EQ(outcome.failures, 1);
}

TEST_P(FaultInjection, FileThatCannotBeMapped) {
  const Outcome outcome = fail_each(SystemCall::kMapFile, ENOMEM, GetParam());
  // The window of the store, and that of the host.
  EXPECT_EQ(outcome.calls, 2);
  EXPECT_EQ(outcome.failures, 2);
}

TEST_P(FaultInjection, MemoryThatIsNotThere) {
  const Outcome outcome = fail_each(SystemCall::kCommit, ENOSPC, GetParam());
  EXPECT_GE(outcome.calls, 1);
  // Large pages that are not there are replaced by small ones.
  if (GetParam() == Backing::kSmall) {
    EXPECT_EQ(outcome.failures, outcome.calls);
  }
}

TEST_P(FaultInjection, PagesThatThisKernelNeverGives) {
  EXPECT_GE(fail_each(SystemCall::kCommit, EINVAL, GetParam()).calls, 1);
}

TEST_P(FaultInjection, WindowThatCannotBeCovered) {
  const Outcome outcome = fail_each(SystemCall::kUnmap, ENOMEM, GetParam());
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(outcome.failures, 0);
}

TEST_P(FaultInjection, MemoryThatTheHostDoesNotTakeBack) {
  const Outcome outcome = fail_each(SystemCall::kDiscard, EIO, GetParam());
  EXPECT_GE(outcome.calls, 1);
  EXPECT_EQ(outcome.failures, 0);
}

INSTANTIATE_TEST_SUITE_P(Backings, FaultInjection, testing::Values(Backing::kSmall, Backing::kThp),
                         [](const testing::TestParamInfo<Backing>& parameter) {
                           return parameter.param == Backing::kSmall ? "SmallPages" : "LargePages";
                         });

}  // namespace
}  // namespace understudy
