// SPDX-License-Identifier: Apache-2.0
#include "platform/address_window.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/sizes.h"
#include "platform/memory_map.h"
#include "platform/system_number.h"
#include "unit/expect_result.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"

namespace understudy::platform {
namespace {

// An occupied range that is given back.
class Window {
 public:
  explicit Window(uint64_t size, uint64_t alignment = kNormalPage)
      : range(value_of(occupy_anywhere(size, alignment))) {}
  ~Window() { vacate(range); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  uint8_t* bytes() const { return static_cast<uint8_t*>(to_pointer(range.base)); }

  const VirtualRange range;
};

MemoryFile file_of(uint64_t size) {
  return value_of(MemoryFile::create(FileKind::kShared, "unit-test", size));
}

uint64_t bytes_mapped() {
  uint64_t bytes = 0;
  for (const MapEntry& entry : memory_map()) bytes += entry.range.size;
  return bytes;
}

TEST(AddressWindow, OccupyAnywhereKeepsTheAlignmentAndCutsTheOverhang) {
  for (const uint64_t alignment : {kNormalPage, kHugePage, kGiantPage}) {
    const uint64_t before = bytes_mapped();
    const Window window(3 * kMiB, alignment);
    EXPECT_TRUE(is_aligned(window.range.base, alignment));
    EXPECT_EQ(window.range.size, 3 * kMiB);
    EXPECT_FALSE(cpu_can_read(window.range.base));
    // What was taken for the alignment is given back; the rest is what this look itself takes.
    EXPECT_LT(bytes_mapped() - before, window.range.size + 16 * kMiB) << alignment;
  }
}

TEST(AddressWindow, OccupyAnywhereRefusesWhatNoAddressSpaceHas) {
  EXPECT_TRUE(fails_with(occupy_anywhere(UINT64_MAX, kHugePage), ErrorCode::kOutOfResources));
  EXPECT_TRUE(fails_with(occupy_anywhere(256 * kTiB, kHugePage), ErrorCode::kOutOfResources));
}

TEST(AddressWindow, OccupyRefusesARangeInWhichAnythingLives) {
  const Window window(4 * kNormalPage);
  for (const VirtualRange range :
       {window.range, VirtualRange{window.range.base, kNormalPage},
        VirtualRange{window.range.base + 3 * kNormalPage, kNormalPage}}) {
    const Result<void> refused = occupy(range);
    ASSERT_FALSE(refused.ok());
    EXPECT_TRUE(means_occupied(refused.error()));
    EXPECT_TRUE(is_mapped(window.range.base));
  }
}

TEST(AddressWindow, OccupyTakesExactlyTheRangeThatIsFree) {
  // The outer pages stay, so that nobody else moves into the middle meanwhile by merging with it.
  const Window window(3 * kNormalPage);
  const VirtualRange middle{window.range.base + kNormalPage, kNormalPage};
  vacate(middle);
  EXPECT_FALSE(is_mapped(middle.base));
  ASSERT_TRUE(is_ok(occupy(middle)));
  EXPECT_TRUE(is_mapped(middle.base));
}

TEST(AddressWindow, OnlyEexistMeansOccupied) {
  EXPECT_TRUE(means_occupied(Error::system(ErrorCode::kInvalidParam, EEXIST, "x")));
  EXPECT_FALSE(means_occupied(Error::system(ErrorCode::kInvalidParam, ENOMEM, "x")));
  EXPECT_FALSE(means_occupied(Error::format(ErrorCode::kInvalidParam, "x")));
  EXPECT_TRUE(means_impossible(Error::system(ErrorCode::kInvalidParam, EINVAL, "x")));
  EXPECT_FALSE(means_impossible(Error::system(ErrorCode::kInvalidParam, ENOMEM, "x")));
}

TEST(AddressWindow, PlacedFileShowsItsBytesFromTheOffsetOn) {
  const MemoryFile file = file_of(4 * kNormalPage);
  const uint8_t written = 0x77;
  ASSERT_EQ(pwrite(file.descriptor(), &written, 1, 2 * kNormalPage + 5), 1);

  const Window window(2 * kNormalPage);
  ASSERT_TRUE(is_ok(place_file(window.range, file, 2 * kNormalPage, CpuAccess::kReadWrite)));
  EXPECT_EQ(window.bytes()[5], 0x77);
  window.bytes()[6] = 0x78;
  uint8_t read = 0;
  ASSERT_EQ(pread(file.descriptor(), &read, 1, 2 * kNormalPage + 6), 1);
  EXPECT_EQ(read, 0x78);
}

TEST(AddressWindow, CoverTakesTheFileAwayAndKeepsTheAddresses) {
  const MemoryFile file = file_of(kNormalPage);
  const Window window(kNormalPage);
  ASSERT_TRUE(is_ok(place_file(window.range, file, 0, CpuAccess::kReadWrite)));
  ASSERT_TRUE(cpu_can_read(window.range.base));
  ASSERT_TRUE(is_ok(cover(window.range)));
  EXPECT_FALSE(cpu_can_read(window.range.base));
  EXPECT_TRUE(is_mapped(window.range.base));
  // The bytes live on in the file.
  ASSERT_TRUE(is_ok(place_file(window.range, file, 0, CpuAccess::kReadWrite)));
  EXPECT_TRUE(cpu_can_read(window.range.base));
}

TEST(AddressWindow, AccessChangesWithoutLosingTheFile) {
  const MemoryFile file = file_of(kNormalPage);
  const Window window(kNormalPage);
  ASSERT_TRUE(is_ok(place_file(window.range, file, 0, CpuAccess::kReadWrite)));
  window.bytes()[0] = 9;
  ASSERT_TRUE(is_ok(change_access(window.range, CpuAccess::kNone)));
  EXPECT_FALSE(cpu_can_read(window.range.base));
  ASSERT_TRUE(is_ok(change_access(window.range, CpuAccess::kReadWrite)));
  EXPECT_EQ(window.bytes()[0], 9);
}

TEST(AddressWindow, WindowsAreNotDumpedAndNotInherited) {
  const MemoryFile file = file_of(kNormalPage);
  const Window window(kNormalPage);
  const std::optional<std::string> occupied = kernel_flags_at(window.range.base);
  if (!occupied) GTEST_SKIP() << "this kernel shows no VmFlags in /proc/self/smaps";
  EXPECT_NE(occupied->find(" dc "), std::string::npos) << *occupied;

  ASSERT_TRUE(is_ok(place_file(window.range, file, 0, CpuAccess::kReadWrite)));
  const std::optional<std::string> placed = kernel_flags_at(window.range.base);
  ASSERT_TRUE(placed);
  EXPECT_NE(placed->find(" dd "), std::string::npos) << *placed;
  EXPECT_NE(placed->find(" dc "), std::string::npos) << *placed;

  ASSERT_TRUE(is_ok(cover(window.range)));
  const std::optional<std::string> covered = kernel_flags_at(window.range.base);
  ASSERT_TRUE(covered);
  EXPECT_NE(covered->find(" dc "), std::string::npos) << *covered;
}

TEST(AddressWindow, ForkChildHasNeitherWindowsNorOccupiedRanges) {
  const MemoryFile file = file_of(kNormalPage);
  const Window shown(kNormalPage);
  const Window occupied(kNormalPage);
  ASSERT_TRUE(is_ok(place_file(shown.range, file, 0, CpuAccess::kReadWrite)));
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    _exit((is_mapped(shown.range.base) ? 1 : 0) | (is_mapped(occupied.range.base) ? 2 : 0));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(AddressWindow, WholeFileIsMappedAtTheAlignment) {
  const MemoryFile file = file_of(3 * kHugePage);
  const VirtualRange range = value_of(map_whole_file(file, kHugePage));
  EXPECT_TRUE(is_aligned(range.base, kHugePage));
  EXPECT_EQ(range.size, 3 * kHugePage);
  const uint8_t written = 0x11;
  ASSERT_EQ(pwrite(file.descriptor(), &written, 1, 2 * kHugePage), 1);
  EXPECT_EQ(static_cast<const uint8_t*>(to_pointer(range.base))[2 * kHugePage], 0x11);
  vacate(range);
  EXPECT_FALSE(is_mapped(range.base));
}

TEST(AddressWindow, FileThatCannotBePlacedLeavesNoRangeOccupied) {
  const MemoryFile file = file_of(kHugePage);
  // Where the next whole file goes: the kernel answers the same question the same way.
  const VirtualRange next = value_of(map_whole_file(file, kHugePage));
  vacate(next);
  const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
  EXPECT_TRUE(fails_with(map_whole_file(file, kHugePage), ErrorCode::kOutOfResources));
  EXPECT_FALSE(is_mapped(next.base));
}

TEST(AddressWindow, PlannedFaultsLeaveEverythingAsItWas) {
  const MemoryFile file = file_of(kNormalPage);
  const Window window(kNormalPage);
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    const Result<void> refused = place_file(window.range, file, 0, CpuAccess::kReadWrite);
    ASSERT_TRUE(fails_with(refused, ErrorCode::kOutOfResources));
    EXPECT_EQ(refused.error().system_number(), ENOMEM);
    EXPECT_FALSE(cpu_can_read(window.range.base));
  }
  ASSERT_TRUE(is_ok(place_file(window.range, file, 0, CpuAccess::kReadWrite)));
  {
    const PlannedFault fault(SystemCall::kUnmap, 1, ENOMEM);
    EXPECT_TRUE(fails_with(cover(window.range), ErrorCode::kOutOfResources));
    EXPECT_TRUE(cpu_can_read(window.range.base));
  }
  const PlannedFault fault(SystemCall::kReserveAddresses, 1, EEXIST);
  const Result<VirtualRange> refused = occupy_anywhere(kNormalPage, kNormalPage);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(means_occupied(refused.error()));
}

TEST(AddressWindow, FirstPageOfAllIsNotMapped) { EXPECT_FALSE(is_mapped(8)); }

TEST(AddressWindow, NumaNodePastAnyMachineIsRefused) {
  const Window window(kNormalPage);
  EXPECT_TRUE(fails_with(bind_to_numa_node(window.range, 1024), ErrorCode::kInvalidParam));
  EXPECT_FALSE(bind_to_numa_node(window.range, 1000).ok());
}

}  // namespace
}  // namespace understudy::platform
