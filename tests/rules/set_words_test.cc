// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemsetD32: its checks, the words it sets, and the memory it takes.
// Covers: GEN-03, GEN-09, POLICY-26, SET-10, SET-11, SET-12, SET-13.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/host_objects.h"
#include "rules/live_mapping.h"

namespace understudy_test {
namespace {

class MemsetWords : public HostMemoryTest {};

constexpr size_t kOverflowingWords[] = {SIZE_MAX / 4 + 1, SIZE_MAX / 4 + 2, SIZE_MAX / 2,
                                        SIZE_MAX - 1, SIZE_MAX};

// A device block with known bytes.
class KnownBlock {
 public:
  explicit KnownBlock(uint8_t seed = 5) : bytes_(pattern(kNormalPage, seed)) {
    copy_in(block_.data(), bytes_);
  }
  void* at(size_t offset) const { return block_.at(offset); }
  void* data() const { return block_.data(); }
  size_t size() const { return block_.size(); }
  void expect_unchanged() const {
    EXPECT_TRUE(copy_out(block_.data(), block_.size()) == bytes_) << "bytes changed";
  }

 private:
  // No padding behind it.
  DeviceBlock block_{kNormalPage, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32};
  std::vector<uint8_t> bytes_;
};

void put_words(std::vector<uint8_t>& bytes, size_t offset, uint32_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) memcpy(&bytes[offset + 4 * i], &value, sizeof value);
}

TEST_F(MemsetWords, SET_10_NoWordsSucceedAndSetNothing) {
  const KnownBlock block;
  const auto succeed = [&] {
    EXPECT_SUCCESS(aclrtMemsetD32(block.data(), block.size(), 1, 0));
    EXPECT_SUCCESS(aclrtMemsetD32(block.data(), 0, 1, 0));
    EXPECT_SUCCESS(aclrtMemsetD32(block.at(1), 3, 1, 0));
    EXPECT_SUCCESS(aclrtMemsetD32(nullptr, 0, 1, 0));
  };
  succeed();
  on_bare_thread(succeed);
  block.expect_unchanged();
}

TEST_F(MemsetWords, SET_13_MappedVirtualMemoryIsAccepted) {
  const LiveMapping mapping;
  copy_in(mapping.data(), pattern(kNormalPage, 3));
  std::vector<uint8_t> expected = pattern(kNormalPage, 3);
  EXPECT_SUCCESS(aclrtMemsetD32(mapping.at(8), kNormalPage, 0xC0FFEE, 5));
  put_words(expected, 8, 0xC0FFEE, 5);
  EXPECT_SUCCESS(aclrtMemsetD32Async(mapping.at(64), kNormalPage, 0xBEEF, 3, nullptr));
  EXPECT_SUCCESS(aclrtSynchronizeStream(nullptr));
  put_words(expected, 64, 0xBEEF, 3);
  EXPECT_EQ(copy_out(mapping.data(), kNormalPage), expected);
}

TEST_F(MemsetWords, SET_11_NullPointerIsRefused) {
  const auto refuse = [] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(nullptr, 16, 1, 4));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(nullptr, 0, 1, 4));
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(MemsetWords, SET_11_AddressMustBeAMultipleOfFour) {
  const KnownBlock block;
  const HostBlock host(64);
  store(host.data(), pattern(64, 6));
  const auto refuse = [&] {
    for (const size_t offset : {1u, 2u, 3u, 5u, 7u}) {
      SCOPED_TRACE(offset);
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(block.at(offset), 16, 1, 4));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(host.at(offset), 16, 1, 4));
    }
  };
  refuse();
  on_bare_thread(refuse);
  block.expect_unchanged();
  EXPECT_TRUE(holds(host.data(), pattern(64, 6)));
}

TEST_F(MemsetWords, SET_11_TooLittleRoomIsRefusedAndSetsNothing) {
  const KnownBlock block;
  const HostBlock host(64);
  store(host.data(), pattern(64, 7));
  const auto refuse = [&] {
    for (const size_t room : {0u, 1u, 4u, 12u, 15u}) {
      SCOPED_TRACE(room);
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(block.data(), room, 1, 4));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(host.data(), room, 1, 4));
    }
  };
  refuse();
  on_bare_thread(refuse);
  block.expect_unchanged();
  EXPECT_TRUE(holds(host.data(), pattern(64, 7)));
}

