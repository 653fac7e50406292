// SPDX-License-Identifier: Apache-2.0
//
// What the five device malloc functions hand out: where it lies, how large it is, and that all of
// it can be used.
// Covers: MALLOC-05, MALLOC-07, MALLOC-08, MALLOC-09, MALLOC-10, MALLOC-11, MALLOC-12, MALLOC-13,
// MALLOC-14, MALLOC-15, MALLOC-16, MALLOC-17, MALLOC-18, MALLOC-19.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

using MallocForms = DeviceTest;

class MallocBlocks : public DeviceMallocTest {};
INSTANTIATE_TEST_SUITE_P(, MallocBlocks, each_device_malloc(), name_of_malloc);

// Around the borders of a padding unit, of a normal page, of the 1 MiB limit and of a huge page.
constexpr size_t kSizes[] = {1,
                             31,
                             32,
                             33,
                             64,
                             4064,
                             4065,
                             4096,
                             4097,
                             kMiB - 64,
                             kMiB,
                             kMiB + 1,
                             2 * kMiB - 64,
                             2 * kMiB,
                             2 * kMiB + 1,
                             3 * kMiB,
                             5 * kMiB + 17};

TEST_P(MallocBlocks, MALLOC_05_MemoryLiesOnTheCurrentDevice) {
  const MemoryFigures device_0 = memory_figures();
  ASSERT_SUCCESS(aclrtSetDevice(1));
  const MemoryFigures device_1 = memory_figures();
  {
    const DeviceBlock block(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
    expect_device_memory(block.data(), 1);
    EXPECT_NE(memory_figures(), device_1);
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(memory_figures(), device_0);
    const DeviceBlock other(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
    expect_device_memory(other.data(), 0);
    expect_device_memory(block.data(), 1);
  }
  EXPECT_EQ(memory_figures(), device_0);
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
}

TEST_P(MallocBlocks, MALLOC_05_TheContextDecidesAndItsEndDoesNotFreeTheBlock) {
  aclrtContext context = nullptr;
  ASSERT_SUCCESS(aclrtCreateContext(&context, 1));
  DeviceBlock block(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
  expect_device_memory(block.data(), 1);
  EXPECT_SUCCESS(aclrtDestroyContext(context));
  expect_device_memory(block.data(), 1);
}

TEST_P(MallocBlocks, MALLOC_07_StartIsAMultipleOf64) {
  std::deque<DeviceBlock> blocks;
  for (const aclrtMemMallocPolicy policy :
       {ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY}) {
    for (const size_t size : kSizes) {
      const DeviceBlock& block = blocks.emplace_back(size, policy, GetParam());
      EXPECT_EQ(number(block.data()) % 64, 0u) << size << " bytes at " << block.data();
    }
  }
}

TEST_P(MallocBlocks, MALLOC_08_FreshMemoryCanBeReadWhateverItHolds) {
  const DeviceBlock block(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
  std::vector<uint8_t> bytes(block.size());
  EXPECT_SUCCESS(aclrtMemcpy(bytes.data(), bytes.size(), block.data(), bytes.size(),
                             ACL_MEMCPY_DEVICE_TO_HOST));
}

// The switch for programs that rely on zeros by mistake.
TEST_P(MallocBlocks, MALLOC_08_PoisonShowsThatContentsAreUndefined) {
  US_FRESH_PROCESS({"UNDERSTUDY_POISON", "on"});
  for (const size_t size : {kNormalPage, 4 * kMiB}) {
    SCOPED_TRACE(size);
    const DeviceBlock block(size, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
    EXPECT_NE(copy_out(block.data(), kNormalPage), std::vector<uint8_t>(kNormalPage, 0));
  }
}

TEST_P(MallocBlocks, MALLOC_09_BlockIsUsableAtOnceOnAnyThread) {
  const DeviceBlock block(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
  on_bare_thread([&] {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    copy_in(block.data(), pattern(kNormalPage, 3));
    EXPECT_SUCCESS(aclrtResetDevice(0));
  });
  EXPECT_EQ(copy_out(block.data(), kNormalPage), pattern(kNormalPage, 3));
}

TEST_P(MallocBlocks, MALLOC_09_ThreadsAllocateSideBySide) {
  const MemoryFigures before = memory_figures();
  std::vector<std::thread> threads;
  for (uint8_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([seed, function = GetParam()] {
      ASSERT_SUCCESS(aclrtSetDevice(0));
      for (size_t round = 0; round < 20; ++round) {
        const DeviceBlock small(1000 + round, ACL_MEM_MALLOC_HUGE_FIRST, function);
        const DeviceBlock large(kMiB + 1 + round, ACL_MEM_MALLOC_HUGE_FIRST, function);
        copy_in(small.data(), pattern(small.size(), seed));
        copy_in(large.data(), pattern(kNormalPage, static_cast<uint8_t>(seed + 100)));
        EXPECT_TRUE(copy_out(small.data(), small.size()) == pattern(small.size(), seed));
        EXPECT_TRUE(copy_out(large.data(), kNormalPage) ==
                    pattern(kNormalPage, static_cast<uint8_t>(seed + 100)));
      }
      EXPECT_SUCCESS(aclrtResetDevice(0));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory_figures(), before);
}

TEST_P(MallocBlocks, MALLOC_10_LiveBlocksNeverOverlapAlsoBetweenDevices) {
  struct Span {
    uint64_t start, end;
  };
  std::vector<Span> spans;
  std::deque<DeviceBlock> blocks;
  const LiveMapping mapping;
  spans.push_back({number(mapping.data()), number(mapping.data()) + mapping.size()});
  for (const int32_t device : {0, 1, 2}) {
    ASSERT_SUCCESS(aclrtSetDevice(device));
    for (const aclrtMemMallocPolicy policy : kBasePolicies) {
      if (!knows_policy(GetParam(), policy)) continue;
      const bool giant = policy >= ACL_MEM_MALLOC_HUGE1G_ONLY;
      for (const size_t size : {size_t{1}, size_t{4096}, kMiB + 1, 2 * kMiB}) {
        const DeviceBlock& block = blocks.emplace_back(size, policy, GetParam());
        const uint64_t start = number(block.data());
        spans.push_back({start, start + padded_size(GetParam(), size, giant)});
        copy_in(block.data(), {static_cast<uint8_t>(blocks.size())});
      }
    }
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.start < b.start; });
  for (size_t i = 1; i < spans.size(); ++i) EXPECT_LE(spans[i - 1].end, spans[i].start);
  uint8_t seed = 0;
  for (const DeviceBlock& block : blocks) {
    EXPECT_EQ(copy_out(block.data(), 1), std::vector<uint8_t>{++seed});
  }
  blocks.clear();
  for (const int32_t device : {1, 2}) EXPECT_SUCCESS(aclrtResetDeviceForce(device));
}

TEST_P(MallocBlocks, MALLOC_11_EveryRequestedByteCanBeCopiedAndSet) {
  for (const aclrtMemMallocPolicy policy :
       {ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY}) {
    for (const size_t size : kSizes) {
      SCOPED_TRACE(testing::Message() << size << " bytes, policy " << policy);
      const DeviceBlock block(size, policy, GetParam());
      copy_in(block.data(), pattern(size, 7));
      EXPECT_TRUE(copy_out(block.data(), size) == pattern(size, 7));
      EXPECT_SUCCESS(aclrtMemset(block.data(), size, 0xa5, size));
      EXPECT_TRUE(copy_out(block.data(), size) == std::vector<uint8_t>(size, 0xa5));
      copy_in(block.at(size - 1), {1});
      EXPECT_EQ(copy_out(block.at(size - 1), 1), std::vector<uint8_t>{1});
    }
  }
}

TEST_P(MallocBlocks, MALLOC_11_BothEndsOfAGiantBlockCanBeUsed) {
  const size_t size = kGiB + 12345;
  const DeviceBlock block(size, ACL_MEM_MALLOC_HUGE1G_ONLY, GetParam());
  for (const size_t offset : {size_t{0}, kGiB - 5, size - 10}) {
    copy_in(block.at(offset), pattern(10, 9));
    EXPECT_EQ(copy_out(block.at(offset), 10), pattern(10, 9)) << offset;
  }
}

// The block ends with its padded size: its last byte belongs to it, the next one to nobody.
TEST_P(MallocBlocks, MALLOC_11_MALLOC_12_BlockIsAsLargeAsItsPaddedSizeForOtherCalls) {
  for (const size_t size : {size_t{1}, size_t{32}, size_t{4097}, kMiB + 1, 2 * kMiB}) {
    SCOPED_TRACE(size);
    const DeviceBlock block(size, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
    const size_t whole = padded_size(GetParam(), size);
    for (const size_t offset : {size_t{0}, size - 1, whole - 1}) {
      void* base = nullptr;
      size_t found = 0;
      EXPECT_SUCCESS(aclrtMemGetAddressRange(block.at(offset), &base, &found));
      EXPECT_EQ(base, block.data());
      EXPECT_EQ(found, whole);
    }
    copy_in(block.data(), pattern(size, 5));
    const std::vector<uint8_t> source(whole + 1, 0xee);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(block.data(), whole + 1, source.data(),
                                                         whole + 1, ACL_MEMCPY_HOST_TO_DEVICE));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(block.data(), whole + 1, 1, whole + 1));
    EXPECT_TRUE(copy_out(block.data(), size) == pattern(size, 5));
  }
}

AllocationOutcome expected_huge(const DeviceMalloc& function, size_t size) {
  return on_huge_pages(rounded_up(padded_size(function, size), kHugePage));
}
AllocationOutcome expected_normal(const DeviceMalloc& function, size_t size) {
  return on_normal_pages(rounded_up(padded_size(function, size), kNormalPage));
}
AllocationOutcome expected_giant(const DeviceMalloc& function, size_t size) {
  return on_giant_pages(rounded_up(padded_size(function, size, true), kGiantPage));
}

TEST_P(MallocBlocks, MALLOC_12_PaddedSizeIsRoundedUpToThePagesInUse) {
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_HUGE_ONLY),
              expected_huge(GetParam(), size));
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_NORMAL_ONLY),
              expected_normal(GetParam(), size));
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_HUGE1G_ONLY),
              expected_giant(GetParam(), size));
  }
}

