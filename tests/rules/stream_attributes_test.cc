// SPDX-License-Identifier: Apache-2.0
//
// What is kept with a stream: attributes, the failure mode, the overflow switch; and the callbacks
// that see streams come and go.
// Covers: STREAM-21, STREAM-23, STREAM-24, STREAM-25, STREAM-26, STREAM-27, STREAM-33, STREAM-34.
#include <algorithm>
#include <iterator>
#include <thread>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/product_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using StreamAttributes = DeviceTest;

constexpr aclrtStreamAttr kEveryAttribute[] = {
    ACL_STREAM_ATTR_FAILURE_MODE, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK,
    ACL_STREAM_ATTR_USER_CUSTOM_TAG, ACL_STREAM_ATTR_CACHE_OP_INFO, ACL_STREAM_ATTR_PRIORITY};

// The member of the union that belongs to the attribute.
uint64_t number_in(const aclrtStreamAttrValue& value, aclrtStreamAttr attribute) {
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return value.failureMode;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      return value.overflowSwitch;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      return value.userCustomTag;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      return value.cacheOpInfoSwitch;
    case ACL_STREAM_ATTR_PRIORITY:
      return value.streamPriority;
  }
  ADD_FAILURE() << "unknown attribute " << attribute;
  return 0;
}

uint64_t stored(aclrtStream stream, aclrtStreamAttr attribute) {
  return number_in(attribute_of(stream, attribute), attribute);
}

aclrtStreamAttrValue value_with(uint64_t number) {
  aclrtStreamAttrValue value;
  std::fill(std::begin(value.reserve), std::end(value.reserve), 0u);
  value.failureMode = number;
  return value;
}

aclError store(aclrtStream stream, aclrtStreamAttr attribute, uint64_t number) {
  aclrtStreamAttrValue value = value_with(number);
  return aclrtSetStreamAttribute(stream, attribute, &value);
}

bool untouched(const aclrtStreamAttrValue& value) {
  return std::all_of(std::begin(value.reserve), std::end(value.reserve),
                     [](uint32_t word) { return word == 0x5a5a5a5a; });
}

aclrtStreamAttrValue untouched_value() {
  aclrtStreamAttrValue value;
  std::fill(std::begin(value.reserve), std::end(value.reserve), 0x5a5a5a5au);
  return value;
}

uint32_t overflow_switch(aclrtStream stream) {
  uint32_t flag = 0xAAAAAAAA;
  EXPECT_SUCCESS(aclrtGetStreamOverflowSwitch(stream, &flag));
  return flag;
}

TEST_F(StreamAttributes, STREAM_23_STREAM_24_AValueIsNeeded) {
  const TestStream stream;
  for (const aclrtStreamAttr attribute : kEveryAttribute) {
    SCOPED_TRACE(attribute);
    for (const aclrtStream name : {stream.get(), aclrtStream{nullptr}}) {
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetStreamAttribute(name, attribute, nullptr));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetStreamAttribute(name, attribute, nullptr));
    }
  }
}

TEST_F(StreamAttributes, STREAM_23_STREAM_24_UnknownAttributesAreRefused) {
  const TestStream stream;
  for (const int64_t number : {0, 6, 7, 99, -1}) {
    SCOPED_TRACE(number);
    const auto attribute = enum_value<aclrtStreamAttr>(number);
    aclrtStreamAttrValue given = value_with(1);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtSetStreamAttribute(stream.get(), attribute, &given));
    aclrtStreamAttrValue seen = untouched_value();
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtGetStreamAttribute(stream.get(), attribute, &seen));
    EXPECT_TRUE(untouched(seen));
  }
  for (const aclrtStreamAttr attribute : kEveryAttribute)
    EXPECT_EQ(stored(stream.get(), attribute), 0u);
}

TEST_F(StreamAttributes, STREAM_24_WhatWasNeverSetIsZeroAndThePriorityThatOfTheStream) {
  const TestStream stream(4);
  for (const aclrtStreamAttr attribute : kEveryAttribute) {
    SCOPED_TRACE(attribute);
    EXPECT_EQ(stored(stream.get(), attribute), attribute == ACL_STREAM_ATTR_PRIORITY ? 4u : 0u);
  }
}

