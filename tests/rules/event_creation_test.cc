// SPDX-License-Identifier: Apache-2.0
//
// Creating and destroying events: flags, how many there can be, how long they live.
// Covers: EVENT-01, EVENT-02, EVENT-03, EVENT-04, EVENT-05, EVENT-06, EVENT-10, EVENT-19.
#include <array>
#include <atomic>
#include <future>
#include <set>
#include <string>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/callback_objects.h"

namespace understudy_test::callbacks {
namespace {

class EventCreation : public DeviceTest {};

constexpr uint32_t kMostEvents = 65536;

// No library hands this out: an output that still holds it was not written.
aclrtEvent untouched_event() { return address(0x5EA7ED0000005EA7); }

struct CreateFunction {
  const char* name;
  aclError (*call)(aclrtEvent* event, uint32_t flag);

  void expect_refused(aclError code, uint32_t flag) const {
    SCOPED_TRACE(testing::Message() << name << " with flag " << flag);
    aclrtEvent event = untouched_event();
    (void)recent_error();
    EXPECT_TRUE(fails_with(code, call(&event, flag), name));
    EXPECT_EQ(event, untouched_event());
  }
  void expect_accepted(uint32_t flag) const {
    SCOPED_TRACE(testing::Message() << name << " with flag " << flag);
    aclrtEvent event = nullptr;
    EXPECT_SUCCESS(call(&event, flag));
    EXPECT_NE(event, nullptr);
    EXPECT_SUCCESS(aclrtDestroyEvent(event));
  }
};

aclError create_without_flag(aclrtEvent* event, uint32_t) { return aclrtCreateEvent(event); }

constexpr CreateFunction kCreateEvent = {"aclrtCreateEvent", create_without_flag};
constexpr CreateFunction kWithFlag = {"aclrtCreateEventWithFlag", aclrtCreateEventWithFlag};
constexpr CreateFunction kExWithFlag = {"aclrtCreateEventExWithFlag", aclrtCreateEventExWithFlag};
constexpr std::array kCreateFunctions = {kCreateEvent, kWithFlag, kExWithFlag};

// Every OR of the three flags that both families know.
std::vector<uint32_t> common_flags() {
  std::vector<uint32_t> flags;
  for (uint32_t sync : {0u, ACL_EVENT_SYNC}) {
    for (uint32_t progress : {0u, ACL_EVENT_CAPTURE_STREAM_PROGRESS}) {
      for (uint32_t time : {0u, ACL_EVENT_TIME_LINE}) {
        if (const uint32_t all = sync | progress | time; all != 0) flags.push_back(all);
      }
    }
  }
  return flags;
}

uint32_t events_available() {
  uint32_t count = UINT32_MAX;
  EXPECT_SUCCESS(aclrtGetEventAvailNum(&count));
  return count;
}

uint32_t event_id(aclrtEvent event) {
  uint32_t id = UINT32_MAX;
  EXPECT_SUCCESS(aclrtGetEventId(event, &id));
  return id;
}

TEST_F(EventCreation, EVENT_01_ANullOutputIsRefusedBeforeAnythingElse) {
  const uint32_t before = events_available();
  const auto expect_refused = [] {
    for (const CreateFunction& create : kCreateFunctions) {
      for (uint32_t flag : {ACL_EVENT_SYNC, 0u, UINT32_MAX}) {
        SCOPED_TRACE(testing::Message() << create.name << " with flag " << flag);
        (void)recent_error();
        EXPECT_TRUE(fails_with(ACL_ERROR_INVALID_PARAM, create.call(nullptr, flag), create.name));
      }
    }
  };
  expect_refused();
  on_bare_thread(expect_refused);
  EXPECT_EQ(events_available(), before);
}

TEST_F(EventCreation, EVENT_01_WithoutAContextNoneIsCreated) {
  on_bare_thread([] {
    for (const CreateFunction& create : kCreateFunctions) {
      create.expect_refused(ACL_ERROR_RT_CONTEXT_NULL, ACL_EVENT_SYNC);
    }
  });
}

TEST_F(EventCreation, EVENT_02_CreateEventGivesAClassicEventWithAllThreeFlags) {
  const TestStream stream;
  aclrtEvent event = nullptr;
  ASSERT_SUCCESS(aclrtCreateEvent(&event));
  // Classic: it starts as not reached, and the old query knows it.
  EXPECT_EQ(event_status(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  auto status = ACL_EVENT_STATUS_RESERVED;
  EXPECT_SUCCESS(aclrtQueryEvent(event, &status));
  EXPECT_EQ(status, ACL_EVENT_STATUS_NOT_READY);
  // CAPTURE_STREAM_PROGRESS: it tells how far the stream is.
  EXPECT_SUCCESS(aclrtRecordEvent(event, stream.get()));
  EXPECT_SUCCESS(reach(event));
  EXPECT_EQ(event_status(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  // TIME_LINE: it has a time.
  uint64_t timestamp = 0;
  EXPECT_SUCCESS(aclrtEventGetTimestamp(event, &timestamp));
  // SYNC: it orders streams, and can be reset.
  EXPECT_SUCCESS(aclrtStreamWaitEvent(stream.get(), event));
  EXPECT_SUCCESS(aclrtResetEvent(event, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(event_status(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_SUCCESS(aclrtDestroyEvent(event));
}

TEST_F(EventCreation, EVENT_03_ExternalAndDeviceUseOnlyStandAlone) {
  const uint32_t before = events_available();
  for (uint32_t alone : {ACL_EVENT_EXTERNAL, ACL_EVENT_DEVICE_USE_ONLY}) {
    kWithFlag.expect_accepted(alone);
    for (uint32_t other : common_flags()) {
      kWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID, alone | other);
    }
  }
  kWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID,
                           ACL_EVENT_EXTERNAL | ACL_EVENT_DEVICE_USE_ONLY);
  EXPECT_EQ(events_available(), before);
}

TEST_F(EventCreation, EVENT_03_NoFlagAndUnknownBitsAreRefused) {
  const uint32_t before = events_available();
  for (uint32_t flag : common_flags()) kWithFlag.expect_accepted(flag);
  for (uint32_t flag : {0u, UINT32_MAX}) {
    kWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID, flag);
  }
  for (uint32_t unknown : {0x4u, 0x80u, 0x100u, 0x80000000u, ACL_EVENT_IPC}) {
    kWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID, unknown);
    kWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID, unknown | ACL_EVENT_SYNC);
  }
  EXPECT_EQ(events_available(), before);
}

TEST_F(EventCreation, EVENT_04_ExKnowsThreeFlagsAndRefusesAllOthers) {
  const uint32_t before = events_available();
  for (uint32_t flag : common_flags()) {
    kExWithFlag.expect_accepted(flag);
    kExWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID, ACL_EVENT_IPC | flag);
  }
  for (uint32_t flag : {0u, UINT32_MAX}) {
    kExWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID, flag);
  }
  for (uint32_t unknown :
       {0x4u, 0x80u, 0x80000000u, ACL_EVENT_EXTERNAL, ACL_EVENT_DEVICE_USE_ONLY}) {
    kExWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID, unknown);
    kExWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID, unknown | ACL_EVENT_SYNC);
    kExWithFlag.expect_refused(ACL_ERROR_RT_PARAM_INVALID, unknown | ACL_EVENT_IPC);
  }
  EXPECT_EQ(events_available(), before);
}

// The limit binds those that take a number when they are made: of WithFlag, with SYNC or EXTERNAL.
bool is_limited(const CreateFunction& create, uint32_t flag) {
  return create.call == kWithFlag.call && (flag & (ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL)) != 0;
}

TEST_F(EventCreation, EVENT_05_EVENT_19_SomeEventsCountAndADestroyedOneMakesRoom_C2) {
  EXPECT_EQ(events_available(), kMostEvents);
  for (const CreateFunction& create : kCreateFunctions) {
    for (const uint32_t flag :
         {ACL_EVENT_SYNC, ACL_EVENT_TIME_LINE, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE,
          ACL_EVENT_CAPTURE_STREAM_PROGRESS, ACL_EVENT_EXTERNAL, ACL_EVENT_DEVICE_USE_ONLY}) {
      if (create.call == kExWithFlag.call && flag > ACL_EVENT_TIME_LINE + ACL_EVENT_SYNC) continue;
      SCOPED_TRACE(testing::Message() << create.name << " with flag " << flag);
      aclrtEvent event = nullptr;
      EXPECT_SUCCESS(create.call(&event, flag));
      EXPECT_EQ(events_available(), kMostEvents - (is_limited(create, flag) ? 1 : 0));
      EXPECT_SUCCESS(aclrtDestroyEvent(event));
      EXPECT_EQ(events_available(), kMostEvents);
    }
  }
}

struct EventProduct {
  std::string product;
  uint32_t most_events;
};
class EventLimit : public testing::TestWithParam<EventProduct> {};
INSTANTIATE_TEST_SUITE_P(Products, EventLimit,
                         testing::Values(EventProduct{"a2", 65536}, EventProduct{"a3", 65536},
                                         EventProduct{"950", 65536}, EventProduct{"200i", 65536},
                                         EventProduct{"inf", 1023}, EventProduct{"trn", 65535}),
                         [](const auto& rules) {
                           return test_name_of_product(rules.param.product);
                         });

TEST_P(EventLimit, EVENT_05_EVENT_19_TheLimitOfADeviceIsExact_C2) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  std::vector<aclrtEvent> events;
  while (events.size() < GetParam().most_events) {
    aclrtEvent event = nullptr;
    const uint32_t flag = events.size() % 2 == 0 ? ACL_EVENT_SYNC : ACL_EVENT_EXTERNAL;
    ASSERT_SUCCESS(aclrtCreateEventWithFlag(&event, flag)) << events.size();
    events.push_back(event);
  }
  EXPECT_EQ(events_available(), 0u);
  kWithFlag.expect_refused(ACL_ERROR_RT_NO_EVENT_RESOURCE, ACL_EVENT_SYNC);
  kWithFlag.expect_refused(ACL_ERROR_RT_NO_EVENT_RESOURCE, ACL_EVENT_EXTERNAL);
  // The others never run out.
  kCreateEvent.expect_accepted(0);
  kExWithFlag.expect_accepted(ACL_EVENT_SYNC);
  kWithFlag.expect_accepted(ACL_EVENT_TIME_LINE);
  EXPECT_EQ(events_available(), 0u);
  // Another device has its own.
  const aclrtContext own = current_context();
  {
    const DeviceSession second(1);
    EXPECT_EQ(events_available(), GetParam().most_events);
    kWithFlag.expect_accepted(ACL_EVENT_SYNC);
  }
  ASSERT_SUCCESS(aclrtSetCurrentContext(own));

