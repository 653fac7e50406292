// SPDX-License-Identifier: Apache-2.0
//
// Counting notifies. Only the 950 has them, so that every test runs in a process with that product.
// Covers: CNT-01, CNT-02, CNT-03, CNT-04, CNT-05, CNT-06, CNT-07, CNT-08, CNT-09, CNT-10, CNT-11,
// CNT-12, CNT-13, CNT-14.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "rules/notify_objects.h"
#include "rules/runtime_support.h"

namespace understudy_test::notify {
namespace {

#define US_ON_950()                                \
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"}); \
  ASSERT_SUCCESS(aclrtSetDevice(0))

constexpr auto kSet = ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE;
constexpr auto kAdd = ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE;
constexpr auto kOr = ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE;
constexpr auto kAnd = ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE;
constexpr auto kLess = ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE;
constexpr auto kEqual = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE;
constexpr auto kBigger = ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE;
constexpr auto kAtLeast = ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE;
constexpr auto kMask = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE;

aclrtCntNotifyWaitInfo wait_info(aclrtCntNotifyWaitMode mode, uint32_t value, bool clears = false,
                                 uint32_t seconds = 0) {
  return {mode, value, seconds, static_cast<uint8_t>(clears ? 1 : 0), {0xAA, 0xBB, 0xCC}};
}

class TestCounter {
 public:
  TestCounter() {
    EXPECT_SUCCESS(aclrtCntNotifyCreate(&counter_, 0));
    EXPECT_NE(counter_, nullptr);
  }
  ~TestCounter() {
    if (counter_ != nullptr) {
      EXPECT_SUCCESS(aclrtCntNotifyDestroy(counter_));
    }
  }
  TestCounter(const TestCounter&) = delete;
  TestCounter& operator=(const TestCounter&) = delete;

  aclrtCntNotify get() const { return counter_; }
  aclrtCntNotify release() { return std::exchange(counter_, nullptr); }
  void record(aclrtStream stream, aclrtCntNotifyRecordMode mode, uint32_t value) const {
    aclrtCntNotifyRecordInfo info{mode, value};
    EXPECT_SUCCESS(aclrtCntNotifyRecord(counter_, stream, &info));
    info = {enum_value<aclrtCntNotifyRecordMode>(77), ~value};  // was read before the call returned
  }
  void wait(aclrtStream stream, aclrtCntNotifyWaitInfo info) const {
    EXPECT_SUCCESS(aclrtCntNotifyWaitWithTimeout(counter_, stream, &info));
    info = wait_info(enum_value<aclrtCntNotifyWaitMode>(77), ~info.value);
  }
  // At once, on a stream without other tasks.
  void set(uint32_t value) const {
    record(nullptr, kSet, value);
    EXPECT_SUCCESS(finish_soon(nullptr));
  }
  // Whether a wait that is queued now goes on.
  bool lets_pass(const aclrtCntNotifyWaitInfo& info) const {
    const TestStream stream;
    wait(stream.get(), info);
    const bool passed = !is_held(stream.get());
    if (!passed) {
      EXPECT_SUCCESS(aclrtStreamAbort(stream.get()));
    }
    return passed;
  }
  bool is(uint32_t value) const { return lets_pass(wait_info(kEqual, value)); }

