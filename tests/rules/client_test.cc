// SPDX-License-Identifier: Apache-2.0
//
// Call sequences of existing clients, as they make them.
// Covers: CLIENT-01, CLIENT-02, CLIENT-03, CLIENT-04, CLIENT-05, CLIENT-07.
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using ClientPattern = DeviceTest;

// An expandable segment as caching allocators build it: a large reservation and blocks of one size
// mapped one after the other.
class ExpandableSegment {
 public:
  ExpandableSegment(size_t reserved, size_t block_size, const aclrtPhysicalMemProp& property)
      : base_(reserve(reserved, 1)), block_size_(block_size), property_(property) {}
  ~ExpandableSegment() {
    while (!blocks_.empty()) shrink();
    EXPECT_SUCCESS(aclrtReleaseMemAddress(base_));
  }
  ExpandableSegment(const ExpandableSegment&) = delete;
  ExpandableSegment& operator=(const ExpandableSegment&) = delete;

  // Appends a block. Out of memory is an answer the client expects.
  aclError grow() {
    aclrtDrvMemHandle block = nullptr;
    const aclError code = aclrtMallocPhysical(&block, block_size_, &property_, 0);
    if (code != ACL_SUCCESS) return code;
    EXPECT_SUCCESS(aclrtMapMem(at(base_, size()), block_size_, 0, block, 0));
    blocks_.push_back(block);
    return ACL_SUCCESS;
  }
  void shrink() {
    EXPECT_SUCCESS(aclrtUnmapMem(at(base_, size() - block_size_)));
    EXPECT_SUCCESS(aclrtFreePhysical(blocks_.back()));
    blocks_.pop_back();
  }
  size_t size() const { return blocks_.size() * block_size_; }
  size_t block_count() const { return blocks_.size(); }
  void* base() const { return base_; }

 private:
  void* const base_;
  const size_t block_size_;
  const aclrtPhysicalMemProp property_;
  std::vector<aclrtDrvMemHandle> blocks_;
};

size_t device_memory() {
  size_t free = 0;
  size_t total = 0;
  EXPECT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  return total;
}

