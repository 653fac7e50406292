// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemsetAsync and aclrtMemsetD32Async: their checks, device memory in stream order, host
// memory at once.
// Covers: GEN-03, GEN-04, GEN-05, GEN-06, HOST-05, POLICY-26, SET-01, SET-02, SET-03, SET-04,
// SET-07, SET-08, SET-09, SET-10, SET-11, SET-12.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

using MemsetAsync = HostMemoryTest;
using MemsetWordsAsync = HostMemoryTest;

constexpr size_t kSize = kNormalPage;

// Device memory without padding behind it, page-locked memory and a heap, with known bytes.
class Targets {
 public:
  Targets() {
    copy_in(device_.data(), pattern(kSize, 40));
    store(locked_.data(), pattern(kSize, 41));
  }
  void* device(size_t offset = 0) const { return device_.at(offset); }
  void* locked(size_t offset = 0) const { return locked_.at(offset); }
  void* heap(size_t offset = 0) { return heap_.data() + offset; }
  void expect_device_unchanged() const {
    EXPECT_TRUE(copy_out(device_.data(), kSize) == pattern(kSize, 40));
  }
  void expect_unchanged() const {
    expect_device_unchanged();
    EXPECT_TRUE(holds(locked_.data(), pattern(kSize, 41)));
    EXPECT_TRUE(heap_ == pattern(kSize, 42));
  }

 private:
  DeviceBlock device_{kSize, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32};
  HostBlock locked_{kSize};
  std::vector<uint8_t> heap_ = pattern(kSize, 42);
};

void put_words(std::vector<uint8_t>& bytes, size_t offset, uint32_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) memcpy(&bytes[offset + 4 * i], &value, sizeof value);
}

std::vector<uint8_t> words(uint32_t value, size_t count) {
  std::vector<uint8_t> bytes(4 * count);
  put_words(bytes, 0, value, count);
  return bytes;
}

// ---- aclrtMemsetAsync ----

TEST_F(MemsetAsync, SET_07_SET_01_ZeroBytesSucceedBeforeAnyOtherCheck) {
  Targets targets;
  const TestStream stream;
  const BadStreams bad;
  const auto succeed = [&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      EXPECT_SUCCESS(aclrtMemsetAsync(nullptr, 0, 1, 0, any));
      EXPECT_SUCCESS(aclrtMemsetAsync(targets.device(), 0, 1, 0, any));
      EXPECT_SUCCESS(aclrtMemsetAsync(targets.locked(), kSize, 1, 0, any));
    }
  };
  succeed();
  on_bare_thread(succeed);
  EXPECT_SUCCESS(finish(stream.get()));
  targets.expect_unchanged();
}

TEST_F(MemsetAsync, SET_07_SET_02_NullPointerIsRefusedFirst) {
  const TestStream stream;
  const BadStreams bad;
  const auto refuse = [&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetAsync(nullptr, 16, 1, 16, any));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetAsync(nullptr, 0, 1, 16, any));
    }
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(MemsetAsync, SET_07_SET_03_TooLittleRoomIsRefusedAndSetsNothing) {
  Targets targets;
  const TestStream stream;
  for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}}) {
    for (void* const target : {targets.device(), targets.locked(), targets.heap()}) {
      for (const size_t room : {size_t{0}, size_t{1}, kSize - 1}) {
        EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemsetAsync(target, room, 1, kSize, any));
      }
    }
    EXPECT_SUCCESS(finish(any));
  }
  targets.expect_unchanged();
}