TEST_F(StreamAttributes, STREAM_23_STREAM_24_ValuesAreStoredPerStream) {
  const TestStream created;
  const TestStream bystander(2);
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    EXPECT_SUCCESS(store(stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, 1));
    EXPECT_SUCCESS(store(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, 0xFFFFFFFF));
    EXPECT_SUCCESS(store(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, 0xC0FFEE));
    EXPECT_SUCCESS(store(stream, ACL_STREAM_ATTR_CACHE_OP_INFO, 1));
    EXPECT_SUCCESS(store(stream, ACL_STREAM_ATTR_PRIORITY, 5));
    EXPECT_EQ(stored(stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK), 1u);
    EXPECT_EQ(stored(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG), 0xC0FFEEu);
    EXPECT_EQ(stored(stream, ACL_STREAM_ATTR_CACHE_OP_INFO), 1u);
    EXPECT_EQ(stored(stream, ACL_STREAM_ATTR_PRIORITY), 5u);
    EXPECT_EQ(stored(stream, ACL_STREAM_ATTR_FAILURE_MODE), ACL_CONTINUE_ON_FAILURE);
  }
  EXPECT_EQ(stored(runtime::default_stream(), ACL_STREAM_ATTR_USER_CUSTOM_TAG), 0xC0FFEEu);
  for (const aclrtStreamAttr attribute : kEveryAttribute) {
    SCOPED_TRACE(attribute);
    EXPECT_EQ(stored(bystander.get(), attribute), attribute == ACL_STREAM_ATTR_PRIORITY ? 2u : 0u);
  }
}

TEST_F(StreamAttributes, STREAM_21_STREAM_23_ThePriorityIsTheStreamsAndClamped_C4) {
  const TestStream stream(1);
  for (const uint32_t given : {6u, 0u, 7u, 8u, 0xFFFFFFFFu}) {
    SCOPED_TRACE(given);
    EXPECT_SUCCESS(store(stream.get(), ACL_STREAM_ATTR_PRIORITY, given));
    const uint32_t expected = std::min(given, 7u);
    uint32_t seen = 0xAAAAAAAA;
    EXPECT_SUCCESS(aclrtStreamGetPriority(stream.get(), &seen));
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(stored(stream.get(), ACL_STREAM_ATTR_PRIORITY), expected);
  }
}

TEST_F(StreamAttributes, STREAM_23_STREAM_26_TheOverflowCheckIsTheOverflowSwitch) {
  const TestStream stream;
  EXPECT_SUCCESS(store(stream.get(), ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, 1));
  EXPECT_EQ(overflow_switch(stream.get()), 1u);
  EXPECT_SUCCESS(aclrtSetStreamOverflowSwitch(stream.get(), 0));
  EXPECT_EQ(stored(stream.get(), ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK), 0u);
}

TEST_F(StreamAttributes, STREAM_26_TheOverflowSwitchIsStoredPerStream) {
  const TestStream stream;
  const TestStream bystander;
  EXPECT_EQ(overflow_switch(stream.get()), 0u);
  for (const uint32_t flag : {1u, 1u, 0u, 1u}) {
    EXPECT_SUCCESS(aclrtSetStreamOverflowSwitch(stream.get(), flag));
    EXPECT_EQ(overflow_switch(stream.get()), flag);
  }
  EXPECT_EQ(overflow_switch(bystander.get()), 0u);
  EXPECT_EQ(overflow_switch(nullptr), 0u);
  EXPECT_SUCCESS(aclrtSetStreamOverflowSwitch(nullptr, 1));
  EXPECT_EQ(overflow_switch(runtime::default_stream()), 1u);
  EXPECT_NE(aclrtGetStreamOverflowSwitch(stream.get(), nullptr), ACL_SUCCESS);
}

// ---- Failure mode: what is stored (stream_stop_mode_test.cc has what it does) ----

// Each test has contexts of its own: the mode cannot be taken back.
class FailureMode : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    context_.emplace(0);
  }
  void TearDown() override {
    context_.reset();
    DeviceTest::TearDown();
  }

  std::optional<ContextScope> context_;
};

