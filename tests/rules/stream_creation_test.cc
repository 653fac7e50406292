// SPDX-License-Identifier: Apache-2.0
//
// Creating streams: arguments, priorities, flags, how many there can be, and what tells them apart.
// Covers: STREAM-01, STREAM-02, STREAM-03, STREAM-04, STREAM-05, STREAM-20, STREAM-21, STREAM-22,
// STREAM-32.
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using StreamCreation = DeviceTest;

constexpr uint32_t kEveryFlag[] = {ACL_STREAM_FAST_LAUNCH,  ACL_STREAM_FAST_SYNC,
                                   ACL_STREAM_PERSISTENT,   ACL_STREAM_HUGE,
                                   ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY};
constexpr uint32_t kKnownFlags = 0x3F;

void expect_create_refused(aclError code, uint32_t priority, uint32_t flags) {
  const uint32_t left = streams_left();
  aclrtStream stream = untouched_address();
  EXPECT_FAILS(code, aclrtCreateStreamWithConfig(&stream, priority, flags));
  EXPECT_EQ(stream, untouched_address());
  EXPECT_EQ(streams_left(), left);
}

uint32_t priority_of(aclrtStream stream) {
  uint32_t priority = 0xAAAAAAAA;
  EXPECT_SUCCESS(aclrtStreamGetPriority(stream, &priority));
  return priority;
}

uint32_t flags_of(aclrtStream stream) {
  uint32_t flags = 0xAAAAAAAA;
  EXPECT_SUCCESS(aclrtStreamGetFlags(stream, &flags));
  return flags;
}

void expect_runs_tasks_in_order(aclrtStream stream) {
  TargetPage page;
  Gate gate(stream);
  page.queue_set(stream, 1);
  page.queue_set(stream, 2);
  EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
               aclrtSynchronizeStreamWithTimeout(stream, kShortLimit));
  EXPECT_TRUE(page.holds(TargetPage::kInitial));
  gate.open();
  expect_finishes(stream);
  EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
  EXPECT_TRUE(page.holds(2));
}

TEST_F(StreamCreation, STREAM_01_NullIsRefused) {
  const uint32_t left = streams_left();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateStream(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateStreamWithConfig(nullptr, 0, 0));
  EXPECT_EQ(streams_left(), left);
  on_bare_thread([] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateStream(nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateStreamWithConfig(nullptr, 0, 0));
  });
}

TEST_F(StreamCreation, STREAM_01_AContextIsNeeded) {
  const uint32_t left = streams_left();
  on_bare_thread([] {
    aclrtStream stream = untouched_address();
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCreateStream(&stream));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCreateStreamWithConfig(&stream, 0, 0));
    EXPECT_EQ(stream, untouched_address());
  });
  EXPECT_EQ(streams_left(), left);
}

TEST_F(StreamCreation, STREAM_01_BothFunctionsGiveAStreamOfItsOwn) {
  aclrtStream plain = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&plain));
  const TestStream configured;
  EXPECT_NE(plain, nullptr);
  EXPECT_NE(configured.get(), nullptr);
  EXPECT_NE(plain, configured.get());
  EXPECT_NE(plain, runtime::default_stream());
  EXPECT_NE(configured.get(), runtime::default_stream());
  expect_runs_tasks_in_order(plain);
  expect_runs_tasks_in_order(configured.get());
  EXPECT_SUCCESS(aclrtDestroyStream(plain));
}

TEST_F(StreamCreation, STREAM_02_STREAM_21_PrioritiesAboveSevenAreClamped) {
  const struct {
    uint32_t given;
    uint32_t seen;
  } cases[] = {{0, 0}, {1, 1}, {6, 6}, {7, 7}, {8, 7}, {100, 7}, {0xFFFFFFFF, 7}};
  for (const auto& [given, seen] : cases) {
    SCOPED_TRACE(given);
    const TestStream stream(given);
    EXPECT_EQ(priority_of(stream.get()), seen);
    expect_runs_tasks_in_order(stream.get());
  }
}

TEST_F(StreamCreation, STREAM_03_FastFlagsChangeNothingObservable) {
  for (const uint32_t flags : {ACL_STREAM_FAST_LAUNCH, ACL_STREAM_FAST_SYNC,
                               ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC}) {
    SCOPED_TRACE(flags);
    const TestStream stream(3, flags);
    EXPECT_EQ(flags_of(stream.get()), flags);
    EXPECT_EQ(priority_of(stream.get()), 3u);
    expect_runs_tasks_in_order(stream.get());
  }
}