TEST_F(MemsetAsync, SET_07_SET_04_LowEightBitsFillExactlyTheFirstCountBytes) {
  constexpr size_t kFrame = 4 * kPage;
  const DeviceBlock block(kFrame, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
  const LiveMapping mapping;
  const TestStream stream;
  const struct {
    int32_t value;
    size_t offset, count;
  } cases[] = {{0, 0, 1},          {-1, 3, 7},       {256, 63, 66},         {0x1234, 4095, 2},
               {INT32_MIN, 1, 5},  {-256, 0, kPage}, {0x7fffff80, 1, 8191}, {0xff, 0, kFrame},
               {42, kFrame - 1, 1}};
  for (void* const target : {block.data(), mapping.at(kMiB)}) {
    for (const auto& set : cases) {
      for (const size_t room : {set.count, SIZE_MAX}) {
        SCOPED_TRACE(testing::Message() << "value " << set.value << ", " << set.count
                                        << " bytes at offset " << set.offset);
        std::vector<uint8_t> expected = pattern(kFrame, 43);
        copy_in(target, expected);
        EXPECT_SUCCESS(
            aclrtMemsetAsync(at(target, set.offset), room, set.value, set.count, stream.get()));
        EXPECT_SUCCESS(finish(stream.get()));
        std::fill_n(expected.begin() + static_cast<ptrdiff_t>(set.offset), set.count,
                    static_cast<uint8_t>(set.value & 0xff));
        EXPECT_TRUE(copy_out(target, kFrame) == expected);
      }
    }
  }
}

TEST_F(MemsetAsync, SET_07_GEN_03_GEN_05_GEN_06_OtherStreamsAreRefused) {
  Targets targets;
  const TestStream stream;
  BadStreams bad;
  for (void* const target : {targets.device(), targets.locked()}) {
    bad.expect_refused("aclrtMemsetAsync", [&](aclrtStream other) {
      return aclrtMemsetAsync(target, kSize, 1, kSize, other);
    });
    on_bare_thread([&] {
      for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
        EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMemsetAsync(target, kSize, 1, kSize, any));
      }
    });
  }
  EXPECT_SUCCESS(finish(stream.get()));
  targets.expect_unchanged();
}

TEST_F(MemsetAsync, SET_07_SET_08_GEN_04_DeviceMemoryIsSetInStreamOrder) {
  const Targets targets;
  const HostBlock seen(2 * kSize);
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    copy_in(targets.device(), pattern(kSize, 40));
    Gate gate(stream);
    EXPECT_SUCCESS(
        aclrtMemcpyAsync(seen.data(), kSize, targets.device(), kSize, ACL_MEMCPY_DEFAULT, stream));
    EXPECT_SUCCESS(while_held(
        gate, [&] { return aclrtMemsetAsync(targets.device(), kSize, 0x31, kSize, stream); }));
    EXPECT_SUCCESS(aclrtMemcpyAsync(seen.at(kSize), kSize, targets.device(), kSize,
                                    ACL_MEMCPY_DEFAULT, stream));
    EXPECT_SUCCESS(aclrtMemsetAsync(targets.device(), kSize, 0x32, kSize, stream));
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
    targets.expect_device_unchanged();
    gate.open();
    EXPECT_SUCCESS(finish(stream));
    EXPECT_TRUE(holds(seen.data(), pattern(kSize, 40)));
    EXPECT_TRUE(holds(seen.at(kSize), std::vector<uint8_t>(kSize, 0x31)));
    EXPECT_TRUE(copy_out(targets.device(), kSize) == std::vector<uint8_t>(kSize, 0x32));
  }
}

