// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemset on mapped device memory, on mapped host blocks and on ordinary host memory.
// Covers: SET-01, SET-02, SET-03, SET-04, SET-05, SET-06.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using Memset = DeviceTest;

TEST_F(Memset, SET_01_ZeroBytesSucceedBeforeAnyOtherCheck) {
  const Bystander bystander;
  EXPECT_SUCCESS(aclrtMemset(nullptr, 0, 1, 0));
  EXPECT_SUCCESS(aclrtMemset(bystander.mapping().data(), 0, 1, 0));
  EXPECT_SUCCESS(aclrtMemset(bystander.mapping().at(kGranule), 16, 1, 0));
  on_bare_thread([] { EXPECT_SUCCESS(aclrtMemset(nullptr, 0, 1, 0)); });
  bystander.expect_unchanged();
}

TEST_F(Memset, SET_02_NullPointerIsRefused) {
  const Bystander bystander;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemset(nullptr, 16, 1, 16));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemset(nullptr, 0, 1, 16));
  bystander.expect_unchanged();
}

TEST_F(Memset, SET_03_TooLittleRoomIsRefusedAndSetsNothing) {
  const Bystander bystander;
  const LiveMapping host_block(kGranule, host_property());
  const std::vector<uint8_t> host_bytes = pattern(kPage, 11);
  memcpy(host_block.data(), host_bytes.data(), kPage);
  const MemoryFigures before = memory_figures();

  for (void* const target : {bystander.mapping().data(), host_block.data()}) {
    for (const size_t room : {size_t{0}, size_t{1}, kPage - 1}) {
      SCOPED_TRACE(room);
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(target, room, 1, kPage));
    }
  }
  EXPECT_EQ(memcmp(host_block.data(), host_bytes.data(), kPage), 0);
  EXPECT_EQ(memory_figures(), before);
  bystander.expect_bytes_unchanged();
}

TEST_F(Memset, SET_03_AbsurdlyLargeRoomIsNoMistake) {
  const LiveMapping block;
  EXPECT_SUCCESS(aclrtMemset(block.data(), SIZE_MAX, 7, 16));
  EXPECT_EQ(copy_out(block.data(), 16), std::vector<uint8_t>(16, 7));
}

TEST_F(Memset, SET_04_LowEightBitsFillExactlyTheFirstCountBytes) {
  constexpr size_t kFrame = 4 * kPage;
  const LiveMapping block;
  const struct {
    int32_t value;
    size_t offset, count;
  } cases[] = {{0, 0, 1},          {1, 1, 1},          {-1, 3, 7},
               {256, 63, 66},      {0x1234, 4095, 2},  {0x7fffff80, 1, 8191},
               {INT32_MIN, 17, 5}, {-256, 0, kPage},   {0x5a, kPage - 1, kPage + 2},
               {0xff, 0, kFrame},  {42, kFrame - 1, 1}};
  for (const auto& set : cases) {
    SCOPED_TRACE(testing::Message() << "value " << set.value << ", " << set.count
                                    << " bytes at offset " << set.offset);
    std::vector<uint8_t> expected = pattern(kFrame, 12);
    copy_in(block.data(), expected);
    EXPECT_SUCCESS(aclrtMemset(block.at(set.offset), kFrame - set.offset, set.value, set.count));
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(set.offset), set.count,
                static_cast<uint8_t>(set.value & 0xff));
    EXPECT_TRUE(copy_out(block.data(), kFrame) == expected);
  }
}

TEST_F(Memset, SET_04_SpansMappingsOfOneReservation) {
  void* const range = reserve(2 * kGranule);
  const aclrtDrvMemHandle blocks[] = {create_block(kGranule), create_block(kGranule)};
  ASSERT_SUCCESS(aclrtMapMem(range, kGranule, 0, blocks[0], 0));
  ASSERT_SUCCESS(aclrtMapMem(at(range, kGranule), kGranule, 0, blocks[1], 0));
  void* const border = at(range, kGranule - kPage);
  std::vector<uint8_t> expected = pattern(2 * kPage, 13);
  copy_in(border, expected);

  EXPECT_SUCCESS(aclrtMemset(at(border, kPage - 5), 10, 9, 10));

  std::fill_n(expected.begin() + kPage - 5, 10, uint8_t{9});
  EXPECT_TRUE(copy_out(border, 2 * kPage) == expected);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_SUCCESS(aclrtUnmapMem(at(range, i * kGranule)));
    EXPECT_SUCCESS(aclrtFreePhysical(blocks[i]));
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_F(Memset, SET_05_DeviceMemoryIsSetOnReturn) {
  for (const aclrtMemAttr attribute : {ACL_HBM_MEM_HUGE, ACL_MEM_NORMAL, ACL_MEM_P2P_HUGE}) {
    SCOPED_TRACE(attribute);
    const LiveMapping block(2 * kGranule, block_property(attribute));
    EXPECT_SUCCESS(aclrtMemset(block.data(), block.size(), 0x33, block.size()));
    EXPECT_TRUE(copy_out(block.data(), block.size()) == std::vector<uint8_t>(block.size(), 0x33));
  }
}

TEST_F(Memset, SET_05_HostBlockIsSetOnReturn) {
  const LiveMapping block(kGranule, host_property());
  EXPECT_SUCCESS(aclrtMemset(block.data(), block.size(), 0x44, block.size()));
  const auto* const bytes = static_cast<const uint8_t*>(block.data());
  EXPECT_TRUE(std::all_of(bytes, bytes + block.size(), [](uint8_t byte) { return byte == 0x44; }));
}

TEST_F(Memset, SET_05_RangeLeavingTheMappingIsRefusedAndSetsNothing) {
  const Bystander bystander;
  const LiveMapping& mapping = bystander.mapping();
  const struct {
    size_t offset, count;
  } ranges[] = {{0, mapping.size() + 1},
                {mapping.size() - 1, 2},
                {mapping.size(), 1},
                {kPage, SIZE_MAX},
                {kPage, SIZE_MAX - number(mapping.at(kPage)) + 2}};
  for (const auto& range : ranges) {
    SCOPED_TRACE(testing::Message() << range.count << " bytes at offset " << range.offset);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemset(mapping.at(range.offset), SIZE_MAX, 1, range.count));
    bystander.expect_unchanged();
  }
}

// Outside the reference's contract, yet clients do it, even on the stack.
TEST_F(Memset, SET_06_OrdinaryHostMemoryIsSetToo) {
  std::vector<uint8_t> heap = pattern(kPage, 14);
  EXPECT_SUCCESS(aclrtMemset(heap.data() + 1, kPage - 1, 0x55, kPage - 2));
  EXPECT_EQ(heap.front(), pattern(kPage, 14).front());
  EXPECT_EQ(heap.back(), pattern(kPage, 14).back());
  EXPECT_TRUE(
      std::all_of(heap.begin() + 1, heap.end() - 1, [](uint8_t byte) { return byte == 0x55; }));

  std::array<uint8_t, 64> stack;
  stack.fill(1);
  EXPECT_SUCCESS(aclrtMemset(stack.data(), stack.size(), 0x166, stack.size()));
  EXPECT_TRUE(std::all_of(stack.begin(), stack.end(), [](uint8_t byte) { return byte == 0x66; }));
}

}  // namespace
}  // namespace understudy_test