struct SetModeFunction {
  const char* name;
  aclError (*call)(aclrtStream stream, uint64_t mode);
};
constexpr SetModeFunction kSetModeFunctions[] = {
    {"aclrtSetStreamFailureMode", aclrtSetStreamFailureMode},
    {"aclrtSetStreamAttribute",
     [](aclrtStream stream, uint64_t mode) {
       return store(stream, ACL_STREAM_ATTR_FAILURE_MODE, mode);
     }},
};

TEST_F(FailureMode, STREAM_23_STREAM_25_UnknownModesAreRefused) {
  const TestStream created;
  for (const SetModeFunction& set_mode : kSetModeFunctions) {
    for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
      for (const uint64_t mode : {uint64_t{2}, uint64_t{1} << 32, UINT64_MAX}) {
        SCOPED_TRACE(mode);
        (void)recent_error();
        EXPECT_TRUE(
            fails_with(ACL_ERROR_RT_PARAM_INVALID, set_mode.call(stream, mode), set_mode.name));
        EXPECT_EQ(failure_mode_of(stream), ACL_CONTINUE_ON_FAILURE);
      }
    }
  }
}

TEST_F(FailureMode, STREAM_25_ContinueMayBeSetWhileItHolds) {
  const TestStream stream;
  for (const SetModeFunction& set_mode : kSetModeFunctions) {
    SCOPED_TRACE(set_mode.name);
    EXPECT_SUCCESS(set_mode.call(stream.get(), ACL_CONTINUE_ON_FAILURE));
    EXPECT_SUCCESS(set_mode.call(stream.get(), ACL_CONTINUE_ON_FAILURE));
    EXPECT_SUCCESS(set_mode.call(nullptr, ACL_CONTINUE_ON_FAILURE));
    EXPECT_EQ(failure_mode_of(stream.get()), ACL_CONTINUE_ON_FAILURE);
  }
}

TEST_F(FailureMode, STREAM_25_FromStopThereIsNoWayBack) {
  for (const SetModeFunction& set_mode : kSetModeFunctions) {
    SCOPED_TRACE(set_mode.name);
    const ContextScope context(0);
    const TestStream stream;
    EXPECT_SUCCESS(set_mode.call(stream.get(), ACL_STOP_ON_FAILURE));
    EXPECT_SUCCESS(set_mode.call(stream.get(), ACL_STOP_ON_FAILURE));
    EXPECT_EQ(failure_mode_of(stream.get()), ACL_STOP_ON_FAILURE);
    (void)recent_error();
    EXPECT_TRUE(fails_with(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           set_mode.call(stream.get(), ACL_CONTINUE_ON_FAILURE), set_mode.name));
    EXPECT_EQ(failure_mode_of(stream.get()), ACL_STOP_ON_FAILURE);
  }
}

TEST_F(FailureMode, STREAM_25_StopHoldsForEveryStreamOfTheContext) {
  for (const SetModeFunction& set_mode : kSetModeFunctions) {
    SCOPED_TRACE(set_mode.name);
    const ContextScope context(0);
    const TestStream first;
    const TestStream second;
    EXPECT_SUCCESS(set_mode.call(first.get(), ACL_STOP_ON_FAILURE));
    const TestStream later;
    for (const aclrtStream stream :
         {first.get(), second.get(), later.get(), aclrtStream{nullptr}}) {
      EXPECT_EQ(failure_mode_of(stream), ACL_STOP_ON_FAILURE);
      (void)recent_error();
      EXPECT_TRUE(fails_with(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                             set_mode.call(stream, ACL_CONTINUE_ON_FAILURE), set_mode.name));
    }
    context.leave();
    EXPECT_EQ(failure_mode_of(nullptr), ACL_CONTINUE_ON_FAILURE) << "another context";
    context.enter();
  }
}

TEST_F(FailureMode, STREAM_25_NullIsTheDefaultStream) {
  const TestStream stream;
  EXPECT_SUCCESS(aclrtSetStreamFailureMode(nullptr, ACL_STOP_ON_FAILURE));
  EXPECT_EQ(failure_mode_of(runtime::default_stream()), ACL_STOP_ON_FAILURE);
  EXPECT_EQ(failure_mode_of(stream.get()), ACL_STOP_ON_FAILURE);
}