TEST_F(MemsetAsync, SET_09_HostMemoryIsSetAtOnceAheadOfQueuedWork) {
  Spots spots;
  const DeviceBlock device(Spots::kSize);
  copy_in(device.data(), pattern(Spots::kSize, 44));
  const TestStream stream;
  for (const Spot& spot : spots.all()) {
    if (spot.side == Side::kDevice) continue;
    SCOPED_TRACE(spot.name);
    spot.put(pattern(Spots::kSize, 45));
    Gate gate(stream.get());
    if (spot.side == Side::kHost) {
      EXPECT_SUCCESS(aclrtMemcpyAsync(spot.start, Spots::kSize, device.data(), 8,
                                      ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
    }
    EXPECT_SUCCESS(while_held(gate, [&] {
      return aclrtMemsetAsync(spot.start, Spots::kSize, 0x133, Spots::kSize - 1, stream.get());
    }));
    std::vector<uint8_t> expected(Spots::kSize, 0x33);
    expected.back() = pattern(Spots::kSize, 45).back();
    EXPECT_TRUE(spot.has(expected));
    gate.open();
    EXPECT_SUCCESS(finish(stream.get()));
    // The copy that was queued earlier comes later.
    if (spot.side == Side::kHost) {
      const std::vector<uint8_t> bytes = pattern(Spots::kSize, 44);
      std::copy_n(bytes.begin(), 8, expected.begin());
    }
    EXPECT_TRUE(spot.has(expected));
  }
}

TEST_F(MemsetAsync, SET_07_SET_08_RangeThatLeavesItsAllocationFailsOnTheStream) {
  const Targets targets;
  const DeviceBlock after(kSize);
  const TestStream stream;
  const struct { size_t offset, count; } ranges[] = {{0, kSize + 1}, {kSize - 1, 2}, {64, kSize}};
  for (const auto& range : ranges) {
    SCOPED_TRACE(testing::Message() << range.count << " bytes at offset " << range.offset);
    copy_in(after.data(), pattern(kSize, 46));
    void* const start = targets.device(range.offset);
    EXPECT_SUCCESS(aclrtMemsetAsync(start, SIZE_MAX, 1, range.count, stream.get()));
    EXPECT_SUCCESS(aclrtMemsetAsync(after.data(), kSize, 2, kSize, stream.get()));
    expect_task_failed(stream.get(), start);
    targets.expect_device_unchanged();
    EXPECT_TRUE(copy_out(after.data(), kSize) == std::vector<uint8_t>(kSize, 2));
  }
  for (const size_t count : {SIZE_MAX, size_t{0} - number(targets.device())}) {
    expect_fails_sooner_or_later(
        aclrtMemsetAsync(targets.device(), SIZE_MAX, 1, count, stream.get()), stream.get());
    targets.expect_device_unchanged();
  }
}

TEST_F(MemsetAsync, SET_08_POLICY_26_ReadonlyBlockFailsOnTheStreamAndKeepsItsBytes) {
  const DeviceBlock readonly(kSize, ACL_MEM_ACCESS_USER_SPACE_READONLY);
  const std::vector<uint8_t> bytes = copy_out(readonly.data(), kSize);
  const TestStream stream;
  EXPECT_SUCCESS(aclrtMemsetAsync(readonly.data(), kSize, 0x5b, kSize, stream.get()));
  expect_task_failed(stream.get(), readonly.data());
  EXPECT_TRUE(copy_out(readonly.data(), kSize) == bytes);
}

// ---- aclrtMemsetD32Async ----

TEST_F(MemsetWordsAsync, SET_10_NoWordsSucceedAndSetNothing) {
  const Targets targets;
  const TestStream stream;
  const BadStreams bad;
  const auto succeed = [&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      EXPECT_SUCCESS(aclrtMemsetD32Async(targets.device(), kSize, 1, 0, any));
      EXPECT_SUCCESS(aclrtMemsetD32Async(targets.device(1), 0, 1, 0, any));
      EXPECT_SUCCESS(aclrtMemsetD32Async(nullptr, 0, 1, 0, any));
    }
  };
  succeed();
  on_bare_thread(succeed);
  EXPECT_SUCCESS(finish(stream.get()));
  targets.expect_unchanged();
}

TEST_F(MemsetWordsAsync, SET_11_WrongArgumentsAreRefusedFirst) {
  const Targets targets;
  const TestStream stream;
  const BadStreams bad;
  constexpr auto kCode = ACL_ERROR_INVALID_PARAM;
  const auto refuse = [&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      EXPECT_FAILS(kCode, aclrtMemsetD32Async(nullptr, 16, 1, 4, any));
      for (const size_t offset : {1u, 2u, 3u, 5u}) {
        EXPECT_FAILS(kCode, aclrtMemsetD32Async(targets.device(offset), 16, 1, 4, any));
        EXPECT_FAILS(kCode, aclrtMemsetD32Async(targets.locked(offset), 16, 1, 4, any));
      }
      for (const size_t room : {0u, 1u, 12u, 15u}) {
        EXPECT_FAILS(kCode, aclrtMemsetD32Async(targets.device(), room, 1, 4, any));
        EXPECT_FAILS(kCode, aclrtMemsetD32Async(targets.locked(), room, 1, 4, any));
      }
      for (const size_t count : {SIZE_MAX / 4 + 1, SIZE_MAX / 2, SIZE_MAX}) {
        for (const size_t room : {size_t{4}, kSize, SIZE_MAX}) {
          EXPECT_FAILS(kCode, aclrtMemsetD32Async(targets.device(), room, 1, count, any));
        }
      }
    }
  };
  refuse();
  on_bare_thread(refuse);
  EXPECT_SUCCESS(finish(stream.get()));
  targets.expect_unchanged();
}