// Written out, so that a slip in the helpers shows.
TEST_F(MallocForms, MALLOC_12_MALLOC_17_SpareBytesOfAclrtMallocMayCostAPage) {
  EXPECT_EQ(outcome_of(kMalloc, 2 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY), on_huge_pages(4 * kMiB));
  EXPECT_EQ(outcome_of(kMallocCached, 2 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY), on_huge_pages(4 * kMiB));
  EXPECT_EQ(outcome_of(kMalloc, 2 * kMiB - 32, ACL_MEM_MALLOC_HUGE_ONLY), on_huge_pages(2 * kMiB));
  EXPECT_EQ(outcome_of(kMalloc, 2 * kMiB - 31, ACL_MEM_MALLOC_HUGE_ONLY), on_huge_pages(4 * kMiB));
  EXPECT_EQ(outcome_of(kMalloc, 4064, ACL_MEM_MALLOC_NORMAL_ONLY), on_normal_pages(4096));
  EXPECT_EQ(outcome_of(kMalloc, 4065, ACL_MEM_MALLOC_NORMAL_ONLY), on_normal_pages(8192));
  EXPECT_EQ(outcome_of(kMalloc, kGiB, ACL_MEM_MALLOC_HUGE1G_ONLY), on_giant_pages(kGiB));
  EXPECT_EQ(outcome_of(kMallocCached, kGiB, ACL_MEM_MALLOC_HUGE1G_ONLY), on_giant_pages(kGiB));
  for (const DeviceMalloc& plain : {kMallocAlign32, kMallocWithCfg, kMallocForTaskScheduler}) {
    EXPECT_EQ(outcome_of(plain, 2 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY), on_huge_pages(2 * kMiB));
    EXPECT_EQ(outcome_of(plain, 2 * kMiB + 1, ACL_MEM_MALLOC_HUGE_ONLY), on_huge_pages(4 * kMiB));
    EXPECT_EQ(outcome_of(plain, 4096, ACL_MEM_MALLOC_NORMAL_ONLY), on_normal_pages(4096));
    EXPECT_EQ(outcome_of(plain, 4097, ACL_MEM_MALLOC_NORMAL_ONLY), on_normal_pages(8192));
    EXPECT_EQ(outcome_of(plain, kGiB, ACL_MEM_MALLOC_HUGE1G_ONLY), on_giant_pages(kGiB));
  }
}