 private:
  aclrtCntNotify counter_ = nullptr;
};

// ---- Arguments ----

TEST(Cnt, CNT_01_NullIsRefusedFirst) {
  US_ON_950();
  const auto refuse = [] {
    const aclrtCntNotify some = address(0x1234);
    aclrtCntNotifyRecordInfo record{kSet, 1};
    aclrtCntNotifyWaitInfo wait = wait_info(kEqual, 1);
    uint32_t id = 77;
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyCreate(nullptr, 5));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyRecord(nullptr, nullptr, &record));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyRecord(some, nullptr, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyWaitWithTimeout(nullptr, nullptr, &wait));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyWaitWithTimeout(some, nullptr, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyReset(nullptr, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyGetId(nullptr, &id));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyGetId(some, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyDestroy(nullptr));
    EXPECT_EQ(id, 77u);
  };
  refuse();
  on_bare_thread(refuse);
}

TEST(Cnt, CNT_01_DestroyedAndForeignHandlesAreRefused) {
  US_ON_950();
  TestCounter ended;
  const aclrtCntNotify destroyed = ended.release();
  EXPECT_SUCCESS(aclrtCntNotifyDestroy(destroyed));
  const TestCounter next;  // may have its place
  const TestNotify plain;
  const TestStream stream;
  uint64_t variable[8] = {};
  for (const aclrtCntNotify handle : {destroyed, aclrtCntNotify{plain.get()},
                                      aclrtCntNotify{stream.get()}, aclrtCntNotify{&variable}}) {
    aclrtCntNotifyRecordInfo record{kSet, 1};
    aclrtCntNotifyWaitInfo wait = wait_info(kEqual, 1, false, 1);
    uint32_t id = 77;
    constexpr aclError kRefused = ACL_ERROR_RT_INVALID_HANDLE;
    EXPECT_FAILS(kRefused, aclrtCntNotifyRecord(handle, nullptr, &record));
    EXPECT_FAILS(kRefused, aclrtCntNotifyWaitWithTimeout(handle, nullptr, &wait));
    EXPECT_FAILS(kRefused, aclrtCntNotifyReset(handle, nullptr));
    EXPECT_FAILS(kRefused, aclrtCntNotifyGetId(handle, &id));
    EXPECT_FAILS(kRefused, aclrtCntNotifyDestroy(handle));
    EXPECT_EQ(id, 77u);
  }
  EXPECT_SUCCESS(finish_soon(nullptr));
  EXPECT_TRUE(next.is(0));
  uint32_t id = 77;
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtGetNotifyId(next.get(), &id));
}

class CntOnProductWithoutIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, CntOnProductWithoutIt, testing::Values("a2", "a3", "inf", "trn", "200i"),
                         [](const auto& parameter) { return "product_" + parameter.param; });

TEST_P(CntOnProductWithoutIt, CNT_01_ProductIsAskedAfterTheOuterCheck) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtCntNotify some = address(0x1234);
  aclrtCntNotify counter = untouched_address();
  aclrtCntNotifyRecordInfo record{enum_value<aclrtCntNotifyRecordMode>(9), 1};
  aclrtCntNotifyWaitInfo wait = wait_info(enum_value<aclrtCntNotifyWaitMode>(9), 1);
  uint32_t id = 77;
  constexpr aclError kLacks = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCntNotifyCreate(nullptr, 0));
  EXPECT_FAILS(kLacks, aclrtCntNotifyCreate(&counter, 0));
  EXPECT_FAILS(kLacks, aclrtCntNotifyCreate(&counter, 9));
  EXPECT_FAILS(kLacks, aclrtCntNotifyRecord(some, nullptr, &record));
  EXPECT_FAILS(kLacks, aclrtCntNotifyWaitWithTimeout(some, nullptr, &wait));
  EXPECT_FAILS(kLacks, aclrtCntNotifyReset(some, nullptr));
  EXPECT_FAILS(kLacks, aclrtCntNotifyGetId(some, &id));
  EXPECT_FAILS(kLacks, aclrtCntNotifyDestroy(some));
  EXPECT_EQ(counter, untouched_address());
  EXPECT_EQ(id, 77u);
}

TEST(Cnt, CNT_02_CreateChecksFlagAndContext) {
  US_ON_950();
  aclrtCntNotify counter = untouched_address();
  for (const uint64_t flag : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 32, UINT64_MAX}) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtCntNotifyCreate(&counter, flag));
  }
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtCntNotifyCreate(&counter, 1));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCntNotifyCreate(&counter, 0));
  });
  EXPECT_EQ(counter, untouched_address());
  for (int round = 0; round < 3; ++round) {
    const TestCounter fresh;
    EXPECT_TRUE(fresh.is(0));
    fresh.set(UINT32_MAX);
  }
}

TEST(Cnt, CNT_03_BothKindsShareTheLimit) {
  US_ON_950();
  constexpr uint32_t kMost = 65535;
  std::vector<aclrtCntNotify> counters(kMost - 1);
  for (aclrtCntNotify& each : counters) ASSERT_SUCCESS(aclrtCntNotifyCreate(&each, 0));
  aclrtNotify plain = nullptr;
  EXPECT_SUCCESS(aclrtCreateNotify(&plain, 0));
  void* more = untouched_address();
  EXPECT_FAILS(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, aclrtCntNotifyCreate(&more, 0));
  EXPECT_FAILS(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, aclrtCreateNotify(&more, 0));
  EXPECT_EQ(more, untouched_address());
  EXPECT_SUCCESS(aclrtDestroyNotify(plain));
  EXPECT_SUCCESS(aclrtCntNotifyCreate(&more, 0));
  // Another device has its own.
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_SUCCESS(aclrtCntNotifyCreate(&more, 0));
}