TEST_F(MemsetWordsAsync, SET_11_MemoryNotFromThisApiIsRefused) {
  Targets targets;
  uint32_t on_stack[4] = {1, 2, 3, 4};
  DeviceBlock block(kSize);
  void* const freed = block.data();
  block.free();
  const TestStream stream;
  for (void* const wrong : {targets.heap(), static_cast<void*>(on_stack), freed}) {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32Async(wrong, 16, 9, 4, stream.get()));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(on_stack[i], i + 1);
  targets.expect_unchanged();
}

TEST_F(MemsetWordsAsync, SET_11_GEN_03_GEN_05_GEN_06_OtherStreamsAreRefused) {
  Targets targets;
  const TestStream stream;
  BadStreams bad;
  for (void* const target : {targets.device(), targets.locked()}) {
    bad.expect_refused("aclrtMemsetD32Async", [&](aclrtStream other) {
      return aclrtMemsetD32Async(target, 64, 1, 16, other);
    });
    on_bare_thread([&] {
      EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMemsetD32Async(target, 64, 1, 16, stream.get()));
    });
  }
  EXPECT_SUCCESS(finish(stream.get()));
  targets.expect_unchanged();
}

TEST_F(MemsetWordsAsync, SET_12_ExactlyTheseWordsAreSet) {
  const Targets targets;
  const TestStream stream;
  const struct {
    uint32_t value;
    size_t offset, count;
  } cases[] = {{0, 0, 1},           {0x01020304, 4, 3},         {UINT32_MAX, 60, 2},
               {0xfedcba98, 8, 17}, {0xdeadbeef, 0, kSize / 4}, {7, kSize - 4, 1}};
  for (void* const target : {targets.device(), targets.locked()}) {
    for (const auto& set : cases) {
      for (const size_t room : {4 * set.count, 4 * set.count + 3, SIZE_MAX}) {
        SCOPED_TRACE(testing::Message() << set.count << " words at offset " << set.offset);
        std::vector<uint8_t> expected = pattern(kSize, 47);
        copy_in(target, expected);
        EXPECT_SUCCESS(
            aclrtMemsetD32Async(at(target, set.offset), room, set.value, set.count, stream.get()));
        EXPECT_SUCCESS(finish(stream.get()));
        put_words(expected, set.offset, set.value, set.count);
        EXPECT_TRUE(copy_out(target, kSize) == expected);
      }
    }
  }
}

TEST_F(MemsetWordsAsync, SET_12_GEN_04_DeviceMemoryIsSetInStreamOrder) {
  const Targets targets;
  const HostBlock seen(kSize);
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    copy_in(targets.device(), pattern(kSize, 40));
    Gate gate(stream);
    EXPECT_SUCCESS(while_held(gate, [&] {
      return aclrtMemsetD32Async(targets.device(), kSize, 0x11223344, kSize / 4, stream);
    }));
    EXPECT_SUCCESS(
        aclrtMemcpyAsync(seen.data(), kSize, targets.device(), kSize, ACL_MEMCPY_DEFAULT, stream));
    EXPECT_SUCCESS(aclrtMemsetD32Async(targets.device(), kSize, 5, kSize / 4, stream));
    targets.expect_device_unchanged();
    gate.open();
    EXPECT_SUCCESS(finish(stream));
    EXPECT_TRUE(holds(seen.data(), words(0x11223344, kSize / 4)));
    EXPECT_TRUE(copy_out(targets.device(), kSize) == words(5, kSize / 4));
  }
}