// Four times the number of words does not fit in a size, so no room is enough.
TEST_F(MemsetWords, SET_11_NumberOfWordsThatOverflowsIsRefused) {
  const KnownBlock block;
  for (const size_t words : kOverflowingWords) {
    for (const size_t room : {size_t{4}, block.size(), SIZE_MAX}) {
      SCOPED_TRACE(testing::Message() << words << " words in " << room << " bytes");
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(block.data(), room, 1, words));
    }
  }
  block.expect_unchanged();
}

TEST_F(MemsetWords, SET_11_MemoryNotFromThisApiIsRefused) {
  std::vector<uint32_t> heap(16, 0x11223344);
  uint32_t on_stack[4] = {1, 2, 3, 4};
  const OwnMemory own(kPage);
  store(own.data(), pattern(64, 8));
  const MemoryFigures before = memory_figures();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(heap.data(), 64, 9, 16));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(on_stack, sizeof on_stack, 9, 4));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(own.data(), 64, 9, 16));
  EXPECT_EQ(memory_figures(), before);
  EXPECT_EQ(heap, std::vector<uint32_t>(16, 0x11223344));
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(on_stack[i], i + 1);
  EXPECT_TRUE(holds(own.data(), pattern(64, 8)));
}

TEST_F(MemsetWords, SET_11_GEN_09_FreedMemoryIsNoLongerFromThisApi) {
  const KnownBlock neighbour;
  DeviceBlock block(kNormalPage);
  void* const freed = block.data();
  block.free();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(freed, 64, 9, 16));
  HostBlock host(kNormalPage);
  void* const freed_host = host.give_up();
  EXPECT_SUCCESS(aclrtFreeHost(freed_host));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(freed_host, 64, 9, 16));
  neighbour.expect_unchanged();
}

// The context is asked for before the memory is looked up.
TEST_F(MemsetWords, SET_11_GEN_03_ThreadWithoutContextIsRefused) {
  const KnownBlock block;
  std::vector<uint32_t> heap(16, 0x11223344);
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMemsetD32(block.data(), 64, 9, 16));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMemsetD32(heap.data(), 64, 9, 16));
  });
  block.expect_unchanged();
  EXPECT_EQ(heap, std::vector<uint32_t>(16, 0x11223344));
}

// Which code it is, is nowhere said.
TEST_F(MemsetWords, SET_11_WordsLeavingTheAllocationAreRefusedAndNoneIsSet) {
  const KnownBlock block;
  const struct {
    size_t offset, words;
  } ranges[] = {{0, block.size() / 4 + 1},
                {block.size() - 4, 2},
                {64, block.size() / 4},
                {0, SIZE_MAX / 4},
                {64, SIZE_MAX / 4}};
  for (const auto& range : ranges) {
    SCOPED_TRACE(testing::Message() << range.words << " words at offset " << range.offset);
    EXPECT_NE(aclrtMemsetD32(block.at(range.offset), SIZE_MAX, 9, range.words), ACL_SUCCESS);
    block.expect_unchanged();
  }
}

TEST_F(MemsetWords, SET_11_POLICY_26_ReadonlyBlockIsRefusedAndKeepsItsBytes) {
  const DeviceBlock readonly(kNormalPage, ACL_MEM_ACCESS_USER_SPACE_READONLY);
  const std::vector<uint8_t> bytes = copy_out(readonly.data(), kNormalPage);
  EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION, aclrtMemsetD32(readonly.data(), 64, 9, 16));
  EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION, aclrtMemsetD32(readonly.at(kNormalPage - 4), 4, 9, 1));
  EXPECT_EQ(copy_out(readonly.data(), kNormalPage), bytes);
}

struct Words {
  uint32_t value;
  size_t offset, words;
};
constexpr size_t kFrame = 4 * kNormalPage;
constexpr Words kWordCases[] = {{0, 0, 1},
                                {1, 4, 1},
                                {0x01020304, 0, 3},
                                {0x80000000, 8, 7},
                                {0xff, 60, 2},
                                {0xfedcba98, 4, 17},
                                {UINT32_MAX, 124, 9},
                                {0x11223344, 4092, 2},
                                {0xa5, 12, 1000},
                                {0xdeadbeef, 0, kFrame / 4},
                                {7, kFrame - 4, 1},
                                {0x10000, 4096, 1025}};