TEST(Cnt, CNT_04_StreamsAreCheckedAndNullIsTheDefaultStream) {
  US_ON_950();
  const TestCounter counter;
  TestStream ended;
  const aclrtStream destroyed = ended.release();
  EXPECT_SUCCESS(aclrtDestroyStream(destroyed));
  const aclrtContext own = runtime::current_context();
  const aclrtContext other = runtime::create_context(0);
  aclrtStream foreign = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&foreign));
  EXPECT_SUCCESS(aclrtSetCurrentContext(own));
  const struct {
    aclrtStream stream;
    aclError code;
  } cases[] = {{destroyed, ACL_ERROR_RT_INVALID_HANDLE}, {foreign, ACL_ERROR_RT_STREAM_CONTEXT}};
  aclrtCntNotifyRecordInfo record{kSet, 5};
  aclrtCntNotifyWaitInfo wait = wait_info(kEqual, 5);
  for (const auto& [stream, code] : cases) {
    EXPECT_FAILS(code, aclrtCntNotifyRecord(counter.get(), stream, &record));
    EXPECT_FAILS(code, aclrtCntNotifyWaitWithTimeout(counter.get(), stream, &wait));
    EXPECT_FAILS(code, aclrtCntNotifyReset(counter.get(), stream));
  }
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCntNotifyReset(counter.get(), nullptr));
  });
  EXPECT_TRUE(counter.is(0));
  // All three only queue, on the default stream.
  {
    const Gate gate(nullptr);
    counter.record(nullptr, kSet, 5);
    counter.wait(nullptr, wait_info(kEqual, 5));
    EXPECT_SUCCESS(aclrtCntNotifyReset(counter.get(), nullptr));
    EXPECT_TRUE(counter.is(0));
    EXPECT_TRUE(is_held(nullptr));
  }
  EXPECT_SUCCESS(finish_soon(nullptr));
  EXPECT_TRUE(counter.is(0));
  EXPECT_SUCCESS(aclrtDestroyContext(other));
}

// ---- Records ----

TEST(Cnt, CNT_05_UnknownModesAreRefused) {
  US_ON_950();
  const TestCounter counter;
  counter.set(3);
  for (const int64_t mode : {3, 5, 6, 7, 8, 77, -1}) {
    aclrtCntNotifyRecordInfo info{enum_value<aclrtCntNotifyRecordMode>(mode), 1};
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtCntNotifyRecord(counter.get(), nullptr, &info));
  }
  EXPECT_SUCCESS(finish_soon(nullptr));
  EXPECT_TRUE(counter.is(3));
}

TEST(Cnt, CNT_06_EveryModeChangesTheCounterInOneStep) {
  US_ON_950();
  const struct {
    aclrtCntNotifyRecordMode mode;
    uint32_t before;
    uint32_t value;
    uint32_t after;
  } cases[] = {{kSet, 7, 0, 0},
               {kSet, 7, UINT32_MAX, UINT32_MAX},
               {kAdd, 7, 5, 12},
               {kAdd, UINT32_MAX, 1, 0},
               {kAdd, UINT32_MAX, UINT32_MAX, UINT32_MAX - 1},
               {kOr, 0x0F0F0000, 0x00FF00FF, 0x0FFF00FF},
               {kAnd, 0x0F0F0000, 0x00FF00FF, 0x000F0000}};
  const TestCounter counter;
  for (const auto& each : cases) {
    SCOPED_TRACE(each.mode);
    counter.set(each.before);
    counter.record(nullptr, each.mode, each.value);
    EXPECT_SUCCESS(finish_soon(nullptr));
    EXPECT_TRUE(counter.is(each.after));
  }
  // No addition of several streams is lost.
  counter.set(0);
  constexpr int kStreams = 4;
  constexpr int kRounds = 500;
  std::vector<std::unique_ptr<TestStream>> streams;
  for (int i = 0; i < kStreams; ++i) streams.push_back(std::make_unique<TestStream>());
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& stream : streams) counter.record(stream->get(), kAdd, 3);
  }
  for (const auto& stream : streams) EXPECT_SUCCESS(finish_soon(stream->get()));
  EXPECT_TRUE(counter.is(3 * kStreams * kRounds));
}

