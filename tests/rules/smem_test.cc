// SPDX-License-Identifier: Apache-2.0
//
// aclrtValueWrite and aclrtValueWait: their checks, the word that is written in stream order, and
// what a stream waits for.
// Covers: GEN-03, GEN-04, GEN-05, GEN-06, GEN-09, POLICY-26, SMEM-01, SMEM-02, SMEM-03, SMEM-04,
// SMEM-05, SMEM-06, SMEM-07.
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

constexpr uint32_t kGreaterOrEqual = ACL_STREAM_WAIT_VALUE_GEQ;
constexpr uint32_t kEqual = ACL_STREAM_WAIT_VALUE_EQ;
constexpr uint32_t kAnd = ACL_STREAM_WAIT_VALUE_AND;
constexpr uint32_t kNor = ACL_STREAM_WAIT_VALUE_NOR;

std::vector<uint8_t> bytes_of(uint64_t value) {
  std::vector<uint8_t> bytes(sizeof value);
  memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Device memory as 64-bit words, with known bytes.
class WordBlock {
 public:
  static constexpr size_t kWords = 16;

  WordBlock() { copy_in(block_.data(), pattern(size(), 90)); }

  static constexpr size_t size() { return kWords * 8; }
  void* at(size_t offset) const { return block_.at(offset); }
  void* word(size_t index) const { return block_.at(index * 8); }
  void put(size_t index, uint64_t value) const { copy_in(word(index), bytes_of(value)); }
  uint64_t get(size_t index) const {
    uint64_t value = 0;
    memcpy(&value, copy_out(word(index), sizeof value).data(), sizeof value);
    return value;
  }
  void expect_unchanged() const { EXPECT_EQ(copy_out(block_.data(), size()), pattern(size(), 90)); }

 private:
  // No padding behind it.
  DeviceBlock block_{size(), ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32};
};

// ---- The checks both share ----

struct ValueFunction {
  const char* name;
  aclError (*call)(void* data, uint64_t value, uint32_t flag, aclrtStream stream);
  std::span<const uint32_t> bad_flags;

  friend std::ostream& operator<<(std::ostream& out, const ValueFunction& function) {
    return out << function.name;
  }
};

constexpr uint32_t kBadWriteFlags[] = {1, 2, 3, 4, 99, UINT32_MAX};
constexpr uint32_t kBadWaitFlags[] = {4, 5, 99, UINT32_MAX};
constexpr ValueFunction kWrite = {"aclrtValueWrite", aclrtValueWrite, kBadWriteFlags};
constexpr ValueFunction kWait = {"aclrtValueWait", aclrtValueWait, kBadWaitFlags};

void expect_value_refused(const ValueFunction& function, aclError code, void* data, uint32_t flag,
                          aclrtStream stream) {
  (void)recent_error();
  EXPECT_TRUE(fails_with(code, function.call(data, 0, flag, stream), function.name))
      << data << ", flag " << flag;
}

class StreamValue : public HostMemoryTest, public testing::WithParamInterface<ValueFunction> {
 protected:
  static void expect_refused(aclError code, void* data, uint32_t flag, aclrtStream stream) {
    expect_value_refused(GetParam(), code, data, flag, stream);
  }
};
INSTANTIATE_TEST_SUITE_P(, StreamValue, testing::Values(kWrite, kWait),
                         [](const testing::TestParamInfo<ValueFunction>& parameter) {
                           return std::string(parameter.param.name);
                         });

TEST_P(StreamValue, SMEM_01_NullIsRefusedFirst) {
  const TestStream stream;
  const BadStreams bad;
  const auto refuse = [&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, 0, any);
      expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, 99, any);
    }
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_P(StreamValue, SMEM_02_UnknownFlagIsRefusedAndQueuesNothing) {
  const WordBlock words;
  const TestStream stream;
  for (const uint32_t flag : GetParam().bad_flags) {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}}) {
      expect_refused(ACL_ERROR_RT_PARAM_INVALID, words.word(1), flag, any);
      EXPECT_SUCCESS(finish(any));
    }
  }
  words.expect_unchanged();
}