class MallocBlocksOfProduct : public testing::TestWithParam<AllocationProduct> {};
INSTANTIATE_TEST_SUITE_P(, MallocBlocksOfProduct, each_allocation_product(),
                         name_of_allocation_product);

TEST_P(MallocBlocksOfProduct, MALLOC_12_MALLOC_14_PaddingIsThatOfTheProduct) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const size_t spare = GetParam().spare_bytes;
  for (const DeviceMalloc& function : mallocs_of(GetParam())) {
    for (const size_t size : {size_t{4064}, size_t{4096}, 2 * kMiB - 32, 2 * kMiB}) {
      SCOPED_TRACE(testing::Message() << function.name << " of " << size << " bytes");
      const size_t padded = padded_size(function, size, false, spare);
      AllocationOutcome huge = on_huge_pages(rounded_up(padded, kHugePage));
      AllocationOutcome normal = on_normal_pages(rounded_up(padded, kNormalPage));
      if (!GetParam().whole_chapter) huge.page_size = normal.page_size = 0;
      EXPECT_EQ(outcome_of(function, size, ACL_MEM_MALLOC_HUGE_ONLY), huge);
      EXPECT_EQ(outcome_of(function, size, ACL_MEM_MALLOC_NORMAL_ONLY), normal);
    }
  }
}

