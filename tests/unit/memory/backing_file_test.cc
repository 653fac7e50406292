// SPDX-License-Identifier: Apache-2.0
#include "memory/backing_file.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "base/scope_exit.h"
#include "unit/expect_result.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

using platform::bytes_behind;
using platform::PlannedFault;
using platform::SystemCall;

constexpr uint64_t kGranules = 16;
constexpr uint64_t kSize = kGranules * kGranule;

class BackingFileTest : public testing::Test {
 protected:
  static BackingFileOptions small_pages() {
    BackingFileOptions options;
    options.name = "unit-test";
    options.collapse = false;
    return options;
  }
  static BackingFileOptions large_pages() {
    BackingFileOptions options = small_pages();
    options.collapse = true;
    return options;
  }

  std::unique_ptr<BackingFile> backing_of(const BackingFileOptions& options,
                                          uint64_t size = kSize) {
    return value_of(BackingFile::create(options, size, budget_));
  }
  static uint8_t* bytes(const BackingFile& backing, uint64_t offset) {
    return static_cast<uint8_t*>(to_pointer(backing.alias(offset)));
  }
  // The three accounts of host memory agree.
  void expect_committed(const BackingFile& backing, uint64_t committed) {
    EXPECT_EQ(backing.backing().total(), committed);
    EXPECT_EQ(backing.committed_bytes_in(0, backing.size()), committed);
    EXPECT_EQ(budget_.taken(), committed);
    EXPECT_EQ(bytes_behind(backing.file()), committed);
  }

  HostBudget budget_{HostBudget::Kind::kFixed, kSize};
};

TEST_F(BackingFileTest, BeginsColdAndCostsNothing) {
  const auto backing = backing_of(small_pages(), 64 * kGiB);
  EXPECT_EQ(backing->size(), 64 * kGiB);
  EXPECT_TRUE(is_aligned(backing->alias(0), kGranule));
  EXPECT_EQ(backing->alias(kGranule), backing->alias(0) + kGranule);
  EXPECT_EQ(backing->alignment(), kHugePage);
  EXPECT_EQ(backing->state_at(0), CommitState::kCold);
  EXPECT_FALSE(backing->is_committed_at(64 * kGiB - 1));
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(bytes_behind(backing->file()), 0u);
}

TEST_F(BackingFileTest, CommitTakesEveryGranuleThatIsTouchedAndNoOther) {
  const auto backing = backing_of(small_pages());
  // Two bytes on either side of a border.
  ASSERT_TRUE(is_ok(backing->commit(3 * kGranule - 1, 2)));
  EXPECT_FALSE(backing->is_committed_at(kGranule));
  EXPECT_TRUE(backing->is_committed_at(2 * kGranule));
  EXPECT_TRUE(backing->is_committed_at(3 * kGranule));
  EXPECT_FALSE(backing->is_committed_at(4 * kGranule));
  EXPECT_EQ(backing->state_at(2 * kGranule), CommitState::kSmallPages);
  expect_committed(*backing, 2 * kGranule);
  EXPECT_EQ(backing->backing().small_pages, 2 * kGranule);
}

TEST_F(BackingFileTest, SecondCommitTakesOnlyWhatIsCold) {
  const auto backing = backing_of(small_pages());
  ASSERT_TRUE(is_ok(backing->commit(kGranule, kGranule)));
  bytes(*backing, kGranule)[5] = 0x55;
  ASSERT_TRUE(is_ok(backing->commit(0, 3 * kGranule)));
  expect_committed(*backing, 3 * kGranule);
  EXPECT_EQ(bytes(*backing, kGranule)[5], 0x55);
}

TEST_F(BackingFileTest, FreshMemoryIsZero) {
  const auto backing = backing_of(small_pages());
  EXPECT_EQ(backing->fresh_byte(), 0);
  ASSERT_TRUE(is_ok(backing->commit(0, kGranule)));
  EXPECT_EQ(std::count(bytes(*backing, 0), bytes(*backing, kGranule), 0), kGranule);
}