  EXPECT_SUCCESS(aclrtDestroyEvent(events.back()));
  EXPECT_SUCCESS(aclrtCreateEventWithFlag(&events.back(), ACL_EVENT_SYNC));
  kWithFlag.expect_refused(ACL_ERROR_RT_NO_EVENT_RESOURCE, ACL_EVENT_SYNC);
  for (aclrtEvent event : events) ASSERT_SUCCESS(aclrtDestroyEvent(event));
  EXPECT_EQ(events_available(), GetParam().most_events);
}

TEST_F(EventCreation, EVENT_19_MoreEventsOfOtherKindsThanTheLimitCanBeMadeAndRecorded_C2) {
  std::vector<aclrtEvent> events;
  while (events.size() < kMostEvents + 100) {
    aclrtEvent event = nullptr;
    ASSERT_SUCCESS(aclrtCreateEvent(&event)) << events.size();
    events.push_back(event);
    ASSERT_SUCCESS(aclrtRecordEvent(event, nullptr));
  }
  EXPECT_EQ(events_available(), kMostEvents);
  EXPECT_SUCCESS(finish(nullptr));
  for (aclrtEvent event : events) ASSERT_SUCCESS(aclrtDestroyEvent(event));
}

TEST_F(EventCreation, EVENT_05_TheNumberLeftNeedsAnOutputAndAContext) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetEventAvailNum(nullptr));
  on_bare_thread([] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetEventAvailNum(nullptr));
    uint32_t count = 77;
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetEventAvailNum(&count));
    EXPECT_EQ(count, 77u);
  });
}

