// SPDX-License-Identifier: Apache-2.0
//
// aclrtReduceAsync: its checks, the ranges it takes, the order it runs in, and what it computes.
// Covers: RED-01, RED-02, RED-03, RED-04, RED-05, RED-06, RED-07, RED-08, RED-09, RED-10, RED-11,
// RED-12, RED-13, RED-14, RED-15.
#include <fenv.h>

#include <array>
#include <atomic>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>

#include "rules/reduce_objects.h"
#include "rules/vmm_objects.h"

namespace understudy_test {
namespace {

using Reduce = HostMemoryTest;

constexpr aclError kOuter = ACL_ERROR_INVALID_PARAM;
constexpr aclError kInner = ACL_ERROR_RT_PARAM_INVALID;
constexpr aclError kUnsupported = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;

// Two arrays of floats that must stay as they are.
class Bystanders {
 public:
  static constexpr size_t kBytes = 256;

  Bystanders() {
    copy_in(to_.data(), pattern(kBytes, 3));
    copy_in(from_.data(), pattern(kBytes, 4));
  }
  void* to() const { return to_.data(); }
  void* from() const { return from_.data(); }
  void expect_unchanged() const {
    EXPECT_SUCCESS(aclrtSynchronizeDevice());
    EXPECT_EQ(copy_out(to_.data(), kBytes), pattern(kBytes, 3));
    EXPECT_EQ(copy_out(from_.data(), kBytes), pattern(kBytes, 4));
  }