TEST_F(BackingFileTest, ChillGivesTheMemoryBackAndForgetsTheBytes) {
  const auto backing = backing_of(small_pages());
  ASSERT_TRUE(is_ok(backing->commit(0, 4 * kGranule)));
  bytes(*backing, kGranule)[0] = 1;
  bytes(*backing, 3 * kGranule)[0] = 3;
  // Over cold and committed granules alike.
  backing->decommit(kGranule, 2 * kGranule);
  EXPECT_FALSE(backing->is_committed_at(kGranule));
  EXPECT_TRUE(backing->is_committed_at(3 * kGranule));
  expect_committed(*backing, 2 * kGranule);
  backing->decommit(2 * kGranule, kGranule);
  expect_committed(*backing, 2 * kGranule);
  ASSERT_TRUE(is_ok(backing->commit(kGranule, kGranule)));
  EXPECT_EQ(bytes(*backing, kGranule)[0], 0);
  EXPECT_EQ(bytes(*backing, 3 * kGranule)[0], 3);
  backing->decommit(0, kSize);
  expect_committed(*backing, 0);
}

TEST_F(BackingFileTest, EndOfAStoreGivesItsBudgetBack) {
  {
    const auto backing = backing_of(small_pages());
    ASSERT_TRUE(is_ok(backing->commit(0, 3 * kGranule)));
    EXPECT_EQ(budget_.taken(), 3 * kGranule);
  }
  EXPECT_EQ(budget_.taken(), 0u);
}

TEST_F(BackingFileTest, PoisonedStoreIsFullOfPoisonWhereverItIsFresh) {
  BackingFileOptions options = small_pages();
  options.poison = Poison::kOn;
  const auto backing = backing_of(options);
  EXPECT_EQ(backing->fresh_byte(), BackingFile::kPoisonByte);
  ASSERT_TRUE(is_ok(backing->commit(0, 2 * kGranule)));
  EXPECT_EQ(std::count(bytes(*backing, 0), bytes(*backing, 2 * kGranule), BackingFile::kPoisonByte),
            2 * kGranule);
  bytes(*backing, 0)[9] = 1;
  bytes(*backing, kGranule)[9] = 1;
  backing->refill(0, kGranule);
  EXPECT_EQ(bytes(*backing, 0)[9], BackingFile::kPoisonByte);
  EXPECT_EQ(bytes(*backing, kGranule)[9], 1);
  // A refill of cold granules costs nothing.
  backing->refill(4 * kGranule, kGranule);
  expect_committed(*backing, 2 * kGranule);
}

TEST_F(BackingFileTest, RefusalOfTheBudgetLeavesTheGranulesCold) {
  const auto backing = backing_of(small_pages(), 2 * kSize);
  ASSERT_TRUE(is_ok(backing->commit(0, kSize - kGranule)));
  EXPECT_TRUE(fails_with(backing->commit(kSize, 2 * kGranule), ErrorCode::kOutOfMemory));
  EXPECT_EQ(backing->state_at(kSize), CommitState::kCold);
  EXPECT_EQ(backing->state_at(kSize + kGranule), CommitState::kCold);
  expect_committed(*backing, kSize - kGranule);
  EXPECT_TRUE(is_ok(backing->commit(kSize, kGranule)));
  expect_committed(*backing, kSize);
}

TEST_F(BackingFileTest, NthCommitThatFailsTakesNothingForItsGranules) {
  for (int n = 1; n <= 3; ++n) {
    const auto backing = backing_of(small_pages());
    // Granules 0, 2 and 4 are cold: three commits of their own.
    ASSERT_TRUE(is_ok(backing->commit(kGranule, kGranule)));
    ASSERT_TRUE(is_ok(backing->commit(3 * kGranule, kGranule)));
    {
      const PlannedFault fault(SystemCall::kCommit, n, ENOSPC);
      const Result<void> failed = backing->commit(0, 5 * kGranule);
      ASSERT_TRUE(fails_with(failed, ErrorCode::kOutOfMemory)) << n;
      EXPECT_EQ(failed.error().system_number(), ENOSPC);
    }
    const auto done = static_cast<uint64_t>(n) - 1;
    expect_committed(*backing, (2 + done) * kGranule);
    EXPECT_EQ(backing->state_at(done * 2 * kGranule), CommitState::kCold);
    EXPECT_TRUE(is_ok(backing->commit(0, 5 * kGranule)));
    expect_committed(*backing, 5 * kGranule);
  }
}

