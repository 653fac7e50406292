// SPDX-License-Identifier: Apache-2.0
//
// Large numbers: blocks by the ten thousand with few descriptors and little host memory, very large
// reservations and very many of them.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "rules/live_mapping.h"
#include "stress/process_status.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

constexpr size_t kBlocks = 32768;

// Blocks of one granule, side by side in one reservation.
class BlockRow {
 public:
  BlockRow() : range_(reserve(kBlocks * kGranule)), handles_(kBlocks) {}
  ~BlockRow() { EXPECT_SUCCESS(aclrtReleaseMemAddress(range_)); }
  BlockRow(const BlockRow&) = delete;
  BlockRow& operator=(const BlockRow&) = delete;

  void create_and_map_all() {
    const aclrtPhysicalMemProp property = block_property();
    for (size_t i = 0; i < kBlocks; ++i) {
      ASSERT_SUCCESS(aclrtMallocPhysical(&handles_[i], kGranule, &property, 0)) << "block " << i;
      ASSERT_SUCCESS(aclrtMapMem(place(i), kGranule, 0, handles_[i], 0)) << "block " << i;
    }
  }
  void unmap_and_free_all() {
    for (size_t i = 0; i < kBlocks; ++i) {
      ASSERT_SUCCESS(aclrtUnmapMem(place(i))) << "block " << i;
      ASSERT_SUCCESS(aclrtFreePhysical(handles_[i])) << "block " << i;
    }
  }
  void* place(size_t index) const { return at(range_, index * kGranule); }

 private:
  void* const range_;
  std::vector<aclrtDrvMemHandle> handles_;
};

size_t resident_bytes() { return status_bytes("VmRSS") + status_bytes("RssShmem"); }

TEST(Limits, ManyBlocksNeedFewDescriptorsAndLittleMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "80G"});
  limit_process(RLIMIT_NOFILE, 1024);
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  {
    BlockRow row;
    const size_t resident_before = resident_bytes();
    row.create_and_map_all();
    EXPECT_LT(resident_bytes(), resident_before + 200 * kMiB);

    // One range from end to end: pieces that cross from block to block.
    for (const size_t index : {size_t{1}, kBlocks / 2, kBlocks - 1}) {
      SCOPED_TRACE(index);
      void* const border = at(row.place(index - 1), kGranule - kPage / 2);
      copy_in(border, pattern(kPage, static_cast<uint8_t>(index)));
      EXPECT_TRUE(copy_out(border, kPage) == pattern(kPage, static_cast<uint8_t>(index)));
    }
    row.unmap_and_free_all();
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST(Limits, ManyBlocksCostFewBytesEach) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory would be counted";
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "80G"});
  const DeviceSession session;
  BlockRow row;
  const size_t before = status_bytes("RssAnon");
  row.create_and_map_all();
  const size_t after = status_bytes("RssAnon");
  // Memory grows by pages: one per hundred blocks is not held against the library.
  constexpr size_t kAllowed = kBlocks * 150 + kBlocks / 100 * kPage;
  EXPECT_LE(after, before + kAllowed) << "per block: " << (after - before) / kBlocks << " bytes";
  row.unmap_and_free_all();
}

using ReservationLimits = DeviceTest;

TEST_F(ReservationLimits, FromOneByteToThirtyTwoTiB) {
  const MemoryFigures before = memory_figures();
  size_t free = 0;
  size_t total = 0;
  ASSERT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  const aclrtDrvMemHandle block = create_block(kGranule);
  for (const size_t size : {size_t{1}, total / 8 * 9, 32 * kTiB}) {
    SCOPED_TRACE(size);
    void* const range = reserve(size);
    const size_t granules = (size + kGranule - 1) / kGranule;
    for (const size_t index : {size_t{0}, granules / 2, granules - 1}) {
      SCOPED_TRACE(index);
      void* const place = at(range, index * kGranule);
      ASSERT_SUCCESS(aclrtMapMem(place, kGranule, 0, block, 0));
      copy_in(place, pattern(kPage, static_cast<uint8_t>(index)));
      EXPECT_TRUE(copy_out(place, kPage) == pattern(kPage, static_cast<uint8_t>(index)));
      EXPECT_SUCCESS(aclrtUnmapMem(place));
    }
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  }
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_EQ(memory_figures(), before);
}

// Clients place blocks far apart in a very large reservation.
TEST_F(ReservationLimits, BlocksAtStepsOfOneGiBInThirtyTwoTiB) {
  constexpr size_t kSteps = 1024;
  const MemoryFigures before = memory_figures();
  void* const range = reserve(32 * kTiB);
  std::vector<aclrtDrvMemHandle> blocks;
  for (size_t i = 0; i < kSteps; ++i) {
    blocks.push_back(create_block(kGranule));
    ASSERT_SUCCESS(aclrtMapMem(at(range, i * 32 * kGiB), kGranule, 0, blocks.back(), 0));
  }
  for (const size_t i : {size_t{0}, kSteps / 2, kSteps - 1}) {
    copy_in(at(range, i * 32 * kGiB), pattern(kPage, static_cast<uint8_t>(i)));
    EXPECT_TRUE(copy_out(at(range, i * 32 * kGiB), kPage) ==
                pattern(kPage, static_cast<uint8_t>(i)));
  }
  for (size_t i = 0; i < kSteps; ++i) {
    EXPECT_SUCCESS(aclrtUnmapMem(at(range, i * 32 * kGiB)));
    EXPECT_SUCCESS(aclrtFreePhysical(blocks[i]));
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(ReservationLimits, AHundredThousandAtOnce) {
  constexpr size_t kReservations = 100000;
  const MemoryFigures before = memory_figures();
  std::vector<uint64_t> starts;
  for (size_t i = 0; i < kReservations; ++i) {
    void* range = nullptr;
    ASSERT_SUCCESS(aclrtReserveMemAddress(&range, 1, 0, nullptr, 0)) << "reservation " << i;
    starts.push_back(number(range));
  }
  void* const last = address(starts.back());
  const aclrtDrvMemHandle block = create_block(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(last, kGranule, 0, block, 0));
  copy_in(last, pattern(kPage));
  EXPECT_TRUE(copy_out(last, kPage) == pattern(kPage));
  EXPECT_SUCCESS(aclrtUnmapMem(last));
  EXPECT_SUCCESS(aclrtFreePhysical(block));

  std::sort(starts.begin(), starts.end());
  for (size_t i = 1; i < starts.size(); ++i) {
    ASSERT_GE(starts[i] - starts[i - 1], kGranule) << "two reservations overlap";
  }
  for (const uint64_t start : starts) ASSERT_SUCCESS(aclrtReleaseMemAddress(address(start)));
  EXPECT_EQ(memory_figures(), before);
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserve(32 * kTiB)));
}

}  // namespace
}  // namespace understudy_test