TEST_P(StreamValue, SMEM_03_AddressMustBeAMultipleOfEight) {
  const WordBlock words;
  const TestStream stream;
  for (const size_t offset : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 12u}) {
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, words.at(offset), 0, stream.get());
  }
  EXPECT_SUCCESS(finish(stream.get()));
  words.expect_unchanged();
}

TEST_P(StreamValue, SMEM_03_GEN_09_OnlyDeviceMemoryIsTaken) {
  uint64_t on_stack = 77;
  std::vector<uint64_t> on_heap(4, 78);
  const HostBlock locked(64);
  store(locked.data(), pattern(64, 91));
  DeviceBlock block(64);
  void* const freed = block.data();
  block.free();
  void* const reserved = reserve(kGranule);
  const TestStream stream;
  for (void* const wrong : {static_cast<void*>(&on_stack), static_cast<void*>(on_heap.data()),
                            locked.data(), freed, reserved, address(8)}) {
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, wrong, 0, stream.get());
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(on_stack, 77u);
  EXPECT_EQ(on_heap, std::vector<uint64_t>(4, 78));
  EXPECT_TRUE(holds(locked.data(), pattern(64, 91)));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

TEST_P(StreamValue, SMEM_04_GEN_03_GEN_05_GEN_06_OtherStreamsAreRefused) {
  const WordBlock words;
  const TestStream stream;
  BadStreams bad;
  bad.expect_refused(GetParam().name, [&](aclrtStream other) {
    return GetParam().call(words.word(1), 0, 0, other);
  });
  on_bare_thread([&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      expect_refused(ACL_ERROR_RT_CONTEXT_NULL, words.word(1), 0, any);
    }
  });
  words.expect_unchanged();
}

TEST_P(StreamValue, SMEM_04_StreamIsAskedBeforeFlagAndAddress) {
  const WordBlock words;
  uint64_t on_stack = 0;
  const BadStreams bad;
  expect_refused(ACL_ERROR_RT_INVALID_HANDLE, words.word(1), 99, bad.destroyed());
  expect_refused(ACL_ERROR_RT_INVALID_HANDLE, words.at(4), 0, bad.destroyed());
  expect_refused(ACL_ERROR_RT_INVALID_HANDLE, &on_stack, 0, bad.destroyed());
  words.expect_unchanged();
}

TEST_P(StreamValue, SMEM_04_GEN_04_CallOnlyQueuesAlsoOnTheDefaultStream) {
  const WordBlock words;
  const DeviceBlock behind(kPage);
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    words.put(2, UINT64_MAX);
    copy_in(behind.data(), pattern(kPage, 92));
    Gate gate(stream);
    // Word 2 satisfies the wait; the write would change it.
    EXPECT_SUCCESS(while_held(
        gate, [&] { return GetParam().call(words.word(2), UINT64_MAX - 1, 0, stream); }));
    EXPECT_SUCCESS(aclrtMemsetAsync(behind.data(), kPage, 1, kPage, stream));
    EXPECT_EQ(words.get(2), UINT64_MAX);
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
    gate.open();
    EXPECT_SUCCESS(finish(stream));
    EXPECT_TRUE(copy_out(behind.data(), kPage) == std::vector<uint8_t>(kPage, 1));
  }
}

// ---- Write ----

using ValueWrite = HostMemoryTest;

TEST_F(ValueWrite, SMEM_05_ExactlyOneWordIsWritten) {
  const TestStream stream;
  const LiveMapping mapping;
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{1}, uint64_t{0x0102030405060708}, UINT64_MAX, uint64_t{1} << 63}) {
    for (const size_t index : {size_t{0}, size_t{3}, WordBlock::kWords - 1}) {
      SCOPED_TRACE(testing::Message() << value << " to word " << index);
      const WordBlock words;
      std::vector<uint8_t> expected = pattern(WordBlock::size(), 90);
      memcpy(&expected[index * 8], &value, sizeof value);
      EXPECT_SUCCESS(aclrtValueWrite(words.word(index), value, 0, stream.get()));
      EXPECT_SUCCESS(finish(stream.get()));
      EXPECT_EQ(copy_out(words.at(0), WordBlock::size()), expected);
    }
    EXPECT_SUCCESS(aclrtValueWrite(mapping.at(kGranule - 8), value, 0, stream.get()));
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_EQ(copy_out(mapping.at(kGranule - 8), 8), bytes_of(value));
  }
}