TEST_F(BackingFileTest, CommitThatFailedHalfwayTakesNothing) {
  // Without large pages the collapse fails after it touched a page of each granule.
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  ScopeExit enable([] { prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0); });
  const auto backing = backing_of(large_pages());
  {
    const PlannedFault fault(SystemCall::kCommit, 2, ENOSPC);
    EXPECT_TRUE(fails_with(backing->commit(0, 2 * kGranule), ErrorCode::kOutOfMemory));
    EXPECT_TRUE(fault.happened());
  }
  expect_committed(*backing, 0);
  ASSERT_TRUE(is_ok(backing->commit(0, 2 * kGranule)));
  EXPECT_EQ(backing->backing().small_pages, 2 * kGranule);
  expect_committed(*backing, 2 * kGranule);
}

TEST_F(BackingFileTest, HostThatDoesNotTakeMemoryBackLeavesItCommitted) {
  const auto backing = backing_of(small_pages());
  ASSERT_TRUE(is_ok(backing->commit(0, 2 * kGranule)));
  {
    const PlannedFault fault(SystemCall::kDiscard, 1, EIO);
    backing->decommit(0, 2 * kGranule);
  }
  expect_committed(*backing, 2 * kGranule);
  backing->decommit(0, 2 * kGranule);
  expect_committed(*backing, 0);
}

TEST_F(BackingFileTest, KernelThatCannotCollapseIsAskedOnce) {
  const auto backing = backing_of(large_pages());
  {
    const PlannedFault fault(SystemCall::kCommit, 1, EINVAL);
    ASSERT_TRUE(is_ok(backing->commit(0, kGranule)));
  }
  EXPECT_EQ(backing->state_at(0), CommitState::kSmallPages);
  ASSERT_TRUE(is_ok(backing->commit(kGranule, kGranule)));
  EXPECT_EQ(backing->state_at(kGranule), CommitState::kSmallPages);
  expect_committed(*backing, 2 * kGranule);
}

TEST_F(BackingFileTest, CollapseThatFailedForNowIsTriedAgain) {
  const auto backing = backing_of(large_pages());
  ASSERT_TRUE(is_ok(backing->commit(0, kGranule)));
  if (backing->state_at(0) != CommitState::kCollapsed) {
    GTEST_SKIP() << "this kernel or process gets no 2 MiB pages without a pool";
  }
  {
    const PlannedFault fault(SystemCall::kCommit, 1, EAGAIN);
    ASSERT_TRUE(is_ok(backing->commit(kGranule, kGranule)));
  }
  EXPECT_EQ(backing->state_at(kGranule), CommitState::kSmallPages);
  // Of several tries one gets through, however busy the machine is.
  for (uint64_t n = 2; n < 8; ++n) ASSERT_TRUE(is_ok(backing->commit(n * kGranule, kGranule)));
  EXPECT_GE(backing->backing().collapsed, 2 * kGranule);
  expect_committed(*backing, 8 * kGranule);
}

TEST_F(BackingFileTest, ThreadsThatCommitTheSameGranulesTakeThemOnce) {
  for (const BackingFileOptions& options : {small_pages(), large_pages()}) {
    const auto backing = backing_of(options);
    run_on_threads(4, [&](int index) {
      // From different ends, so that their runs meet in the middle.
      const auto first = static_cast<uint64_t>(index) * 3 % 8;
      EXPECT_TRUE(is_ok(backing->commit(first * kGranule, kSize - first * kGranule)));
      EXPECT_EQ(backing->committed_bytes_in(first * kGranule, kSize - first * kGranule),
                kSize - first * kGranule);
      EXPECT_TRUE(is_ok(backing->commit(0, kSize)));
    });
    EXPECT_EQ(budget_.taken(), kSize);
    EXPECT_EQ(backing->backing().total(), kSize);
    EXPECT_EQ(bytes_behind(backing->file()), kSize);
  }
}

