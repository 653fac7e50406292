// SPDX-License-Identifier: Apache-2.0
#include "platform/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/scope_exit.h"
#include "base/sizes.h"
#include "platform/host_facts.h"
#include "unit/expect_result.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"

namespace understudy::platform {
namespace {

MemoryFile file_of(uint64_t size) {
  return value_of(MemoryFile::create(FileKind::kShared, "unit-test", size));
}

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

TEST(MemoryFile, HasTheSizeThatWasAskedForAndCostsNothing) {
  const MemoryFile file = file_of(64 * kGiB);
  EXPECT_EQ(file.size(), 64 * kGiB);
  EXPECT_EQ(file.kind(), FileKind::kShared);
  struct stat status = {};
  ASSERT_EQ(fstat(file.descriptor(), &status), 0);
  EXPECT_EQ(static_cast<uint64_t>(status.st_size), 64 * kGiB);
  EXPECT_EQ(bytes_behind(file), 0u);
}

TEST(MemoryFile, IsClosedByExec) {
  const MemoryFile file = file_of(kGranule);
  EXPECT_NE(fcntl(file.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(MemoryFile, ClosesItsDescriptorOnceAlsoAfterAMove) {
  int descriptor = -1;
  {
    MemoryFile first = file_of(kGranule);
    descriptor = first.descriptor();
    const MemoryFile second = std::move(first);
    EXPECT_EQ(second.descriptor(), descriptor);
    EXPECT_TRUE(is_open(descriptor));
  }
  EXPECT_FALSE(is_open(descriptor));
}

// A program that closes all descriptors, and opens files that get their numbers.
TEST(MemoryFile, LeavesAFileAloneThatHasItsNumberByNow) {
  const MemoryFile other = file_of(kGranule);
  const uint8_t written = 0x5A;
  ASSERT_EQ(pwrite(other.descriptor(), &written, 1, 0), 1);
  int number = -1;
  {
    MemoryFile file = file_of(kGranule);
    number = file.descriptor();
    ASSERT_EQ(dup2(other.descriptor(), number), number);
    EXPECT_EQ(file.usable_descriptor(), -1);
    EXPECT_FALSE(file.discard(0, kGranule).ok());
    EXPECT_FALSE(file.allocate(0, kGranule).ok());
  }
  EXPECT_TRUE(is_open(number));
  uint8_t read = 0;
  EXPECT_EQ(pread(number, &read, 1, 0), 1);
  EXPECT_EQ(read, written);
  close(number);
}

TEST(MemoryFile, AllocateReallyGetsMemoryAndDiscardReallyGivesItBack) {
  MemoryFile file = file_of(8 * kGranule);
  ASSERT_TRUE(is_ok(file.allocate(kGranule, 2 * kGranule)));
  EXPECT_EQ(bytes_behind(file), 2 * kGranule);
  // Pages that are there already are not made twice.
  ASSERT_TRUE(is_ok(file.allocate(2 * kGranule, 2 * kGranule)));
  EXPECT_EQ(bytes_behind(file), 3 * kGranule);
  ASSERT_TRUE(is_ok(file.discard(2 * kGranule, kGranule)));
  EXPECT_EQ(bytes_behind(file), 2 * kGranule);
  ASSERT_TRUE(is_ok(file.discard(0, 8 * kGranule)));
  EXPECT_EQ(bytes_behind(file), 0u);
  EXPECT_EQ(file.size(), 8 * kGranule);
}

TEST(MemoryFile, DiscardedBytesReadAsZeros) {
  MemoryFile file = file_of(kGranule);
  ASSERT_TRUE(is_ok(file.allocate(0, kGranule)));
  const uint8_t written = 0x5A;
  ASSERT_EQ(pwrite(file.descriptor(), &written, 1, 12345), 1);
  ASSERT_TRUE(is_ok(file.discard(0, kGranule)));
  uint8_t read = 0xFF;
  ASSERT_EQ(pread(file.descriptor(), &read, 1, 12345), 1);
  EXPECT_EQ(read, 0);
}

TEST(MemoryFile, SizePastTheFileSizeLimitIsAnErrorAndNotASignal) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  // Only the soft limit, so that it can be put back.
  const rlimit small = {kGiB, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  ScopeExit put_back([&] { setrlimit(RLIMIT_FSIZE, &before); });

  const Result<MemoryFile> refused = MemoryFile::create(FileKind::kShared, "unit-test", 2 * kGiB);
  ASSERT_TRUE(fails_with(refused, ErrorCode::kOutOfResources));
  EXPECT_EQ(refused.error().system_number(), EFBIG);
  EXPECT_TRUE(is_ok(MemoryFile::create(FileKind::kShared, "unit-test", kGiB)));
}

TEST(MemoryFile, FailedCreationLeavesNoDescriptorBehind) {
  const int next = open("/dev/null", O_RDONLY);
  close(next);
  for (const SystemCall call : {SystemCall::kCreateFile, SystemCall::kResizeFile}) {
    const PlannedFault fault(call, 1, EMFILE);
    const Result<MemoryFile> refused = MemoryFile::create(FileKind::kShared, "unit-test", kGranule);
    ASSERT_TRUE(fails_with(refused, ErrorCode::kOutOfResources));
    EXPECT_EQ(refused.error().system_number(), EMFILE);
    EXPECT_FALSE(is_open(next));
  }
}

TEST(MemoryFile, PlannedFaultsOfAllocateAndDiscardChangeNothing) {
  MemoryFile file = file_of(2 * kGranule);
  {
    const PlannedFault fault(SystemCall::kCommit, 1, ENOSPC);
    const Result<void> refused = file.allocate(0, kGranule);
    ASSERT_TRUE(fails_with(refused, ErrorCode::kOutOfMemory));
    EXPECT_EQ(refused.error().system_number(), ENOSPC);
    EXPECT_EQ(bytes_behind(file), 0u);
  }
  ASSERT_TRUE(is_ok(file.allocate(0, kGranule)));
  {
    const PlannedFault fault(SystemCall::kDiscard, 1, EPERM);
    EXPECT_TRUE(fails_with(file.discard(0, kGranule), ErrorCode::kOutOfResources));
    EXPECT_EQ(bytes_behind(file), kGranule);
  }
}

TEST(MemoryFile, EmptyHugetlbPoolIsOutOfMemory) {
  if (has_hugetlb_pool(kHugePage)) GTEST_SKIP() << "this machine has a pool of 2 MiB pages";
  Result<MemoryFile> file = MemoryFile::create(FileKind::kHugetlb2M, "unit-test", kHugePage);
  if (!file.ok()) GTEST_SKIP() << "no hugetlb here: " << file.error().text();
  EXPECT_TRUE(fails_with(file.value().set_aside(0, kHugePage), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(fails_with(file.value().allocate(0, kHugePage), ErrorCode::kOutOfMemory));
}

TEST(MemoryFile, PagesSetAsideAreThereForAllocate) {
  if (!has_hugetlb_pool(kHugePage)) GTEST_SKIP() << "this machine has no pool of 2 MiB pages";
  MemoryFile file = value_of(MemoryFile::create(FileKind::kHugetlb2M, "unit-test", 2 * kHugePage));
  if (const Result<void> set = file.set_aside(0, kHugePage); !set.ok()) {
    GTEST_SKIP() << "the pool is used up: " << set.error().text();
  }
  EXPECT_TRUE(is_ok(file.set_aside(0, kHugePage)));
  EXPECT_TRUE(is_ok(file.allocate(0, kHugePage)));
}

}  // namespace
}  // namespace understudy::platform