TEST(Cnt, CNT_06_RecordsKeepTheOrderOfTheirStream) {
  US_ON_950();
  const TestCounter counter;
  const TestStream stream;
  {
    const Gate gate(stream.get());
    counter.record(stream.get(), kSet, 8);
    counter.record(stream.get(), kOr, 3);
    counter.record(stream.get(), kAdd, 1);
    counter.record(stream.get(), kAnd, 0xC);
    EXPECT_TRUE(counter.is(0));
  }
  EXPECT_SUCCESS(finish_soon(stream.get()));
  EXPECT_TRUE(counter.is(0xC));
}

// ---- Waits ----

TEST(Cnt, CNT_07_UnknownModesAndClearsAreRefused) {
  US_ON_950();
  const TestCounter counter;
  for (const int64_t mode : {5, 6, 77, -1}) {
    aclrtCntNotifyWaitInfo info = wait_info(enum_value<aclrtCntNotifyWaitMode>(mode), 0);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtCntNotifyWaitWithTimeout(counter.get(), nullptr, &info));
  }
  for (const uint8_t clear : std::initializer_list<uint8_t>{2, 3, 255}) {
    aclrtCntNotifyWaitInfo info = wait_info(kEqual, 77);
    info.isClear = clear;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtCntNotifyWaitWithTimeout(counter.get(), nullptr, &info));
  }
  EXPECT_SUCCESS(finish_soon(nullptr));
}

TEST(Cnt, CNT_08_EveryModeComparesUnsigned) {
  US_ON_950();
  constexpr uint32_t kHigh = 0x80000001;
  const struct {
    uint32_t count;
    aclrtCntNotifyWaitMode mode;
    uint32_t value;
    bool passes;
  } cases[] = {{4, kLess, 5, true},        {5, kLess, 5, false},     {kHigh, kLess, 5, false},
               {0, kLess, 0, false},       {5, kEqual, 5, true},     {4, kEqual, 5, false},
               {6, kBigger, 5, true},      {5, kBigger, 5, false},   {kHigh, kBigger, 5, true},
               {5, kAtLeast, 5, true},     {4, kAtLeast, 5, false},  {kHigh, kAtLeast, 5, true},
               {0x7, kMask, 0x5, true},    {0x4, kMask, 0x5, false}, {0, kMask, 0, true},
               {kHigh, kMask, kHigh, true}};
  const TestCounter counter;
  for (const auto& each : cases) {
    SCOPED_TRACE(testing::Message() << each.count << " mode " << each.mode << " " << each.value);
    counter.set(each.count);
    EXPECT_EQ(counter.lets_pass(wait_info(each.mode, each.value)), each.passes);
    EXPECT_TRUE(counter.is(each.count));
  }
}

TEST(Cnt, CNT_08_LaterTasksAreHeldUntilTheConditionHolds) {
  US_ON_950();
  const TestCounter counter;
  const TestStream stream;
  TaskCounter tasks;
  counter.wait(stream.get(), wait_info(kAtLeast, 3));
  tasks.queue_on(stream.get());
  for (const uint32_t value : {1, 2}) {
    counter.set(value);
    EXPECT_TRUE(is_held(stream.get()));
    EXPECT_EQ(tasks.runs(), 0);
  }
  counter.set(3);
  EXPECT_SUCCESS(finish_soon(stream.get()));
  EXPECT_EQ(tasks.runs(), 1);
  // A counter that falls is a change as well.
  counter.wait(stream.get(), wait_info(kLess, 2));
  EXPECT_TRUE(is_held(stream.get()));
  EXPECT_SUCCESS(aclrtCntNotifyReset(counter.get(), nullptr));
  EXPECT_SUCCESS(finish_soon(stream.get()));
}

TEST(Cnt, CNT_09_ClearingWaitsAreServedOneAtATime) {
  US_ON_950();
  constexpr int kStreams = 6;
  const TestCounter counter;
  std::vector<std::unique_ptr<TestStream>> streams;
  TaskCounter tasks;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<TestStream>());
    counter.wait(streams.back()->get(), wait_info(kBigger, 9, true));
    tasks.queue_on(streams.back()->get());
  }
  for (int i = 1; i <= kStreams; ++i) {
    counter.set(10);
    while (tasks.runs() < i) std::this_thread::yield();
    for (const auto& stream : streams) (void)is_held(stream->get());
    EXPECT_EQ(tasks.runs(), i);
    EXPECT_TRUE(counter.is(0));
  }
  // One that does not clear leaves it to all.
  for (const auto& stream : streams) counter.wait(stream->get(), wait_info(kEqual, 4));
  counter.set(4);
  for (const auto& stream : streams) EXPECT_SUCCESS(finish_soon(stream->get()));
  EXPECT_TRUE(counter.is(4));
}