TEST_F(BackingFileTest, BytesWrittenWhileOthersCommitAreKept) {
  BackingFileOptions options = small_pages();
  options.poison = Poison::kOn;
  const auto backing = backing_of(options);
  run_on_threads(4, [&](int index) {
    EXPECT_TRUE(is_ok(backing->commit(0, 4 * kGranule)));
    bytes(*backing, 0)[index] = static_cast<uint8_t>(index);
    bytes(*backing, 3 * kGranule)[index] = static_cast<uint8_t>(index);
  });
  for (int index = 0; index < 4; ++index) {
    EXPECT_EQ(bytes(*backing, 0)[index], index);
    EXPECT_EQ(bytes(*backing, 3 * kGranule)[index], index);
  }
}

TEST_F(BackingFileTest, ThreadsThatMeetAnEmptyBudgetAllHearOfIt) {
  HostBudget small(HostBudget::Kind::kFixed, 2 * kGranule);
  const auto backing = value_of(BackingFile::create(small_pages(), kSize, small));
  run_on_threads(4, [&](int) {
    EXPECT_TRUE(fails_with(backing->commit(0, 4 * kGranule), ErrorCode::kOutOfMemory));
  });
  EXPECT_EQ(small.taken(), backing->backing().total());
  EXPECT_LE(small.taken(), 2 * kGranule);
  for (uint64_t n = 0; n < kGranules; ++n) {
    EXPECT_NE(backing->state_at(n * kGranule), CommitState::kCommitting);
  }
}

TEST_F(BackingFileTest, CreationThatFailsLeavesNoWindow) {
  // Where the alias of the next backing file goes: the kernel answers the same question the same
  // way.
  const VirtualAddress next = backing_of(small_pages())->alias(0);
  for (const SystemCall call : {SystemCall::kCreateFile, SystemCall::kResizeFile,
                                SystemCall::kReserveAddresses, SystemCall::kMapFile}) {
    const PlannedFault fault(call, 1, ENOMEM);
    EXPECT_FALSE(BackingFile::create(small_pages(), kSize, budget_).ok());
    EXPECT_TRUE(fault.happened());
    EXPECT_FALSE(platform::cpu_can_read(next));
  }
  BackingFileOptions nowhere = small_pages();
  nowhere.numa_node = 1000;
  EXPECT_FALSE(BackingFile::create(nowhere, kSize, budget_).ok());
  EXPECT_EQ(budget_.taken(), 0u);
}

// ---- Parts of granules ----

TEST_F(BackingFileTest, AFewBytesCommitThePartsAroundThemAndNoOther) {
  const auto backing = backing_of(large_pages());
  const uint64_t start = 5 * kGranule + 3 * kPartBytes;
  ASSERT_TRUE(is_ok(backing->commit(start - 1, 2)));
  EXPECT_EQ(backing->state_at(start), CommitState::kPartial);
  EXPECT_FALSE(backing->is_committed_at(start));
  expect_committed(*backing, 2 * kPartBytes);
  EXPECT_EQ(backing->backing().small_pages, 2 * kPartBytes);

  const BackingFile::Run before = backing->run_at(4 * kGranule, kSize - 4 * kGranule);
  EXPECT_FALSE(before.is_committed);
  EXPECT_EQ(before.size, kGranule + 2 * kPartBytes);
  const BackingFile::Run there = backing->run_at(start - 100, kGranule);
  EXPECT_TRUE(there.is_committed);
  EXPECT_EQ(there.size, kPartBytes + 100);
  EXPECT_EQ(backing->run_at(start, 10).size, 10u);
  const BackingFile::Run behind = backing->run_at(start + kPartBytes, kGranule);
  EXPECT_FALSE(behind.is_committed);
  EXPECT_EQ(behind.size, kGranule);
}

TEST_F(BackingFileTest, AThirdPartLeavesTheOthersAsTheyAre) {
  const auto backing = backing_of(small_pages());
  ASSERT_TRUE(is_ok(backing->commit(0, 1)));
  ASSERT_TRUE(is_ok(backing->commit(kGranule - 1, 1)));
  bytes(*backing, 0)[7] = 0x77;
  bytes(*backing, kGranule)[-1] = 0x11;
  ASSERT_TRUE(is_ok(backing->commit(10 * kPartBytes, 3 * kPartBytes)));
  expect_committed(*backing, 5 * kPartBytes);
  EXPECT_EQ(bytes(*backing, 0)[7], 0x77);
  EXPECT_EQ(bytes(*backing, kGranule)[-1], 0x11);
}