// Fills segments cut from one block by the rule of the product, then looks at all of them.
void expect_segments_keep_apart(const DeviceMalloc& function, size_t spare_bytes) {
  SCOPED_TRACE(function.name);
  constexpr size_t kLengths[] = {1, 31, 32, 33, 63, 64, 65, 100, 4096, 5000, 70000};
  size_t total = 0;
  for (const size_t length : kLengths) {
    total = rounded_up(total, 64) + rounded_up(length, 32) + spare_bytes;
  }
  const DeviceBlock block(total, ACL_MEM_MALLOC_HUGE_FIRST, function);
  std::vector<void*> starts;
  size_t offset = 0;
  for (const size_t length : kLengths) {
    starts.push_back(block.at(offset));
    EXPECT_EQ(number(starts.back()) % 64, 0u);
    copy_in(starts.back(), pattern(length, static_cast<uint8_t>(starts.size())));
    offset = rounded_up(offset + rounded_up(length, 32) + spare_bytes, 64);
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    EXPECT_TRUE(copy_out(starts[i], kLengths[i]) ==
                pattern(kLengths[i], static_cast<uint8_t>(i + 1)))
        << "segment of " << kLengths[i] << " bytes";
  }
  // Setting the whole of one leaves its neighbours alone.
  EXPECT_SUCCESS(aclrtMemset(starts[5], kLengths[5], 0, kLengths[5]));
  EXPECT_TRUE(copy_out(starts[4], kLengths[4]) == pattern(kLengths[4], 5));
  EXPECT_TRUE(copy_out(starts[6], kLengths[6]) == pattern(kLengths[6], 7));
}

TEST_F(MallocForms, MALLOC_13_SegmentsOfAMallocBlockNeverInterfere) {
  expect_segments_keep_apart(kMalloc, 32);
}

TEST_F(MallocForms, MALLOC_14_SegmentsOfAnAlign32BlockNeverInterfere) {
  expect_segments_keep_apart(kMallocAlign32, 32);
}

TEST_P(MallocBlocksOfProduct, MALLOC_13_MALLOC_14_SegmentsNeverInterfere) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  expect_segments_keep_apart(kMalloc, GetParam().spare_bytes);
  expect_segments_keep_apart(kMallocAlign32, GetParam().spare_bytes);
}