// ---- What products differ in ----

class StreamAttributesOn : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, StreamAttributesOn, every_product(), product_name);

TEST_P(StreamAttributesOn, STREAM_33_SomeProductsChangeThePriority) {
  US_ON_PRODUCT();
  const ContextSession session;
  const TestStream stream(3);
  const aclError refused = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  for (const uint32_t priority : {0u, 7u, 5u}) {
    aclrtStreamAttrValue value = value_with(priority);
    EXPECT_SUPPORTED(is_modern(),
                     aclrtSetStreamAttribute(stream.get(), ACL_STREAM_ATTR_PRIORITY, &value));
    uint32_t seen = 0xAAAAAAAA;
    EXPECT_SUCCESS(aclrtStreamGetPriority(stream.get(), &seen));
    EXPECT_EQ(seen, is_modern() ? priority : 3u);
  }
  aclrtStreamAttrValue value = untouched_value();
  EXPECT_EQ(aclrtGetStreamAttribute(stream.get(), ACL_STREAM_ATTR_PRIORITY, &value),
            is_modern() ? ACL_SUCCESS : refused);
  EXPECT_EQ(untouched(value), !is_modern());
}

TEST_P(StreamAttributesOn, STREAM_34_OlderProductsLackTheOverflowSwitch) {
  US_ON_PRODUCT();
  const ContextSession session;
  const TestStream stream;
  uint32_t flag = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetStreamOverflowSwitch(stream.get(), nullptr));
  EXPECT_SUPPORTED(!is_older(), aclrtSetStreamOverflowSwitch(stream.get(), 1));
  EXPECT_SUPPORTED(!is_older(), aclrtGetStreamOverflowSwitch(stream.get(), &flag));
  EXPECT_EQ(flag, is_older() ? 77u : 1u);
}

TEST_P(StreamAttributesOn, STREAM_34_OlderProductsNeitherAbortNorStop) {
  US_ON_PRODUCT();
  const ContextSession session;
  const TestStream stream;
  EXPECT_SUPPORTED(!is_older(), aclrtStreamAbort(stream.get()));
  EXPECT_SUPPORTED(!is_older(), aclrtStreamAbort(nullptr));
  EXPECT_SUPPORTED(!is_older(), aclrtStreamStop(stream.get()));
  EXPECT_FAILS(is_older() ? ACL_ERROR_RT_FEATURE_NOT_SUPPORT : ACL_ERROR_RT_PARAM_INVALID,
               aclrtStreamStop(nullptr));
}

TEST_P(StreamAttributesOn, STREAM_34_DefaultStreamsOfOlderProductsHaveNoAttributes) {
  US_ON_PRODUCT();
  const ContextSession session;
  aclrtStreamAttrValue value = value_with(1);
  aclrtStreamAttrValue seen = untouched_value();
  const auto set = [&] {
    return aclrtSetStreamAttribute(nullptr, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value);
  };
  const auto get = [&] {
    return aclrtGetStreamAttribute(nullptr, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &seen);
  };
  const auto set_mode = [] { return aclrtSetStreamFailureMode(nullptr, ACL_CONTINUE_ON_FAILURE); };
  const aclError code = is_older() ? ACL_ERROR_RT_PARAM_INVALID : ACL_SUCCESS;
  EXPECT_EQ(set(), code);
  EXPECT_EQ(get(), code);
  EXPECT_EQ(set_mode(), code);
  EXPECT_EQ(untouched(seen), is_older());
  const TestStream stream;
  EXPECT_SUCCESS(store(stream.get(), ACL_STREAM_ATTR_USER_CUSTOM_TAG, 5));
  EXPECT_EQ(stored(stream.get(), ACL_STREAM_ATTR_USER_CUSTOM_TAG), 5u);
}

// ---- Callbacks ----

struct Notice {
  aclrtStream stream;
  aclrtStreamState state;
  friend bool operator==(const Notice&, const Notice&) = default;
};