testing::Message name_of(const Words& set) {
  return testing::Message() << set.words << " words of " << set.value << " at offset "
                            << set.offset;
}

TEST_F(MemsetWords, SET_12_ExactlyTheseWordsOfDeviceMemoryAreSet) {
  const DeviceBlock block(kFrame, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
  for (const Words& set : kWordCases) {
    for (const size_t room : {4 * set.words, 4 * set.words + 3, SIZE_MAX}) {
      SCOPED_TRACE(name_of(set) << ", room for " << room << " bytes");
      std::vector<uint8_t> expected = pattern(kFrame, 12);
      copy_in(block.data(), expected);
      EXPECT_SUCCESS(aclrtMemsetD32(block.at(set.offset), room, set.value, set.words));
      put_words(expected, set.offset, set.value, set.words);
      EXPECT_TRUE(copy_out(block.data(), kFrame) == expected);
    }
  }
}

TEST_F(MemsetWords, SET_12_ExactlyTheseWordsOfHostMemoryAreSet) {
  const HostBlock allocated(kFrame);
  const OwnMemory registered(kFrame);
  void* device_address = nullptr;
  ASSERT_SUCCESS(
      aclrtHostRegister(registered.data(), kFrame, ACL_HOST_REGISTER_MAPPED, &device_address));
  for (void* const memory : {allocated.data(), registered.data()}) {
    for (const Words& set : kWordCases) {
      SCOPED_TRACE(name_of(set));
      std::vector<uint8_t> expected = pattern(kFrame, 13);
      store(memory, expected);
      EXPECT_SUCCESS(aclrtMemsetD32(at(memory, set.offset), 4 * set.words, set.value, set.words));
      put_words(expected, set.offset, set.value, set.words);
      EXPECT_TRUE(holds(memory, expected));
    }
  }
  EXPECT_SUCCESS(aclrtHostUnregister(registered.data()));
}

TEST_F(MemsetWords, SET_12_LargeBlocksAreSetOnReturn) {
  const DeviceBlock block(5 * kMiB);
  const LiveMapping mapping(2 * kGranule);
  std::vector<uint8_t> expected(4 * kMiB);
  put_words(expected, 0, 0xCAFEF00D, kMiB);
  for (void* const memory : {block.data(), mapping.data()}) {
    EXPECT_SUCCESS(aclrtMemsetD32(memory, 4 * kMiB, 0xCAFEF00D, kMiB));
    EXPECT_TRUE(copy_out(memory, 4 * kMiB) == expected);
  }
}

// ---- Products ----

class MemsetWordsOnProductWithIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, MemsetWordsOnProductWithIt, testing::Values("a2", "a3", "950"),
                         host_product_name);

TEST_P(MemsetWordsOnProductWithIt, SET_12_WordsAreSet) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  const DeviceBlock block(kNormalPage);
  std::vector<uint8_t> expected = pattern(kNormalPage, 14);
  copy_in(block.data(), expected);
  EXPECT_SUCCESS(aclrtMemsetD32(block.at(8), 400, 0x01020304, 100));
  put_words(expected, 8, 0x01020304, 100);
  EXPECT_TRUE(copy_out(block.data(), kNormalPage) == expected);
}

class MemsetWordsOnProductWithoutIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, MemsetWordsOnProductWithoutIt,
                         testing::Values("inf", "trn", "200i", "200i-rc", "ipv350"),
                         host_product_name);

TEST_P(MemsetWordsOnProductWithoutIt, SET_11_ProductIsAskedAfterTheOuterChecks) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const KnownBlock block;
  constexpr auto kCode = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  EXPECT_FAILS(kCode, aclrtMemsetD32(block.data(), 64, 9, 16));
  on_bare_thread([&] { EXPECT_FAILS(kCode, aclrtMemsetD32(block.data(), 64, 9, 16)); });
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(nullptr, 64, 9, 16));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(block.at(2), 64, 9, 16));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(block.data(), 63, 9, 16));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(block.data(), SIZE_MAX, 9, SIZE_MAX));
  block.expect_unchanged();
}

}  // namespace
}  // namespace understudy_test