TEST_F(StreamCreation, STREAM_04_DeviceUseOnlyStandsAlone) {
  const TestStream alone(0, ACL_STREAM_DEVICE_USE_ONLY);
  EXPECT_EQ(flags_of(alone.get()), ACL_STREAM_DEVICE_USE_ONLY);
  for (const uint32_t flag : kEveryFlag) {
    if (flag == ACL_STREAM_DEVICE_USE_ONLY) continue;
    SCOPED_TRACE(flag);
    expect_create_refused(ACL_ERROR_RT_PARAM_INVALID, 0, ACL_STREAM_DEVICE_USE_ONLY | flag);
  }
  expect_create_refused(ACL_ERROR_RT_PARAM_INVALID, 0, kKnownFlags);
}

TEST_F(StreamCreation, STREAM_04_UnknownBitsAreIgnored) {
  for (const uint32_t bits : {0x40u, 0x80000000u, ~kKnownFlags}) {
    SCOPED_TRACE(bits);
    const TestStream plain(0, bits);
    expect_runs_tasks_in_order(plain.get());
    const TestStream fast(0, bits | ACL_STREAM_FAST_SYNC);
    EXPECT_EQ(flags_of(fast.get()) & kKnownFlags, ACL_STREAM_FAST_SYNC);
    const TestStream device_only(0, bits | ACL_STREAM_DEVICE_USE_ONLY);
    EXPECT_EQ(flags_of(device_only.get()) & kKnownFlags, ACL_STREAM_DEVICE_USE_ONLY);
  }
}

// ---- What products differ in ----

struct StreamProduct {
  std::string product;
  uint32_t most_streams;

  friend std::ostream& operator<<(std::ostream& out, const StreamProduct& rules) {
    return out << rules.product;
  }
};

class StreamOfProduct : public testing::TestWithParam<StreamProduct> {};

TEST_P(StreamOfProduct, STREAM_04_HugeIsAcceptedAndHasNoEffect_C1) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  const ContextSession session;
  for (const uint32_t flags : {ACL_STREAM_HUGE, ACL_STREAM_HUGE | ACL_STREAM_FAST_SYNC}) {
    const TestStream stream(0, flags);
    EXPECT_EQ(flags_of(stream.get()), flags);
    TaskCounter counter;
    counter.queue_on(stream.get());
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
    EXPECT_EQ(counter.runs(), 1);
  }
}