// Fills the device through a segment and gives back what a client would roll back.
void expect_segment_fills_the_device(size_t block_size, aclrtMemAttr attribute) {
  const MemoryFigures before = memory_figures();
  const size_t room = free_bytes(ACL_HBM_MEM_HUGE);
  {
    ExpandableSegment segment(device_memory() / 8 * 9, block_size, block_property(attribute));
    aclError code = ACL_SUCCESS;
    while (segment.size() <= room && (code = segment.grow()) == ACL_SUCCESS) continue;
    EXPECT_EQ(code, ACL_ERROR_RT_MEMORY_ALLOCATION);
    EXPECT_EQ(segment.block_count(), room / block_size);

    const size_t last_border = segment.size() - block_size;
    for (const size_t offset :
         {size_t{0}, block_size - kPage / 2, last_border - kPage / 2, segment.size() - kPage}) {
      SCOPED_TRACE(offset);
      const std::vector<uint8_t> bytes = pattern(kPage, static_cast<uint8_t>(offset / kPage));
      copy_in(at(segment.base(), offset), bytes);
      EXPECT_TRUE(copy_out(at(segment.base(), offset), kPage) == bytes);
    }

    segment.shrink();
    EXPECT_SUCCESS(segment.grow());
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(ClientPattern, CLIENT_01_ProbeBySmallReservation) {
  void* probe = nullptr;
  ASSERT_SUCCESS(aclrtReserveMemAddress(&probe, 512, 0, nullptr, 1));
  EXPECT_NE(probe, nullptr);
  EXPECT_SUCCESS(aclrtReleaseMemAddress(probe));
}

TEST_F(ClientPattern, CLIENT_02_ExpandableSegmentOfHugeBlocksUntilOutOfMemory) {
  expect_segment_fills_the_device(20 * kMiB, ACL_HBM_MEM_HUGE);
}

TEST_F(ClientPattern, CLIENT_03_ExpandableSegmentOfGiantBlocksUntilOutOfMemory) {
  expect_segment_fills_the_device(kGiB, ACL_HBM_MEM_HUGE1G);
}

TEST_F(ClientPattern, CLIENT_04_HostSegmentIsUsedByTheCpuAndCopiedToADevice) {
  constexpr size_t kBlocks = 4;
  const MemoryFigures before = memory_figures();
  {
    ExpandableSegment segment(device_memory() / 8 * 9, kGranule, host_property());
    for (size_t i = 0; i < kBlocks; ++i) ASSERT_SUCCESS(segment.grow());
    EXPECT_EQ(memory_figures(), before) << "host blocks cost no device memory";

    const std::vector<uint8_t> bytes = pattern(segment.size(), 71);
    memcpy(segment.base(), bytes.data(), bytes.size());

    const LiveMapping device_block(segment.size());
    EXPECT_SUCCESS(aclrtMemcpy(device_block.data(), device_block.size(), segment.base(),
                               segment.size(), ACL_MEMCPY_HOST_TO_DEVICE));
    EXPECT_TRUE(copy_out(device_block.data(), device_block.size()) == bytes);

    EXPECT_SUCCESS(aclrtMemset(device_block.data(), device_block.size(), 0x17, kPage));
    EXPECT_SUCCESS(aclrtMemcpy(segment.base(), segment.size(), device_block.data(), kPage,
                               ACL_MEMCPY_DEVICE_TO_HOST));
    const auto* const seen = static_cast<const uint8_t*>(segment.base());
    EXPECT_TRUE(std::vector<uint8_t>(seen, seen + kPage) == std::vector<uint8_t>(kPage, 0x17));
    EXPECT_EQ(memcmp(seen + kPage, bytes.data() + kPage, bytes.size() - kPage), 0);
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(ClientPattern, CLIENT_05_SleepAndWakeAtTheSameAddress) {
  constexpr size_t kSize = 4 * kGranule;
  const MemoryFigures at_start = memory_figures();
  void* const range = reserve(kSize);
  aclrtDrvMemHandle block = create_block(kSize);
  ASSERT_SUCCESS(aclrtMapMem(range, kSize, 0, block, 0));
  const MemoryFigures awake = memory_figures();
  const std::vector<uint8_t> weights = pattern(kSize, 81);
  copy_in(range, weights);

  for (int cycle = 0; cycle < 3; ++cycle) {
    SCOPED_TRACE(cycle);
    const std::vector<uint8_t> backup = copy_out(range, kSize);
    EXPECT_SUCCESS(aclrtUnmapMem(range));
    EXPECT_SUCCESS(aclrtFreePhysical(block));
    EXPECT_EQ(memory_figures(), at_start);

    block = create_block(kSize);
    ASSERT_SUCCESS(aclrtMapMem(range, kSize, 0, block, 0));
    EXPECT_EQ(memory_figures(), awake);
    copy_in(range, backup);
    EXPECT_TRUE(copy_out(range, kSize) == weights);
  }
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  EXPECT_EQ(memory_figures(), at_start);
}

TEST_F(ClientPattern, CLIENT_07_GranularityThenRoundedBlockMappedWhole) {
  const MemoryFigures before = memory_figures();
  aclrtPhysicalMemProp property = block_property();
  size_t granularity = 0;
  ASSERT_SUCCESS(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                                  &granularity));
  ASSERT_GT(granularity, size_t{0});

  for (const size_t wanted : {size_t{1}, granularity - 1, granularity, 5 * kMiB + 12345}) {
    SCOPED_TRACE(wanted);
    const size_t size = (wanted + granularity - 1) / granularity * granularity;
    aclrtDrvMemHandle block = nullptr;
    ASSERT_SUCCESS(aclrtMallocPhysical(&block, size, &property, 0));
    void* range = nullptr;
    ASSERT_SUCCESS(aclrtReserveMemAddress(&range, size, 0, nullptr, 0));
    ASSERT_SUCCESS(aclrtMapMem(range, size, 0, block, 0));

    const std::vector<uint8_t> bytes = pattern(wanted, 91);
    copy_in(range, bytes);
    EXPECT_TRUE(copy_out(range, wanted) == bytes);

    EXPECT_SUCCESS(aclrtUnmapMem(range));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
    EXPECT_SUCCESS(aclrtFreePhysical(block));
    EXPECT_EQ(memory_figures(), before);
  }
}

}  // namespace
}  // namespace understudy_test