TEST_F(EventCreation, EVENT_06_DestroyDoesNotWaitAndAQueuedWaitStillHoldsAndCompletes) {
  for (const EventFamily family : {EventFamily::kEx, EventFamily::kClassic}) {
    SCOPED_TRACE(family == EventFamily::kEx ? "Ex" : "classic");
    const TestStream recorder;
    const TestStream waiter;
    TestEvent event(family);
    std::atomic<bool> is_open = false;
    bool was_open = false;
    Gate gate(recorder.get());
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), recorder.get()));
    EXPECT_SUCCESS(aclrtStreamWaitEvent(waiter.get(), event.get()));
    const HostStep step(waiter.get(), [&] { was_open = is_open; });

    // On a thread of its own, so that a library that waits fails the test instead of stopping it.
    auto destroyed = std::async(std::launch::async,
                                [handle = event.release()] { return aclrtDestroyEvent(handle); });
    EXPECT_EQ(destroyed.wait_for(kLongerThanThat), std::future_status::ready);
    EXPECT_EQ(stream_status(waiter.get()), ACL_STREAM_STATUS_NOT_READY);

    is_open = true;
    gate.open();
    EXPECT_EQ(destroyed.get(), ACL_SUCCESS);
    EXPECT_SUCCESS(finish(waiter.get()));
    EXPECT_TRUE(was_open) << "the wait ended before the tasks it waited for";
    EXPECT_SUCCESS(finish(recorder.get()));
  }
}