TEST_F(ValueWrite, SMEM_05_ValueIsWrittenInStreamOrder) {
  const WordBlock words;
  const HostBlock seen(3 * 8);
  const TestStream stream;
  words.put(0, 100);
  {
    Gate gate(stream.get());
    for (uint64_t i = 0; i < 3; ++i) {
      EXPECT_SUCCESS(aclrtValueWrite(words.word(0), 200 + i, 0, stream.get()));
      EXPECT_SUCCESS(aclrtMemcpyAsync(seen.at(i * 8), 8, words.word(0), 8,
                                      ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
    }
    EXPECT_EQ(words.get(0), 100u);
  }
  EXPECT_SUCCESS(finish(stream.get()));
  for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(holds(seen.at(i * 8), bytes_of(200 + i))) << i;
}

TEST_F(ValueWrite, SMEM_05_POLICY_26_ReadonlyWordFailsOnTheStreamAndStays) {
  const DeviceBlock readonly(64, ACL_MEM_ACCESS_USER_SPACE_READONLY);
  const std::vector<uint8_t> bytes = copy_out(readonly.data(), 64);
  const TestStream stream;
  const aclError code = aclrtValueWrite(readonly.data(), 0x1122334455667788, 0, stream.get());
  expect_fails_sooner_or_later(code, stream.get());
  EXPECT_EQ(copy_out(readonly.data(), 64), bytes);
}

// ---- Wait ----

using ValueWait = HostMemoryTest;

struct Condition {
  uint64_t word;
  uint64_t value;
  uint32_t flag;
};

constexpr uint64_t kTop = uint64_t{1} << 63;

constexpr Condition kSatisfied[] = {
    {5, 5, kGreaterOrEqual},
    {6, 5, kGreaterOrEqual},
    {0, 0, kGreaterOrEqual},
    {0, UINT64_MAX, kGreaterOrEqual},
    {kTop - 1, 0, kGreaterOrEqual},
    {kTop, kTop, kGreaterOrEqual},
    {kTop + 4, kTop, kGreaterOrEqual},
    {5, 5, kEqual},
    {0, 0, kEqual},
    {UINT64_MAX, UINT64_MAX, kEqual},
    {6, 2, kAnd},
    {UINT64_MAX, kTop, kAnd},
    {kTop, kTop, kAnd},
    {0, 0, kNor},
    {1, 2, kNor},
    {UINT64_MAX - 1, 0, kNor},
    {~kTop, 1, kNor},
};

TEST_F(ValueWait, SMEM_06_SatisfiedConditionLetsTheStreamGoOn) {
  const WordBlock words;
  const TestStream stream;
  for (const Condition& condition : kSatisfied) {
    SCOPED_TRACE(testing::Message()
                 << condition.word << ", value " << condition.value << ", flag " << condition.flag);
    words.put(4, condition.word);
    words.put(5, 0);
    EXPECT_SUCCESS(aclrtValueWait(words.word(4), condition.value, condition.flag, stream.get()));
    EXPECT_SUCCESS(aclrtValueWrite(words.word(5), 1, 0, stream.get()));
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_EQ(words.get(5), 1u);
    EXPECT_EQ(words.get(4), condition.word);
  }
}

struct Hold {
  Condition condition;
  uint64_t release;  // a word that satisfies it
};

constexpr Hold kHolds[] = {
    {{4, 5, kGreaterOrEqual}, 5},
    {{UINT64_MAX, 0, kGreaterOrEqual}, 0},
    {{kTop, 0, kGreaterOrEqual}, kTop - 1},
    {{0, kTop, kGreaterOrEqual}, kTop},
    {{0, 1, kGreaterOrEqual}, 1000},
    {{4, 5, kEqual}, 5},
    {{6, 5, kEqual}, 5},
    {{uint64_t{1} << 32, 0, kEqual}, 0},
    {{1, uint64_t{1} << 32 | 1, kEqual}, uint64_t{1} << 32 | 1},
    {{4, 3, kAnd}, 1},
    {{0, UINT64_MAX, kAnd}, kTop},
    {{UINT32_MAX, kTop, kAnd}, kTop},
    {{UINT64_MAX, 0, kNor}, 0},
    {{UINT64_MAX - 1, 1, kNor}, 1},
    {{~kTop, kTop, kNor}, 0},
};

TEST_F(ValueWait, SMEM_06_SMEM_07_StreamIsHeldUntilTheConditionIsSatisfied) {
  const WordBlock words;
  const TestStream stream;
  for (const Hold& hold : kHolds) {
    const Condition& condition = hold.condition;
    SCOPED_TRACE(testing::Message()
                 << condition.word << ", value " << condition.value << ", flag " << condition.flag);
    words.put(6, condition.word);
    words.put(7, 0);
    EXPECT_SUCCESS(aclrtValueWait(words.word(6), condition.value, condition.flag, stream.get()));
    EXPECT_SUCCESS(aclrtValueWrite(words.word(7), 1, 0, stream.get()));
    expect_held(stream.get());
    EXPECT_EQ(words.get(7), 0u);
    words.put(6, hold.release);
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_EQ(words.get(7), 1u);
    EXPECT_EQ(words.get(6), hold.release);
  }
}

TEST_F(ValueWait, SMEM_06_ChangeThatDoesNotSatisfyKeepsTheStreamHeld) {
  const WordBlock words;
  const TestStream stream;
  words.put(0, 0);
  words.put(1, 0);
  EXPECT_SUCCESS(aclrtValueWait(words.word(0), 3, kGreaterOrEqual, stream.get()));
  for (const uint64_t step : {1u, 2u}) {
    words.put(0, step);
    words.put(1, 50);  // a neighbour
    expect_held(stream.get());
  }
  words.put(0, 3);
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(ValueWait, SMEM_07_EveryWriterReleasesTheWait) {
  const WordBlock words;
  const HostBlock locked(8);
  const DeviceBlock one(8);
  store(locked.data(), bytes_of(1));
  copy_in(one.data(), bytes_of(1));
  const TestStream waiting;
  const TestStream writing;
  void* const word = words.word(0);
  const struct {
    const char* name;
    std::function<aclError()> release;
  } writers[] = {
      {"a write on another stream", [&] { return aclrtValueWrite(word, 1, 0, writing.get()); }},
      {"a write on the default stream", [&] { return aclrtValueWrite(word, 1, 0, nullptr); }},
      {"a copy from the host",
       [&] { return aclrtMemcpy(word, 8, bytes_of(1).data(), 8, ACL_MEMCPY_HOST_TO_DEVICE); }},
      {"a queued copy from the host",
       [&] {
         return aclrtMemcpyAsync(word, 8, locked.data(), 8, ACL_MEMCPY_HOST_TO_DEVICE,
                                 writing.get());
       }},
      {"a queued copy from the device",
       [&] {
         return aclrtMemcpyAsync(word, 8, one.data(), 8, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                 writing.get());
       }},
      {"a set", [&] { return aclrtMemset(word, 8, 1, 8); }},
      {"a queued set", [&] { return aclrtMemsetAsync(word, 8, 1, 8, writing.get()); }},
      {"queued words", [&] { return aclrtMemsetD32Async(word, 8, 1, 2, writing.get()); }},
      {"a copy of a row",
       [&] {
         return aclrtMemcpy2dAsync(word, 8, one.data(), 8, 8, 1, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                   writing.get());
       }},
  };
  for (const auto& writer : writers) {
    SCOPED_TRACE(writer.name);
    words.put(0, 0);
    EXPECT_SUCCESS(aclrtValueWait(word, 1, kAnd, waiting.get()));
    EXPECT_EQ(stream_status(waiting.get()), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_SUCCESS(writer.release());
    EXPECT_SUCCESS(finish(waiting.get()));
    EXPECT_SUCCESS(finish(writing.get()));
    EXPECT_SUCCESS(finish(nullptr));
  }
}

TEST_F(ValueWait, SMEM_07_WriteFromAnotherThreadReleasesTheWait) {
  const WordBlock words;
  const TestStream waiting;
  words.put(0, 0);
  EXPECT_SUCCESS(aclrtValueWait(words.word(0), 7, kEqual, waiting.get()));
  on_bare_thread([&] {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    words.put(0, 7);
    EXPECT_SUCCESS(aclrtResetDevice(0));
  });
  EXPECT_SUCCESS(finish(waiting.get()));
}

TEST_F(ValueWait, SMEM_07_TwoStreamsPassTheWordBackAndForth) {
  constexpr uint64_t kRounds = 50;
  const WordBlock words;
  const TestStream ping;
  const TestStream pong;
  words.put(0, 0);
  for (uint64_t i = 0; i < kRounds; ++i) {
    EXPECT_SUCCESS(aclrtValueWait(words.word(0), 2 * i, kEqual, ping.get()));
    EXPECT_SUCCESS(aclrtValueWrite(words.word(0), 2 * i + 1, 0, ping.get()));
    EXPECT_SUCCESS(aclrtValueWait(words.word(0), 2 * i + 1, kEqual, pong.get()));
    EXPECT_SUCCESS(aclrtValueWrite(words.word(0), 2 * i + 2, 0, pong.get()));
  }
  EXPECT_SUCCESS(finish(ping.get()));
  EXPECT_SUCCESS(finish(pong.get()));
  EXPECT_EQ(words.get(0), 2 * kRounds);
}

// One block at two addresses: the word is the same.
TEST_F(ValueWait, SMEM_07_WriteThroughAnotherMappingReleasesTheWait) {
  const LiveMapping mapping;
  void* const second = reserve(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(second, kGranule, 0, mapping.handle(), 0));
  copy_in(mapping.at(64), bytes_of(0));
  const TestStream waiting;
  const TestStream writing;
  EXPECT_SUCCESS(aclrtValueWait(mapping.at(64), 1, kEqual, waiting.get()));
  EXPECT_SUCCESS(aclrtValueWrite(at(second, 64), 1, 0, writing.get()));
  EXPECT_SUCCESS(finish(writing.get()));
  EXPECT_SUCCESS(finish(waiting.get()));
  EXPECT_SUCCESS(aclrtUnmapMem(second));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(second));
}

// ---- Products ----

class StreamValueOnProductWithIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, StreamValueOnProductWithIt, testing::Values("a2", "a3", "950"),
                         host_product_name);

TEST_P(StreamValueOnProductWithIt, SMEM_05_SMEM_06_WriteReleasesAWait) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  const WordBlock words;
  words.put(0, 0);
  const TestStream waiting;
  const TestStream writing;
  EXPECT_SUCCESS(aclrtValueWait(words.word(0), 9, kGreaterOrEqual, waiting.get()));
  EXPECT_SUCCESS(aclrtValueWrite(words.word(0), 10, 0, writing.get()));
  EXPECT_SUCCESS(finish(waiting.get()));
  EXPECT_SUCCESS(finish(writing.get()));
}

class StreamValueOnProductWithoutIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, StreamValueOnProductWithoutIt,
                         testing::Values("inf", "trn", "200i", "200i-rc", "ipv350"),
                         host_product_name);

TEST_P(StreamValueOnProductWithoutIt, SMEM_01_SMEM_02_ProductIsAskedAfterTheOuterCheck) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const WordBlock words;
  const TestStream stream;
  const auto refuse = [&] {
    for (const ValueFunction* function : {&kWrite, &kWait}) {
      expect_value_refused(*function, ACL_ERROR_INVALID_PARAM, nullptr, 0, stream.get());
      for (const uint32_t flag : {0u, 99u}) {
        for (void* const data : {words.word(0), words.at(1)}) {
          expect_value_refused(*function, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, data, flag,
                               stream.get());
        }
      }
    }
  };
  refuse();
  on_bare_thread(refuse);
  words.expect_unchanged();
}

}  // namespace
}  // namespace understudy_test