TEST_F(MemsetWordsAsync, SET_12_HostMemoryIsSetAtOnce) {
  Spots spots;
  const TestStream stream;
  Gate gate(stream.get());
  for (const Spot& spot : spots.all()) {
    if (spot.side != Side::kHost) continue;
    SCOPED_TRACE(spot.name);
    EXPECT_SUCCESS(while_held(gate, [&] {
      return aclrtMemsetD32Async(spot.start, Spots::kSize, 0xCAFEF00D, Spots::kSize / 4,
                                 stream.get());
    }));
    EXPECT_TRUE(spot.has(words(0xCAFEF00D, Spots::kSize / 4)));
  }
}

TEST_F(MemsetWordsAsync, SET_11_SET_12_WordsThatLeaveTheAllocationFailSomewhereAndNoneIsSet) {
  const Targets targets;
  const TestStream stream;
  const struct {
    size_t offset, count;
  } ranges[] = {{0, kSize / 4 + 1}, {kSize - 4, 2}, {64, kSize / 4}, {64, SIZE_MAX / 4}};
  for (const auto& range : ranges) {
    SCOPED_TRACE(testing::Message() << range.count << " words at offset " << range.offset);
    expect_fails_sooner_or_later(
        aclrtMemsetD32Async(targets.device(range.offset), SIZE_MAX, 9, range.count, stream.get()),
        stream.get());
    targets.expect_device_unchanged();
  }
}

// ---- Products ----

class SetAsyncOnProduct : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, SetAsyncOnProduct,
                         testing::Values("a2", "a3", "inf", "trn", "200i", "200i-rc", "950",
                                         "ipv350"),
                         host_product_name);

TEST_P(SetAsyncOnProduct, SET_07_SET_08_BytesAreSetOrTheFunctionIsMissing) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const DeviceBlock block(kSize);
  copy_in(block.data(), pattern(kSize, 48));
  const TestStream stream;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetAsync(nullptr, 16, 1, 16, stream.get()));
  if (GetParam() == "ipv350") {
    const auto refuse = [&] {
      constexpr auto kCode = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
      EXPECT_FAILS(kCode, aclrtMemsetAsync(block.data(), kSize, 1, kSize, stream.get()));
      EXPECT_FAILS(kCode, aclrtMemsetAsync(block.data(), 1, 1, kSize, stream.get()));
    };
    refuse();
    on_bare_thread(refuse);
    EXPECT_TRUE(copy_out(block.data(), kSize) == pattern(kSize, 48));
  } else {
    EXPECT_SUCCESS(aclrtMemsetAsync(block.data(), kSize, 1, kSize, stream.get()));
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_TRUE(copy_out(block.data(), kSize) == std::vector<uint8_t>(kSize, 1));
  }
}

TEST_P(SetAsyncOnProduct, SET_11_SET_12_WordsAreSetOrTheFunctionIsMissing) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const DeviceBlock block(kSize);
  copy_in(block.data(), pattern(kSize, 49));
  const TestStream stream;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemsetD32Async(block.at(2), 64, 9, 16, stream.get()));
  if (GetParam() == "a2" || GetParam() == "a3" || GetParam() == "950") {
    EXPECT_SUCCESS(aclrtMemsetD32Async(block.data(), kSize, 9, kSize / 4, stream.get()));
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_TRUE(copy_out(block.data(), kSize) == words(9, kSize / 4));
  } else {
    const auto refuse = [&] {
      EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                   aclrtMemsetD32Async(block.data(), 64, 9, 16, stream.get()));
    };
    refuse();
    on_bare_thread(refuse);
    EXPECT_TRUE(copy_out(block.data(), kSize) == pattern(kSize, 49));
  }
}

// There the block of aclrtMallocHost is device memory (HOST-05).
TEST(SetAsyncInDeviceMode, SET_08_HOST_05_HostBlockIsSetInStreamOrder) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i-rc"});
  const DeviceSession session;
  const HostBlock block(kSize);
  copy_in(block.data(), pattern(kSize, 50));
  const TestStream stream;
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(while_held(
        gate, [&] { return aclrtMemsetAsync(block.data(), kSize, 1, kSize, stream.get()); }));
    EXPECT_TRUE(copy_out(block.data(), kSize) == pattern(kSize, 50));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(block.data(), kSize) == std::vector<uint8_t>(kSize, 1));
}

}  // namespace
}  // namespace understudy_test