TEST_P(StreamOfProduct, STREAM_05_STREAM_22_STREAM_32_TheLimitIsReachedExactly) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  const ContextSession session;
  EXPECT_EQ(streams_left(), GetParam().most_streams - 1) << "the default stream counts";
  std::vector<std::unique_ptr<TestStream>> streams;
  for (uint32_t made = 1; made < GetParam().most_streams; ++made) {
    ASSERT_EQ(streams_left(), GetParam().most_streams - made);
    streams.push_back(std::make_unique<TestStream>());
    ASSERT_NE(streams.back()->get(), nullptr);
  }
  EXPECT_EQ(streams_left(), 0u);
  expect_create_refused(ACL_ERROR_RT_NO_STREAM_RESOURCE, 0, 0);
  aclrtStream stream = untouched_address();
  EXPECT_FAILS(ACL_ERROR_RT_NO_STREAM_RESOURCE, aclrtCreateStream(&stream));
  EXPECT_EQ(stream, untouched_address());
  aclrtContext context = untouched_address();
  EXPECT_FAILS(ACL_ERROR_RT_NO_STREAM_RESOURCE, aclrtCreateContext(&context, 0));
  EXPECT_EQ(context, untouched_address());

  streams.pop_back();
  EXPECT_EQ(streams_left(), 1u);
  streams.push_back(std::make_unique<TestStream>());
  EXPECT_EQ(streams_left(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Products, StreamOfProduct,
                         testing::Values(StreamProduct{"a2", 1984}, StreamProduct{"a3", 1984},
                                         StreamProduct{"950", 1984}, StreamProduct{"inf", 1024},
                                         StreamProduct{"trn", 2048}, StreamProduct{"200i", 512},
                                         StreamProduct{"200i-rc", 512},
                                         StreamProduct{"ipv350", 1024}),
                         [](const auto& rules) {
                           return test_name_of_product(rules.param.product);
                         });

TEST_F(StreamCreation, STREAM_05_STREAM_22_StreamsAreCountedPerDevice) {
  const uint32_t left = streams_left();
  const TestStream stream;
  EXPECT_EQ(streams_left(), left - 1);
  {
    const ContextScope same_device(0);
    EXPECT_EQ(streams_left(), left - 2) << "contexts of a device share its streams";
    const TestStream another;
    EXPECT_EQ(streams_left(), left - 3);
  }
  EXPECT_EQ(streams_left(), left - 1);
  {
    const ContextScope other_device(1);
    EXPECT_EQ(streams_left(), left) << "both have a default stream";
  }
}

TEST_F(StreamCreation, STREAM_05_STREAM_22_StreamsThatEndWithTheirContextAreGivenBack) {
  const uint32_t left = streams_left();
  ContextScope context(0);
  for (int i = 0; i < 3; ++i) {
    aclrtStream stream = nullptr;
    ASSERT_SUCCESS(aclrtCreateStream(&stream));
  }
  EXPECT_EQ(streams_left(), left - 4) << "with the default stream";
  context.destroy();
  EXPECT_EQ(streams_left(), left);
}

TEST_F(StreamCreation, STREAM_22_APlaceAndAContextAreNeeded) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetStreamAvailableNum(nullptr));
  on_bare_thread([] {
    uint32_t count = 77;
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetStreamAvailableNum(nullptr));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetStreamAvailableNum(&count));
    EXPECT_EQ(count, 77u);
  });
}

// ---- Ids, priorities, flags ----

TEST_F(StreamCreation, STREAM_20_STREAM_21_AnOutputIsNeeded) {
  const TestStream stream;
  for (const aclrtStream name : {stream.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(name);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtStreamGetId(name, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtStreamGetPriority(name, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtStreamGetFlags(name, nullptr));
  }
}

TEST_F(StreamCreation, STREAM_20_IdsAreUniqueAmongTheStreamsOfADevice) {
  std::vector<std::unique_ptr<TestStream>> streams;
  std::set<int32_t> ids = {id_of(nullptr)};
  const auto add_streams = [&] {
    for (int i = 0; i < 50; ++i) {
      streams.push_back(std::make_unique<TestStream>());
      EXPECT_TRUE(ids.insert(id_of(streams.back()->get())).second);
    }
  };
  add_streams();
  // Gaps are filled again, but never with an id in use.
  for (size_t i = 0; i < 25; ++i) {
    ids.erase(id_of(streams.front()->get()));
    streams.erase(streams.begin());
  }
  add_streams();
  for (const auto& stream : streams) EXPECT_EQ(ids.count(id_of(stream->get())), 1u);

  const ContextScope other(0);
  EXPECT_TRUE(ids.insert(id_of(nullptr)).second) << "of the other context's default stream";
  const TestStream in_other;
  EXPECT_TRUE(ids.insert(id_of(in_other.get())).second);
}

TEST_F(StreamCreation, STREAM_20_NullIsTheDefaultStream) {
  EXPECT_EQ(id_of(nullptr), id_of(runtime::default_stream()));
  EXPECT_EQ(id_of(nullptr), id_of(nullptr));
}

TEST_F(StreamCreation, STREAM_21_ValuesAreThoseOfTheCreation) {
  for (const uint32_t flags :
       {0u, ACL_STREAM_FAST_LAUNCH, ACL_STREAM_FAST_SYNC, ACL_STREAM_PERSISTENT,
        ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY,
        ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT}) {
    SCOPED_TRACE(flags);
    const TestStream stream(5, flags);
    EXPECT_EQ(flags_of(stream.get()), flags);
    EXPECT_EQ(priority_of(stream.get()), 5u);
  }
  EXPECT_EQ(priority_of(nullptr), priority_of(runtime::default_stream()));
  EXPECT_EQ(flags_of(nullptr), flags_of(runtime::default_stream()));
  EXPECT_LE(priority_of(nullptr), 7u);
}

}  // namespace
}  // namespace understudy_test