// Registers itself under a name and notes what it hears.
class StreamWatch {
 public:
  explicit StreamWatch(const char* name) : name_(name) {
    EXPECT_SUCCESS(aclrtRegStreamStateCallback(name_, note, this));
  }
  ~StreamWatch() {
    if (name_ != nullptr) {
      end();
    }
  }
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

  void end() {
    EXPECT_SUCCESS(aclrtRegStreamStateCallback(std::exchange(name_, nullptr), nullptr, nullptr));
  }
  const std::vector<Notice>& notices() const { return notices_; }
  // The stream is alive in both states, and callbacks may use the library.
  static void note(aclrtStream stream, aclrtStreamState state, void* self) {
    auto* const watch = static_cast<StreamWatch*>(self);
    EXPECT_EQ(std::this_thread::get_id(), watch->thread_);
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
    watch->notices_.push_back({stream, state});
  }

 private:
  const char* name_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::vector<Notice> notices_;
};

std::vector<Notice> notices_of_life(aclrtStream stream) {
  return {{stream, ACL_RT_STREAM_STATE_CREATE_POST}, {stream, ACL_RT_STREAM_STATE_DESTROY_PRE}};
}

aclrtStream create_and_destroy(aclError (*destroy)(aclrtStream) = aclrtDestroyStream) {
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  EXPECT_SUCCESS(destroy(stream));
  return stream;
}

using StreamStateCallback = DeviceTest;

TEST_F(StreamStateCallback, STREAM_27_ANullNameIsRefused) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtRegStreamStateCallback(nullptr, StreamWatch::note, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRegStreamStateCallback(nullptr, nullptr, nullptr));
  create_and_destroy();
}

TEST_F(StreamStateCallback, STREAM_27_TheCallbackSeesStreamsComeAndGo) {
  for (auto* const destroy : {aclrtDestroyStream, aclrtDestroyStreamForce}) {
    const StreamWatch watch("STREAM_27_come_and_go");
    const aclrtStream stream = create_and_destroy(destroy);
    EXPECT_EQ(watch.notices(), notices_of_life(stream));
  }
}

TEST_F(StreamStateCallback, STREAM_27_EveryNameHasItsCallback) {
  StreamWatch first("STREAM_27_first");
  const StreamWatch second("STREAM_27_second");
  const aclrtStream stream = create_and_destroy();
  EXPECT_EQ(first.notices(), notices_of_life(stream));
  EXPECT_EQ(second.notices(), notices_of_life(stream));
  first.end();
  create_and_destroy();
  EXPECT_EQ(first.notices().size(), 2u);
  EXPECT_EQ(second.notices().size(), 4u);
}

TEST_F(StreamStateCallback, STREAM_27_ANameIsTakenUntilItIsGivenBack) {
  StreamWatch watch("STREAM_27_taken");
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtRegStreamStateCallback("STREAM_27_taken", StreamWatch::note, nullptr));
  create_and_destroy();
  EXPECT_EQ(watch.notices().size(), 2u) << "the first registration stays";
  watch.end();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtRegStreamStateCallback("STREAM_27_taken", nullptr, nullptr));
  const StreamWatch again("STREAM_27_taken");
  create_and_destroy();
  EXPECT_EQ(again.notices().size(), 2u);
  EXPECT_EQ(watch.notices().size(), 2u);
}

TEST_F(StreamStateCallback, STREAM_27_UnknownNamesCannotBeGivenBack) {
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtRegStreamStateCallback("STREAM_27_never_seen", nullptr, nullptr));
}

TEST_F(StreamStateCallback, STREAM_27_RefusedCallsAndDefaultStreamsAreNotSeen) {
  const StreamWatch watch("STREAM_27_silent");
  { const ContextScope context(0); }
  aclrtStream stream = nullptr;
  EXPECT_NE(
      aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_DEVICE_USE_ONLY | ACL_STREAM_FAST_SYNC),
      ACL_SUCCESS);
  EXPECT_NE(aclrtCreateStream(nullptr), ACL_SUCCESS);
  EXPECT_NE(aclrtDestroyStream(runtime::default_stream()), ACL_SUCCESS);
  EXPECT_NE(aclrtDestroyStream(&stream), ACL_SUCCESS);
  EXPECT_TRUE(watch.notices().empty());
}

}  // namespace
}  // namespace understudy_test
