// SPDX-License-Identifier: Apache-2.0
//
// A million small allocations alive at once: all apart, all with bytes of their own, freed in
// random order until every figure is as it was.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "rules/allocation_objects.h"
#include "stress/process_status.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

const size_t kCount = kSanitized ? 100'000 : 1'000'000;
constexpr size_t kSpare = 32;
// So few are written to that little host memory is touched.
const size_t kMarkedEvery = kCount / 16;

size_t size_of(size_t index) { return 1 + index * 7919 % 9000; }
size_t charged_for(size_t index) {
  return rounded_up(padded_size(kMalloc, size_of(index)), kNormalPage);
}

std::vector<void*> allocate_all() {
  std::vector<void*> blocks(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    if (aclrtMalloc(&blocks[i], size_of(i), ACL_MEM_MALLOC_NORMAL_ONLY) != ACL_SUCCESS) {
      ADD_FAILURE() << "allocation " << i << ": " << recent_error();
      break;
    }
  }
  return blocks;
}

void free_all(const std::vector<void*>& blocks) {
  for (void* const block : blocks) {
    if (aclrtFree(block) == ACL_SUCCESS) continue;
    ADD_FAILURE() << "free of " << block << ": " << recent_error();
    return;
  }
}

void expect_apart(const std::vector<void*>& blocks) {
  std::vector<std::pair<uint64_t, size_t>> ranges;
  for (size_t i = 0; i < blocks.size(); ++i) ranges.emplace_back(number(blocks[i]), size_of(i));
  std::sort(ranges.begin(), ranges.end());
  size_t overlaps = 0;
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i - 1].first + ranges[i - 1].second + kSpare > ranges[i].first) ++overlaps;
  }
  EXPECT_EQ(overlaps, 0u);
}

std::vector<uint8_t> mark_of(size_t index) {
  return pattern(size_of(index), static_cast<uint8_t>(index / kMarkedEvery));
}

TEST(MillionAllocations, AllLiveAtOnceAndFreedInRandomOrderToTheLastByte) {
  US_FRESH_PROCESS({"UNDERSTUDY_NORMAL_MEMORY", "16G"});
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  const size_t free_before = free_bytes(ACL_HBM_MEM_NORMAL);

  std::vector<void*> blocks = allocate_all();
  ASSERT_FALSE(testing::Test::HasFailure());
  size_t charged = 0;
  for (size_t i = 0; i < kCount; ++i) charged += charged_for(i);
  EXPECT_EQ(free_before - free_bytes(ACL_HBM_MEM_NORMAL), charged);
  expect_apart(blocks);
  for (size_t i = 0; i < kCount; i += kMarkedEvery) copy_in(blocks[i], mark_of(i));
  for (size_t i = 0; i < kCount; i += kMarkedEvery) {
    EXPECT_TRUE(copy_out(blocks[i], size_of(i)) == mark_of(i)) << "allocation " << i;
  }

  std::shuffle(blocks.begin(), blocks.end(), std::mt19937_64(20260101));
  free_all(blocks);
  EXPECT_EQ(memory_figures(), before);
  EXPECT_EQ(aclrtFree(blocks.front()), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(memory_figures(), before);
}

TEST(MillionAllocations, LittleHostMemoryIsNeededForWhatIsNotTouched) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs memory of its own";
  US_FRESH_PROCESS({"UNDERSTUDY_NORMAL_MEMORY", "16G"});
  const DeviceSession session;
  const size_t resident_before = status_bytes("VmRSS");
  const std::vector<void*> blocks = allocate_all();
  // A hundred bytes each, without those of this test.
  EXPECT_LT(status_bytes("VmRSS"), resident_before + kCount * (100 + sizeof(void*)));
  free_all(blocks);
}

TEST(MillionAllocations, FullDeviceHasRoomForExactlyWhatWasFreed) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"}, {"UNDERSTUDY_NORMAL_MEMORY", "64M"});
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  const auto allocate_page = [](void** block) {
    return aclrtMallocAlign32(block, kNormalPage, ACL_MEM_MALLOC_NORMAL_ONLY);
  };
  std::vector<void*> blocks(free_bytes(ACL_HBM_MEM_NORMAL) / kNormalPage);
  for (void*& block : blocks) ASSERT_SUCCESS(allocate_page(&block));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), 0u);
  void* more = nullptr;
  EXPECT_EQ(allocate_page(&more), ACL_ERROR_RT_MEMORY_ALLOCATION);

  // Every third page: no slab becomes empty, and all of them have room again.
  size_t freed = 0;
  for (size_t i = 0; i < blocks.size(); i += 3, ++freed) ASSERT_SUCCESS(aclrtFree(blocks[i]));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), freed * kNormalPage);
  for (size_t i = 0; i < blocks.size(); i += 3) ASSERT_SUCCESS(allocate_page(&blocks[i]));
  EXPECT_EQ(allocate_page(&more), ACL_ERROR_RT_MEMORY_ALLOCATION);
  free_all(blocks);
  EXPECT_EQ(memory_figures(), before);
}

}  // namespace
}  // namespace understudy_test