TEST(Cnt, CNT_10_TimeOverFailsTheTaskAndLeavesTheCounter) {
  US_ON_950();
  const TestCounter counter;
  counter.set(2);
  const TestStream stream;
  TaskCounter tasks;
  counter.wait(stream.get(), wait_info(kEqual, 5, true, 1));
  tasks.queue_on(stream.get());
  EXPECT_FAILS(ACL_ERROR_RT_WAIT_TIMEOUT,
               aclrtSynchronizeStreamWithTimeout(stream.get(), kPatience));
  EXPECT_EQ(tasks.runs(), 1);
  EXPECT_SUCCESS(finish_soon(stream.get()));
  EXPECT_TRUE(counter.is(2));
  counter.wait(stream.get(), wait_info(kEqual, 5, true, UINT32_MAX));
  EXPECT_TRUE(is_held(stream.get()));
  counter.set(5);
  EXPECT_SUCCESS(finish_soon(stream.get()));
}

TEST(Cnt, CNT_11_ResetTakesEffectInStreamOrder) {
  US_ON_950();
  const TestCounter counter;
  const TestStream stream;
  {
    const Gate gate(stream.get());
    counter.record(stream.get(), kSet, 6);
    EXPECT_SUCCESS(aclrtCntNotifyReset(counter.get(), stream.get()));
    counter.record(stream.get(), kAdd, 2);
    EXPECT_TRUE(counter.is(0));
  }
  EXPECT_SUCCESS(finish_soon(stream.get()));
  EXPECT_TRUE(counter.is(2));
}

TEST(Cnt, CNT_12_StreamsOfOtherDevicesAndContextsRecordAndWait) {
  US_ON_950();
  const TestCounter counter;
  const aclrtContext own = runtime::current_context();
  for (const int32_t device : {0, 1}) {
    SCOPED_TRACE(device);
    const aclrtContext other = runtime::create_context(device);
    aclrtStream there = nullptr;
    ASSERT_SUCCESS(aclrtCreateStream(&there));
    counter.record(there, kSet, 4);
    counter.wait(there, wait_info(kEqual, 9, true));
    EXPECT_SUCCESS(aclrtSetCurrentContext(own));
    while (!counter.is(4)) std::this_thread::yield();
    counter.set(9);
    EXPECT_SUCCESS(aclrtSetCurrentContext(other));
    EXPECT_SUCCESS(finish_soon(there));
    EXPECT_SUCCESS(aclrtDestroyContext(other));
    EXPECT_SUCCESS(aclrtSetCurrentContext(own));
    EXPECT_TRUE(counter.is(0));
  }
}

TEST(Cnt, CNT_13_IdsAreUnique) {
  US_ON_950();
  std::vector<std::unique_ptr<TestCounter>> counters;
  std::set<uint32_t> ids;
  for (int i = 0; i < 100; ++i) {
    counters.push_back(std::make_unique<TestCounter>());
    uint32_t id = 0;
    EXPECT_SUCCESS(aclrtCntNotifyGetId(counters.back()->get(), &id));
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
}

TEST(Cnt, CNT_14_QueuedTasksOutliveTheHandle) {
  US_ON_950();
  const TestStream first;
  const TestStream second;
  TaskCounter tasks;
  TestCounter counter;
  {
    const Gate gate(first.get());
    counter.record(first.get(), kAdd, 3);
    EXPECT_SUCCESS(aclrtCntNotifyReset(counter.get(), first.get()));
    counter.record(first.get(), kAdd, 4);
    counter.wait(second.get(), wait_info(kEqual, 4));
    tasks.queue_on(second.get());
    EXPECT_SUCCESS(aclrtCntNotifyDestroy(counter.release()));
    const TestCounter next;
    next.set(4);
    EXPECT_TRUE(is_held(second.get()));
  }
  EXPECT_SUCCESS(finish_soon(second.get()));
  EXPECT_EQ(tasks.runs(), 1);
  // Where nothing can end a wait any more, an abort does.
  TestCounter forgotten;
  forgotten.wait(second.get(), wait_info(kEqual, 1));
  EXPECT_SUCCESS(aclrtCntNotifyDestroy(forgotten.release()));
  EXPECT_TRUE(is_held(second.get()));
  EXPECT_SUCCESS(aclrtStreamAbort(second.get()));
}

}  // namespace
}  // namespace understudy_test::notify