TEST_F(BackingFileTest, AGranuleOfWhichMoreThanAQuarterIsUsedIsCommittedAsAWhole) {
  for (const BackingFileOptions& options : {small_pages(), large_pages()}) {
    const auto backing = backing_of(options);
    constexpr unsigned kQuarter = kPartsPerGranule / 4;
    for (unsigned part = 0; part < kQuarter; ++part) {
      ASSERT_TRUE(is_ok(backing->commit(kGranule + 2 * part * kPartBytes, 1)));
      bytes(*backing, kGranule)[2 * part * kPartBytes] = static_cast<uint8_t>(part + 1);
    }
    expect_committed(*backing, kQuarter * kPartBytes);
    ASSERT_TRUE(is_ok(backing->commit(2 * kGranule - 1, 1)));
    EXPECT_TRUE(backing->is_committed_at(kGranule));
    expect_committed(*backing, kGranule);
    for (unsigned part = 0; part < kQuarter; ++part) {
      EXPECT_EQ(bytes(*backing, kGranule)[2 * part * kPartBytes], part + 1) << part;
      EXPECT_EQ(bytes(*backing, kGranule)[(2 * part + 1) * kPartBytes], 0) << part;
    }
    backing->decommit(0, kSize);
    expect_committed(*backing, 0);
  }
}

TEST_F(BackingFileTest, ALargeRangeCommitsAPartialGranuleAsAWhole) {
  const auto backing = backing_of(small_pages());
  ASSERT_TRUE(is_ok(backing->commit(2 * kGranule + 5, 1)));
  bytes(*backing, 2 * kGranule)[5] = 0x55;
  ASSERT_TRUE(is_ok(backing->commit(kGranule, 3 * kGranule)));
  expect_committed(*backing, 3 * kGranule);
  EXPECT_EQ(bytes(*backing, 2 * kGranule)[5], 0x55);
}

TEST_F(BackingFileTest, PartsThatAreAskedForAgainAndAgainAreWorthTheGranule) {
  const auto backing = backing_of(small_pages());
  int times = 0;
  while (!backing->is_committed_at(0) && times < 1000) {
    ASSERT_TRUE(is_ok(backing->commit(64, 64)));
    ++times;
  }
  EXPECT_TRUE(backing->is_committed_at(0));
  EXPECT_GT(times, 10);
  expect_committed(*backing, kGranule);
}

TEST_F(BackingFileTest, AHostWithoutMemoryForTheGranuleGivesItsParts) {
  HostBudget small(HostBudget::Kind::kFixed, kGranule / 2);
  const auto backing = value_of(BackingFile::create(small_pages(), kSize, small));
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(is_ok(backing->commit(64, 64))) << i;
  EXPECT_EQ(small.taken(), kPartBytes);
  // More than a quarter in all, and less than there is.
  ASSERT_TRUE(is_ok(backing->commit(kPartBytes, 10 * kPartBytes)));
  ASSERT_TRUE(is_ok(backing->commit(20 * kPartBytes, 10 * kPartBytes)));
  EXPECT_EQ(small.taken(), 21 * kPartBytes);
  EXPECT_TRUE(fails_with(backing->commit(0, kGranule), ErrorCode::kOutOfMemory));
  EXPECT_EQ(small.taken(), 21 * kPartBytes);
  EXPECT_EQ(backing->state_at(0), CommitState::kPartial);
}