TEST_F(EventCreation, EVENT_10_IdsTellLiveEventsApart) {
  std::set<uint32_t> ids;
  std::vector<aclrtEvent> events;
  for (int i = 0; i < 300; ++i) {
    const CreateFunction& create = kCreateFunctions[events.size() % kCreateFunctions.size()];
    aclrtEvent event = nullptr;
    ASSERT_SUCCESS(create.call(&event, ACL_EVENT_SYNC));
    events.push_back(event);
    EXPECT_TRUE(ids.insert(event_id(event)).second);
    EXPECT_EQ(event_id(event), event_id(event));
  }
  for (aclrtEvent event : events) EXPECT_SUCCESS(aclrtDestroyEvent(event));
}

TEST_F(EventCreation, EVENT_10_AnEventOutlivesTheContextItWasCreatedIn) {
  const aclrtContext own = current_context();
  aclrtContext context = nullptr;
  ASSERT_SUCCESS(aclrtCreateContext(&context, 0));
  const TestEvent event;
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), nullptr));
  EXPECT_SUCCESS(aclrtDestroyContext(context));
  EXPECT_SUCCESS(reach(event.get()));
  EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);

  ASSERT_SUCCESS(aclrtSetCurrentContext(own));
  const TestStream stream;
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(stream.get(), event.get()));
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(EventCreation, EVENT_10_AnEventEndsWithItsDevice) {
  TestEvent event;
  const aclrtEvent handle = event.release();
  EXPECT_SUCCESS(aclrtRecordEvent(handle, nullptr));
  ASSERT_SUCCESS(aclrtResetDeviceForce(0));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  auto status = enum_value<aclrtEventRecordedStatus>(77);
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtQueryEventStatus(handle, &status));
  EXPECT_EQ(static_cast<int>(status), 77);
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtRecordEvent(handle, nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyEvent(handle));
  EXPECT_EQ(events_available(), kMostEvents);
}

}  // namespace
}  // namespace understudy_test::callbacks