TEST_P(MallocBlocks, MALLOC_15_AnyPolicyValueIsAccepted) {
  const MemoryFigures before = memory_figures();
  for (const int64_t value :
       {int64_t{8}, int64_t{9}, int64_t{15}, int64_t{16}, int64_t{99}, int64_t{0x80},
        int64_t{0x200}, int64_t{0x10000}, int64_t{-1}, int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
    SCOPED_TRACE(value);
    const DeviceBlock block(5000, enum_value<aclrtMemMallocPolicy>(value), GetParam());
    expect_device_memory(block.data(), 0);
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_P(MallocBlocks, MALLOC_16_EitherFreeEndsTheBlock) {
  const MemoryFigures before = memory_figures();
  for (const auto& free_call : {aclrtFree, aclrtFreeWithDevSync}) {
    for (const size_t size : {size_t{100}, 3 * kMiB}) {
      DeviceBlock block(size, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
      void* const data = block.release();
      EXPECT_SUCCESS(free_call(data));
      EXPECT_EQ(memory_figures(), before);
      expect_no_known_memory(data);
    }
  }
}

TEST_F(MallocForms, MALLOC_17_Align32TakesThePagesThatMallocTakes) {
  for (const aclrtMemMallocPolicy policy : kBasePolicies) {
    // 64 bytes short of a page border the spare bytes change nothing.
    for (const size_t size : {kNormalPage - 64, kMiB - 64, 4 * kMiB - 64}) {
      SCOPED_TRACE(testing::Message() << size << " bytes, policy " << policy);
      EXPECT_EQ(outcome_of(kMallocAlign32, size, policy), outcome_of(kMalloc, size, policy));
    }
  }
}

TEST_F(MallocForms, MALLOC_18_CachedBlockShowsWritesWithoutAFlush) {
  const DeviceBlock block(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, kMallocCached);
  const DeviceBlock plain(3 * kMiB);
  copy_in(block.data(), pattern(kNormalPage, 4));
  on_bare_thread([&] {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(copy_out(block.data(), kNormalPage), pattern(kNormalPage, 4));
    EXPECT_SUCCESS(aclrtResetDevice(0));
  });
  EXPECT_SUCCESS(aclrtMemcpy(plain.data(), kNormalPage, block.data(), kNormalPage,
                             ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_EQ(copy_out(plain.data(), kNormalPage), pattern(kNormalPage, 4));
}

TEST_F(MallocForms, MALLOC_18_CachedBlockIsTakenLikeAnyOther) {
  for (const aclrtMemMallocPolicy policy : kBasePolicies) {
    if (!knows_policy(kMallocCached, policy)) continue;
    for (const size_t size : kSizes) {
      SCOPED_TRACE(testing::Message() << size << " bytes, policy " << policy);
      EXPECT_EQ(outcome_of(kMallocCached, size, policy), outcome_of(kMalloc, size, policy));
    }
  }
}

TEST_F(MallocForms, MALLOC_19_UndocumentedPolicyOfCachedDecidesByTheSizeAlone) {
  for (const int64_t value : {3, 4, 5, 7, 8, 99}) {
    SCOPED_TRACE(value);
    const auto policy = enum_value<aclrtMemMallocPolicy>(value);
    // Far from page borders: whether policy 7 has spare bytes here is not the question.
    EXPECT_EQ(outcome_of(kMallocCached, 1000, policy), on_normal_pages(4096));
    EXPECT_EQ(outcome_of(kMallocCached, kMiB + 100, policy), on_normal_pages(kMiB + 4096));
    EXPECT_EQ(outcome_of(kMallocCached, 2 * kMiB - 100, policy), on_normal_pages(2 * kMiB));
    EXPECT_EQ(outcome_of(kMallocCached, 3 * kMiB, policy), on_huge_pages(4 * kMiB));
  }
  EXPECT_EQ(outcome_of(kMallocCached, 2 * kMiB, enum_value<aclrtMemMallocPolicy>(3)),
            on_huge_pages(4 * kMiB));
}

}  // namespace
}  // namespace understudy_test