 private:
  DeviceBlock to_{kBytes};
  DeviceBlock from_{kBytes};
};

// ---- Arguments ----

TEST_F(Reduce, RED_01_NullIsRefusedFirst) {
  const Bystanders arrays;
  EXPECT_FAILS(kOuter,
               aclrtReduceAsync(nullptr, arrays.from(), 4, kSum, ACL_FLOAT, nullptr, nullptr));
  EXPECT_FAILS(kOuter,
               aclrtReduceAsync(arrays.to(), nullptr, 4, kSum, ACL_FLOAT, nullptr, nullptr));
  EXPECT_FAILS(kOuter, aclrtReduceAsync(nullptr, nullptr, 0, enum_value<aclrtReduceKind>(99),
                                        enum_value<aclDataType>(99), address(1), address(1)));
  arrays.expect_unchanged();
}

TEST_F(Reduce, RED_02_NumbersThatAreNoKindOrTypeAreRefused) {
  const Bystanders arrays;
  for (const int kind : {-1, 0, 9, 14, 1000}) {
    expect_reduce_refused(kInner, reduce(arrays.to(), arrays.from(), 4,
                                         enum_value<aclrtReduceKind>(kind), ACL_FLOAT));
  }
  for (const int type : {-2, 5, 14, 28, 42, 64, 1000}) {
    expect_reduce_refused(
        kInner, reduce(arrays.to(), arrays.from(), 4, kSum, enum_value<aclDataType>(type)));
  }
  arrays.expect_unchanged();
}

TEST_F(Reduce, RED_02_TypesThatTheProductLacksAreNotSupported) {
  const Bystanders arrays;
  for (const aclDataType type :
       {ACL_UINT32, ACL_UINT8, ACL_INT64, ACL_DOUBLE, ACL_BOOL, ACL_COMPLEX64, ACL_HIFLOAT8,
        ACL_STRING, ACL_INT4, ACL_DT_UNDEFINED}) {
    expect_reduce_refused(kUnsupported, reduce(arrays.to(), arrays.from(), 16, kSum, type));
  }
  arrays.expect_unchanged();
}

TEST_F(Reduce, RED_03_EqualIsNotSupported) {
  const Bystanders arrays;
  expect_reduce_refused(kUnsupported, reduce(arrays.to(), arrays.from(), 4, kEqual, ACL_FLOAT));
  arrays.expect_unchanged();
}

TEST_F(Reduce, RED_04_CountIsWholeElementsAndReserveIsNull) {
  const Bystanders arrays;
  expect_reduce_refused(kInner, reduce(arrays.to(), arrays.from(), 0, kSum, ACL_FLOAT));
  for (const uint64_t count : {1u, 2u, 3u, 5u, 255u}) {
    expect_reduce_refused(kInner, reduce(arrays.to(), arrays.from(), count, kSum, ACL_FLOAT));
  }
  expect_reduce_refused(kInner, reduce(arrays.to(), arrays.from(), 3, kMax, ACL_FLOAT16));
  int anything = 0;
  EXPECT_FAILS(
      kInner, aclrtReduceAsync(arrays.to(), arrays.from(), 4, kSum, ACL_FLOAT, nullptr, &anything));
  arrays.expect_unchanged();
}

TEST_F(Reduce, RED_05_OtherStreamsAreRefusedAndNullIsTheDefaultStream) {
  const Bystanders arrays;
  BadStreams bad;
  bad.expect_refused("aclrtReduceAsync", [&](aclrtStream stream) {
    return reduce(arrays.to(), arrays.from(), 4, kSum, ACL_FLOAT, stream);
  });
  arrays.expect_unchanged();
  on_bare_thread([&] {
    expect_reduce_refused(ACL_ERROR_RT_CONTEXT_NULL,
                          reduce(arrays.to(), arrays.from(), 4, kSum, ACL_FLOAT));
  });
  EXPECT_EQ(reduced<int32_t>({1, 2}, {3, 4}, kSum, ACL_INT32, nullptr),
            (std::vector<int32_t>{4, 6}));
}

TEST_F(Reduce, RED_05_SuccessMeansQueued) {
  const DeviceBlock to(4);
  const DeviceBlock from(4);
  put<int32_t>(to.data(), {40});
  put<int32_t>(from.data(), {2});
  const TestStream stream;
  Gate gate(stream.get());
  EXPECT_SUCCESS(while_held(
      gate, [&] { return reduce(to.data(), from.data(), 4, kSum, ACL_INT32, stream.get()); }));
  EXPECT_EQ(get<int32_t>(to.data(), 1)[0], 40);
  gate.open();
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(get<int32_t>(to.data(), 1)[0], 42);
}

// ---- Memory ----

TEST_F(Reduce, RED_06_OnlyMemoryOfTheStreamsDevice) {
  const Bystanders arrays;
  Spots spots;
  for (const Spot& spot : spots.all()) {
    SCOPED_TRACE(spot.name);
    if (spot.side == Side::kDevice) continue;
    expect_reduce_refused(kInner, reduce(spot.start, arrays.from(), 16, kSum, ACL_FLOAT));
    expect_reduce_refused(kInner, reduce(arrays.to(), spot.start, 16, kSum, ACL_FLOAT));
  }
  expect_reduce_refused(kInner, reduce(address(0x10), arrays.from(), 16, kSum, ACL_FLOAT));
  ASSERT_SUCCESS(aclrtSetDevice(1));
  {
    const DeviceBlock other(256);
    ASSERT_SUCCESS(aclrtSetDevice(0));
    expect_reduce_refused(kInner, reduce(other.data(), arrays.from(), 16, kSum, ACL_FLOAT));
    expect_reduce_refused(kInner, reduce(arrays.to(), other.data(), 16, kSum, ACL_FLOAT));
    ASSERT_SUCCESS(aclrtSetDevice(1));
  }
  ASSERT_SUCCESS(aclrtResetDeviceForce(1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  arrays.expect_unchanged();
}

TEST_F(Reduce, RED_06_RangesStayInTheirAllocation) {
  const DeviceBlock to(64, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
  const DeviceBlock from(128, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
  expect_reduce_refused(kInner, reduce(to.data(), from.data(), 68, kSum, ACL_FLOAT));
  expect_reduce_refused(kInner, reduce(from.data(), to.data(), 68, kSum, ACL_FLOAT));
  expect_reduce_refused(kInner, reduce(to.at(4), from.data(), 64, kSum, ACL_FLOAT));
  expect_reduce_refused(kInner, reduce(to.data(), from.data(), uint64_t{0} - 4, kSum, ACL_FLOAT));
  EXPECT_SUCCESS(reduce(to.data(), from.at(64), 64, kSum, ACL_FLOAT));
  EXPECT_SUCCESS(finish(nullptr));
}

TEST_F(Reduce, RED_06_ReadOnlyMemoryIsASourceOnly) {
  const DeviceBlock constant(
      64, joined({ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_ACCESS_USER_SPACE_READONLY}));
  const DeviceBlock other(64);
  expect_reduce_refused(ACL_ERROR_RT_NO_PERMISSION,
                        reduce(constant.data(), other.data(), 64, kSum, ACL_FLOAT));
  EXPECT_SUCCESS(reduce(other.data(), constant.data(), 64, kSum, ACL_FLOAT));
  EXPECT_SUCCESS(finish(nullptr));
}

TEST_F(Reduce, RED_06_MemoryThatIsGoneWhenTheTaskRunsFailsOnTheStream) {
  const DeviceBlock from(64);
  DeviceBlock to(64);
  const TestStream stream;
  Gate gate(stream.get());
  EXPECT_SUCCESS(reduce(to.data(), from.data(), 64, kSum, ACL_FLOAT, stream.get()));
  void* const start = to.data();
  to.free();
  gate.open();
  expect_task_failed(stream.get(), start);
}

TEST_F(Reduce, RED_07_ElementsAreCombinedAndNothingElseChanges) {
  EXPECT_EQ(reduced<float>({1, 2, 3, 4}, {1, 2, 3, 4}, kSum, ACL_FLOAT),
            (std::vector<float>{2, 4, 6, 8}));
  const DeviceBlock to(64);
  const DeviceBlock from(64);
  put<int32_t>(to.data(), std::vector<int32_t>(16, 7));
  put<int32_t>(from.data(), std::vector<int32_t>(16, 1));
  EXPECT_SUCCESS(reduce(to.at(8), from.at(8), 12, kSum, ACL_INT32));
  EXPECT_SUCCESS(finish(nullptr));
  std::vector<int32_t> expected(16, 7);
  for (const size_t i : {2u, 3u, 4u}) expected[i] = 8;
  EXPECT_EQ(get<int32_t>(to.data(), 16), expected);
  EXPECT_EQ(get<int32_t>(from.data(), 16), std::vector<int32_t>(16, 1));
}

TEST_F(Reduce, RED_07_LargeRangesAndMemoryThatWasNeverWritten) {
  constexpr size_t kBytes = 9 * kMiB;
  const DeviceBlock to(kBytes);
  const DeviceBlock from(kBytes);
  EXPECT_SUCCESS(aclrtMemset(from.at(kMiB), kBytes - kMiB, 1, 2 * kMiB));  // the rest reads as 0
  EXPECT_SUCCESS(aclrtMemset(to.data(), kBytes, 2, kBytes));
  const std::vector<uint8_t> source = copy_out(from.data(), kBytes);
  EXPECT_SUCCESS(reduce(to.data(), from.data(), kBytes, kSum, ACL_INT8));
  EXPECT_SUCCESS(finish(nullptr));
  const std::vector<uint8_t> result = copy_out(to.data(), kBytes);
  size_t wrong = 0;
  for (size_t i = 0; i < kBytes; ++i) wrong += result[i] != static_cast<uint8_t>(source[i] + 2);
  EXPECT_EQ(wrong, 0u);
}

TEST_F(Reduce, RED_07_AcrossMappingsAndElementsAcrossTheirEdges) {
  vmm::Range range(3 * kHugePage);
  const vmm::Block first(kHugePage);
  const vmm::Block second(2 * kHugePage);
  const vmm::Mapping one(range.byte(0), first);
  const vmm::Mapping two(range.byte(kHugePage), second);
  const DeviceBlock from(kHugePage);
  constexpr size_t kCount = 50'001;
  constexpr size_t kBytes = kCount * sizeof(int32_t);
  for (const size_t shift : {0u, 1u, 2u, 3u}) {
    SCOPED_TRACE(shift);
    // About half of it on either side of the edge.
    void* const to = range.byte(kHugePage - kBytes / 2 - shift);
    std::vector<int32_t> values(kCount);
    std::iota(values.begin(), values.end(), 1000);
    put(to, values);
    put(at(from.data(), shift), values);
    EXPECT_SUCCESS(reduce(to, at(from.data(), shift), kBytes, kSum, ACL_INT32));
    EXPECT_SUCCESS(finish(nullptr));
    for (int32_t& value : values) value *= 2;
    EXPECT_EQ(get<int32_t>(to, kCount), values);
    // The other way round: the source lies across the edge.
    EXPECT_SUCCESS(reduce(at(from.data(), shift), to, kBytes, kMin, ACL_INT32));
    EXPECT_SUCCESS(finish(nullptr));
    EXPECT_EQ(get<int32_t>(at(from.data(), shift), 1)[0], 1000);
  }
}

TEST_F(Reduce, RED_08_RunsInStreamOrder) {
  const DeviceBlock to(4);
  const DeviceBlock from(4);
  const HostBlock out(12);
  const TestStream stream;
  Gate gate(stream.get());
  EXPECT_SUCCESS(aclrtMemsetAsync(to.data(), 4, 1, 4, stream.get()));
  EXPECT_SUCCESS(aclrtMemsetAsync(from.data(), 4, 2, 4, stream.get()));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_SUCCESS(reduce(to.data(), from.data(), 4, kSum, ACL_INT8, stream.get()));
    EXPECT_SUCCESS(aclrtMemcpyAsync(at(out.data(), i * 4), 4, to.data(), 4,
                                    ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
  }
  EXPECT_SUCCESS(aclrtMemsetAsync(from.data(), 4, 9, 4, stream.get()));
  gate.open();
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(holds(out.data(), {3, 3, 3, 3, 5, 5, 5, 5, 7, 7, 7, 7}));
}

TEST_F(Reduce, RED_09_AnyAlignmentAndBothSidesTheSame) {
  const DeviceBlock memory(64 * kKiB);
  constexpr size_t kCount = 5000;
  for (const size_t shift : {0u, 1u, 2u, 3u}) {
    std::vector<float> values(kCount);
    std::iota(values.begin(), values.end(), 0.5f);
    void* const start = memory.at(shift);
    put(start, values);
    EXPECT_SUCCESS(reduce(start, start, kCount * sizeof(float), kSum, ACL_FLOAT));
    EXPECT_SUCCESS(finish(nullptr));
    for (float& value : values) value += value;
    EXPECT_EQ(get<float>(start, kCount), values) << shift;
  }
}

TEST_F(Reduce, RED_10_StreamsThatReduceIntoTheSameElementsLoseNothing) {
  constexpr size_t kStreams = 4;
  constexpr size_t kRounds = 200;
  constexpr size_t kCount = 3000;
  // The same block at two addresses: the same elements, too.
  const vmm::Block block(kHugePage);
  vmm::Range range(2 * kHugePage);
  const vmm::Mapping one(range.byte(0), block);
  const vmm::Mapping two(range.byte(kHugePage), block);
  const DeviceBlock from(kCount * sizeof(int32_t));
  put(range.byte(0), std::vector<int32_t>(kCount, 0));
  put(from.data(), std::vector<int32_t>(kCount, 1));
  {
    std::array<TestStream, kStreams> streams;
    for (size_t round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < kStreams; ++i) {
        EXPECT_SUCCESS(reduce(range.byte(i % 2 * kHugePage), from.data(), kCount * sizeof(int32_t),
                              kSum, ACL_INT32, streams[i].get()));
      }
    }
    for (TestStream& stream : streams) EXPECT_SUCCESS(finish(stream.get()));
  }
  EXPECT_EQ(get<int32_t>(range.byte(0), kCount),
            std::vector<int32_t>(kCount, static_cast<int32_t>(kStreams * kRounds)));
}

// ---- Integers ----

template <typename T>
void expect_integers(aclDataType type) {
  const T least = std::numeric_limits<T>::min();
  const T most = std::numeric_limits<T>::max();
  const auto minus_one = static_cast<T>(-1);
  const std::vector<T> a = {0, 1, most, least, minus_one, most, least, 5};
  const std::vector<T> b = {0, 2, 1, minus_one, 1, most, least, 7};
  std::vector<T> sums;
  std::vector<T> highest;
  std::vector<T> lowest;
  for (size_t i = 0; i < a.size(); ++i) {
    sums.push_back(static_cast<T>(static_cast<uint64_t>(a[i]) + static_cast<uint64_t>(b[i])));
    highest.push_back(std::max(a[i], b[i]));
    lowest.push_back(std::min(a[i], b[i]));
  }
  EXPECT_EQ(reduced(a, b, kSum, type), sums);
  EXPECT_EQ(reduced(a, b, kMax, type), highest);
  EXPECT_EQ(reduced(a, b, kMin, type), lowest);
}

TEST_F(Reduce, RED_11_SignedIntegersWrapAndCompareSigned) {
  expect_integers<int8_t>(ACL_INT8);
  expect_integers<int16_t>(ACL_INT16);
  expect_integers<int32_t>(ACL_INT32);
}

TEST(ReduceOn950, RED_11_UnsignedIntegersWrapAndCompareUnsigned) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  expect_integers<uint32_t>(ACL_UINT32);
  expect_integers<int32_t>(ACL_INT32);
}

// All pairs of bytes.
TEST_F(Reduce, RED_11_EveryPairOfBytes) {
  std::vector<int8_t> a;
  std::vector<int8_t> b;
  for (int i = -128; i < 128; ++i) {
    for (int k = -128; k < 128; ++k) {
      a.push_back(static_cast<int8_t>(i));
      b.push_back(static_cast<int8_t>(k));
    }
  }
  const std::vector<int8_t> sums = reduced(a, b, kSum, ACL_INT8);
  const std::vector<int8_t> highest = reduced(a, b, kMax, ACL_INT8);
  const std::vector<int8_t> lowest = reduced(a, b, kMin, ACL_INT8);
  size_t wrong = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    wrong += sums[i] != static_cast<int8_t>(a[i] + b[i]);
    wrong += highest[i] != std::max(a[i], b[i]);
    wrong += lowest[i] != std::min(a[i], b[i]);
  }
  EXPECT_EQ(wrong, 0u);
}

// ---- Floating point ----

uint32_t bits_of(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
float float_of(uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Whether the bits are the same, or both a quiet NaN.
bool is_same_single(uint32_t a, uint32_t b) {
  const auto is_nan = [](uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; };
  if (is_nan(a) || is_nan(b)) return is_nan(a) && is_nan(b) && (a & 0x400000) != 0;
  return a == b;
}

std::vector<uint32_t> special_singles() {
  std::vector<uint32_t> all;
  for (const uint32_t bits :
       {0u,          1u,          2u,          0x7FFFFFu,   0x800000u,   0x800001u,
        0x33800000u, 0x34000000u, 0x3F000000u, 0x3F7FFFFFu, 0x3F800000u, 0x3F800001u,
        0x4B000000u, 0x4B800000u, 0x7E800000u, 0x7F000000u, 0x7F7FFFFEu, 0x7F7FFFFFu,
        0x7F800000u, 0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu}) {
    all.push_back(bits);
    all.push_back(bits | 0x80000000u);
  }
  return all;
}

template <typename T>
struct Pairs {
  std::vector<T> a;
  std::vector<T> b;
};
template <typename T>
Pairs<T> all_pairs(const std::vector<T>& values) {
  Pairs<T> pairs;
  for (const T first : values) {
    for (const T second : values) {
      pairs.a.push_back(first);
      pairs.b.push_back(second);
    }
  }
  return pairs;
}
template <typename T>
void add_random(Pairs<T>& pairs, size_t count) {
  std::mt19937_64 random(20261116);
  for (size_t i = 0; i < count; ++i) {
    pairs.a.push_back(static_cast<T>(random()));
    pairs.b.push_back(static_cast<T>(random()));
  }
}

TEST_F(Reduce, RED_12_SinglesAreAddedOnceRoundedToEvenWithSubnormals) {
  Pairs<uint32_t> pairs = all_pairs(special_singles());
  add_random(pairs, 1'000'000);
  const std::vector<uint32_t> sums = reduced(pairs.a, pairs.b, kSum, ACL_FLOAT);
  size_t wrong = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const volatile float a = float_of(pairs.a[i]);
    const volatile float b = float_of(pairs.b[i]);
    wrong += is_same_single(sums[i], bits_of(a + b)) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0u);
}

// The state of the program's threads does not matter, and stays.
TEST_F(Reduce, RED_12_RoundingOfTheProgramDoesNotMatter) {
  const float one = 1;
  const float small = float_of(0x33000000);  // a quarter of a unit in the last place of 1
  const int before = fegetround();
  fesetround(FE_UPWARD);
  const std::vector<float> sums = reduced<float>({one}, {small}, kSum, ACL_FLOAT);
  EXPECT_EQ(fegetround(), FE_UPWARD);
  fesetround(before);
  EXPECT_EQ(sums[0], one);
}

std::vector<uint16_t> special_smalls(const SmallFloat& format) {
  std::vector<uint16_t> all;
  const auto unit = static_cast<uint16_t>(1 << format.mantissa_bits);
  for (int field = 0; field < (1 << format.exponent_bits()); ++field) {
    // Around every power of two.
    for (const int step : {-1, 0, 1}) {
      const int bits = field * unit + step;
      if (bits >= 0 && bits < 0x8000) {
        all.push_back(static_cast<uint16_t>(bits));
        all.push_back(static_cast<uint16_t>(bits | 0x8000));
      }
    }
  }
  for (const int bits : {0x7FFF, 0x7E55, 0x7FFE}) {
    all.push_back(static_cast<uint16_t>(bits));
    all.push_back(static_cast<uint16_t>(bits | 0x8000));
  }
  return all;
}

void expect_small_sums(const SmallFloat& format) {
  Pairs<uint16_t> pairs = all_pairs(special_smalls(format));
  add_random(pairs, 1'000'000);
  const std::vector<uint16_t> sums = reduced(pairs.a, pairs.b, kSum, format.type);
  size_t wrong = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const uint16_t expected = format.sum(pairs.a[i], pairs.b[i]);
    const bool same = format.is_nan(expected)
                          ? format.is_nan(sums[i]) && (sums[i] & format.quiet()) != 0
                          : sums[i] == expected;
    if (!same && ++wrong < 5) {
      ADD_FAILURE() << std::hex << pairs.a[i] << " + " << pairs.b[i] << " gave " << sums[i]
                    << " and not " << expected;
    }
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_F(Reduce, RED_13_HalvesAreAddedExactlyAndRoundedOnce) { expect_small_sums(kHalf); }
TEST_F(Reduce, RED_13_BrainFloatsAreAddedExactlyAndRoundedOnce) { expect_small_sums(kBrain); }

// The reference itself, against sums that are known.
TEST(ReduceReference, RED_13_TheReferenceKnowsItsSums) {
  EXPECT_EQ(kHalf.sum(0x3C00, 0x3C00), 0x4000);  // 1 + 1
  EXPECT_EQ(kHalf.sum(0x7BFF, 0x4BFF), 0x7BFF);
  EXPECT_EQ(kHalf.sum(0x7BFF, 0x4C00), 0x7C00);  // 65520 is half way, to even
  EXPECT_EQ(kHalf.sum(0x0001, 0x0001), 0x0002);
  EXPECT_EQ(kHalf.sum(0x03FF, 0x0001), 0x0400);
  EXPECT_EQ(kHalf.sum(0x3C00, 0xBC00), 0x0000);
  EXPECT_EQ(kHalf.sum(0x8000, 0x8000), 0x8000);
  EXPECT_EQ(kHalf.sum(0x8000, 0x0000), 0x0000);
  EXPECT_EQ(kHalf.sum(0x3C00, 0x1000), 0x3C00);  // half a unit, to even
  EXPECT_EQ(kHalf.sum(0x3C01, 0x1000), 0x3C02);
  EXPECT_EQ(kHalf.sum(0x7C00, 0x3C00), 0x7C00);
  EXPECT_TRUE(kHalf.is_nan(kHalf.sum(0x7C00, 0xFC00)));
  EXPECT_EQ(kBrain.sum(0x3F80, 0x3F80), 0x4000);
  EXPECT_EQ(kBrain.sum(0x3F80, 0x3B80), 0x3F80);  // half a unit, to even
  EXPECT_EQ(kBrain.sum(0x3F81, 0x3B80), 0x3F82);
  EXPECT_EQ(kBrain.sum(0x3F80, 0x0001), 0x3F80);
  EXPECT_EQ(kBrain.sum(0x7F7F, 0x7F7F), 0x7F80);
}

template <typename T>
struct Extremes {
  aclDataType type;
  T infinity;
  T quiet;
  T sign;

  bool is_nan(T bits) const { return static_cast<T>(bits & ~sign) > infinity; }
  // By value, and then -0 before +0.
  bool is_less(T a, T b) const {
    const bool a_negative = (a & sign) != 0;
    const bool b_negative = (b & sign) != 0;
    if (a_negative != b_negative) return a_negative;
    return a_negative ? a > b : a < b;
  }
  void expect(const Pairs<T>& pairs) const {
    const std::vector<T> highest = reduced(pairs.a, pairs.b, kMax, type);
    const std::vector<T> lowest = reduced(pairs.a, pairs.b, kMin, type);
    size_t wrong = 0;
    for (size_t i = 0; i < pairs.a.size(); ++i) {
      const T a = pairs.a[i];
      const T b = pairs.b[i];
      if (is_nan(a) || is_nan(b)) {
        wrong += !is_nan(highest[i]) || (highest[i] & quiet) == 0;
        wrong += !is_nan(lowest[i]) || (lowest[i] & quiet) == 0;
      } else {
        wrong += highest[i] != (is_less(a, b) ? b : a);
        wrong += lowest[i] != (is_less(a, b) ? a : b);
      }
    }
    EXPECT_EQ(wrong, 0u);
  }
};

TEST_F(Reduce, RED_14_NanWinsAndMinusZeroIsLessThanZero) {
  Pairs<uint32_t> singles = all_pairs(special_singles());
  add_random(singles, 100'000);
  Extremes<uint32_t>{ACL_FLOAT, 0x7F800000, 0x400000, 0x80000000}.expect(singles);
  for (const SmallFloat& format : {kHalf, kBrain}) {
    Pairs<uint16_t> pairs = all_pairs(special_smalls(format));
    add_random(pairs, 100'000);
    Extremes<uint16_t>{format.type, format.infinity(), format.quiet(), 0x8000}.expect(pairs);
  }
}

// ---- Overflow ----

class InMode {
 public:
  explicit InMode(aclrtFloatOverflowMode mode) {
    EXPECT_SUCCESS(aclrtGetDeviceSatMode(&before_));
    EXPECT_SUCCESS(aclrtSetDeviceSatMode(mode));
    EXPECT_SUCCESS(aclrtCreateStream(&stream_));
    EXPECT_SUCCESS(aclrtSetDeviceSatMode(before_));  // a stream keeps the mode it was made in
  }
  ~InMode() { EXPECT_SUCCESS(aclrtDestroyStream(stream_)); }
  InMode(const InMode&) = delete;
  InMode& operator=(const InMode&) = delete;

  aclrtStream stream() const { return stream_; }

 private:
  aclrtFloatOverflowMode before_{};
  aclrtStream stream_ = nullptr;
};

TEST_F(Reduce, RED_15_InfinitiesAndNanByDefault) {
  aclrtFloatOverflowMode mode{};
  EXPECT_SUCCESS(aclrtGetDeviceSatMode(&mode));
  EXPECT_EQ(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
  EXPECT_EQ(reduced<uint32_t>({0x7F7FFFFF, 0xFF7FFFFF}, {0x7F7FFFFF, 0xFF7FFFFF}, kSum, ACL_FLOAT),
            (std::vector<uint32_t>{0x7F800000, 0xFF800000}));
  EXPECT_EQ(reduced<uint16_t>({0x7BFF, 0xFBFF}, {0x7BFF, 0xFBFF}, kSum, ACL_FLOAT16),
            (std::vector<uint16_t>{0x7C00, 0xFC00}));
  const InMode infinite(ACL_RT_OVERFLOW_MODE_INFNAN);
  EXPECT_EQ(reduced<uint16_t>({0x7F7F}, {0x7F7F}, kSum, ACL_BF16, infinite.stream()),
            (std::vector<uint16_t>{0x7F80}));
}

TEST_F(Reduce, RED_15_SaturationGivesTheLargestNumberAndZeroForNan) {
  const InMode saturating(ACL_RT_OVERFLOW_MODE_SATURATION);
  const aclrtStream stream = saturating.stream();
  const std::vector<uint32_t> singles = {0x7F7FFFFF, 0xFF7FFFFF, 0x7FC00000, 0x7F800000,
                                         0xFF800000, 0x3F800000, 0x7F800000, 0xFFC00001};
  const std::vector<uint32_t> others = {0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0x3F800000,
                                        0x3F800000, 0x3F800000, 0xFF800000, 0xFFC00001};
  EXPECT_EQ(
      reduced(singles, others, kSum, ACL_FLOAT, stream),
      (std::vector<uint32_t>{0x7F7FFFFF, 0xFF7FFFFF, 0, 0x7F7FFFFF, 0xFF7FFFFF, 0x40000000, 0, 0}));
  EXPECT_EQ(reduced(singles, others, kMax, ACL_FLOAT, stream),
            (std::vector<uint32_t>{0x7F7FFFFF, 0xFF7FFFFF, 0, 0x7F7FFFFF, 0x3F800000, 0x3F800000,
                                   0x7F7FFFFF, 0}));
  EXPECT_EQ(
      reduced<uint16_t>({0x7BFF, 0xFBFF, 0x7E00}, {0x7BFF, 0xFBFF, 0}, kSum, ACL_FLOAT16, stream),
      (std::vector<uint16_t>{0x7BFF, 0xFBFF, 0}));
  EXPECT_EQ(
      reduced<uint16_t>({0x7F7F, 0xFF7F, 0x7F81}, {0x7F7F, 0xFF7F, 0}, kSum, ACL_BF16, stream),
      (std::vector<uint16_t>{0x7F7F, 0xFF7F, 0}));
  EXPECT_EQ(reduced<uint16_t>({0x7F80}, {0xFF80}, kMin, ACL_BF16, stream),
            (std::vector<uint16_t>{0xFF7F}));
}

// ---- Products ----

struct ReduceProduct {
  const char* product;
  std::vector<aclDataType> types;
  std::vector<aclrtReduceKind> kinds;

  friend std::ostream& operator<<(std::ostream& out, const ReduceProduct& row) {
    return out << row.product;
  }
};

const std::vector<ReduceProduct> kReduceProducts = {
    {"a2", {ACL_FLOAT, ACL_FLOAT16, ACL_INT8, ACL_INT32, ACL_INT16, ACL_BF16}, {kSum, kMax, kMin}},
    {"a3", {ACL_FLOAT, ACL_FLOAT16, ACL_INT8, ACL_INT32, ACL_INT16, ACL_BF16}, {kSum, kMax, kMin}},
    {"950",
     {ACL_FLOAT, ACL_FLOAT16, ACL_INT8, ACL_INT32, ACL_INT16, ACL_UINT32, ACL_BF16},
     {kSum, kMax, kMin}},
    {"200i", {ACL_FLOAT, ACL_FLOAT16, ACL_INT8, ACL_INT32, ACL_INT16}, {kSum, kMax, kMin}},
    {"inf", {ACL_FLOAT, ACL_FLOAT16, ACL_INT16}, {kSum}},
    {"trn", {ACL_FLOAT}, {kSum}},
    {"ipv350", {}, {}},
};

class ReduceProducts : public testing::TestWithParam<ReduceProduct> {};
INSTANTIATE_TEST_SUITE_P(, ReduceProducts, testing::ValuesIn(kReduceProducts),
                         [](const testing::TestParamInfo<ReduceProduct>& row) {
                           return test_name_of_product(row.param.product);
                         });

TEST_P(ReduceProducts, RED_02_EachProductHasItsTypesAndKinds) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  const ContextSession session;
  const DeviceBlock to(64);
  const DeviceBlock from(64);
  for (const aclDataType type : {ACL_FLOAT, ACL_FLOAT16, ACL_INT8, ACL_INT32, ACL_INT16, ACL_UINT32,
                                 ACL_BF16, ACL_UINT8, ACL_INT64}) {
    for (const aclrtReduceKind kind : {kSum, kMax, kMin, kEqual}) {
      const auto has = [](const auto& list, auto value) {
        return std::find(list.begin(), list.end(), value) != list.end();
      };
      const bool supported = has(GetParam().types, type) && has(GetParam().kinds, kind);
      EXPECT_EQ(reduce(to.data(), from.data(), 64, kind, type),
                supported ? ACL_SUCCESS : kUnsupported)
          << "type " << type << ", kind " << kind;
    }
  }
  EXPECT_SUCCESS(finish(nullptr));
}

}  // namespace
}  // namespace understudy_test