TEST_F(BackingFileTest, PoisonOfPartsComesWithThem) {
  BackingFileOptions options = small_pages();
  options.poison = Poison::kOn;
  const auto backing = backing_of(options);
  ASSERT_TRUE(is_ok(backing->commit(kPartBytes, 1)));
  EXPECT_EQ(std::count(bytes(*backing, kPartBytes), bytes(*backing, 2 * kPartBytes),
                       BackingFile::kPoisonByte),
            kPartBytes);
  bytes(*backing, kPartBytes)[9] = 1;
  ASSERT_TRUE(is_ok(backing->commit(0, kGranule)));
  EXPECT_EQ(bytes(*backing, kPartBytes)[9], 1);
  bytes(*backing, kPartBytes)[9] = BackingFile::kPoisonByte;
  EXPECT_EQ(std::count(bytes(*backing, 0), bytes(*backing, kGranule), BackingFile::kPoisonByte),
            kGranule);
}

TEST_F(BackingFileTest, RefillOfAPartialGranuleCommitsNothing) {
  BackingFileOptions options = small_pages();
  options.poison = Poison::kOn;
  const auto backing = backing_of(options);
  ASSERT_TRUE(is_ok(backing->commit(kPartBytes, 1)));
  bytes(*backing, kPartBytes)[9] = 1;
  backing->refill(0, 2 * kGranule);
  EXPECT_EQ(bytes(*backing, kPartBytes)[9], BackingFile::kPoisonByte);
  expect_committed(*backing, kPartBytes);
}

TEST_F(BackingFileTest, PartsGoBackWithTheirGranule) {
  const auto backing = backing_of(small_pages());
  ASSERT_TRUE(is_ok(backing->commit(0, 1)));
  ASSERT_TRUE(is_ok(backing->commit(kGranule, kGranule)));
  ASSERT_TRUE(is_ok(backing->commit(2 * kGranule, 1)));
  bytes(*backing, 0)[0] = 1;
  backing->decommit(0, 2 * kGranule);
  EXPECT_EQ(backing->state_at(0), CommitState::kCold);
  expect_committed(*backing, kPartBytes);
  ASSERT_TRUE(is_ok(backing->commit(0, kGranule)));
  EXPECT_EQ(bytes(*backing, 0)[0], 0);
}

TEST_F(BackingFileTest, WhatFailsLeavesThePartsThatWereThere) {
  const auto backing = backing_of(small_pages());
  ASSERT_TRUE(is_ok(backing->commit(0, 1)));
  bytes(*backing, 0)[3] = 0x33;
  for (const uint64_t size : {kPartBytes + 1, kGranule}) {
    const PlannedFault fault(SystemCall::kCommit, 1, ENOSPC);
    EXPECT_TRUE(fails_with(backing->commit(0, size), ErrorCode::kOutOfMemory));
    EXPECT_TRUE(fault.happened());
    EXPECT_EQ(backing->state_at(0), CommitState::kPartial);
    EXPECT_EQ(bytes(*backing, 0)[3], 0x33);
    expect_committed(*backing, kPartBytes);
  }
  ASSERT_TRUE(is_ok(backing->commit(kGranule, kSize - 2 * kGranule)));
  ASSERT_TRUE(is_ok(backing->commit(kSize - kGranule, kGranule - kPartBytes)));
  // The budget has room for the rest of the first granule, since its part is paid for.
  ASSERT_TRUE(is_ok(backing->commit(0, kGranule)));
  expect_committed(*backing, kSize);
  EXPECT_EQ(bytes(*backing, 0)[3], 0x33);
}

TEST_F(BackingFileTest, ThreadsThatCommitPartsOfAGranuleKeepEachOthersBytes) {
  for (const BackingFileOptions& options : {small_pages(), large_pages()}) {
    const auto backing = backing_of(options);
    run_on_threads(4, [&](int index) {
      for (unsigned part = 0; part < kPartsPerGranule; part += 4) {
        const uint64_t offset = (part + static_cast<unsigned>(index)) * kPartBytes;
        EXPECT_TRUE(is_ok(backing->commit(offset, 100)));
        bytes(*backing, offset)[50] = static_cast<uint8_t>(part + 1);
      }
    });
    for (unsigned part = 0; part < kPartsPerGranule; ++part) {
      EXPECT_EQ(bytes(*backing, part * kPartBytes)[50], part / 4 * 4 + 1) << part;
    }
    expect_committed(*backing, kGranule);
  }
}

}  // namespace
}  // namespace understudy
