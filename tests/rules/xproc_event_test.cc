// SPDX-License-Identifier: Apache-2.0
//
// Events between processes: handles that travel, which of them open, and what an opened event
// lacks. What it does to streams is in xproc_event_order_test.cc.
// Covers: XPROC-01, XPROC-02.
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "rules/xproc_objects.h"

namespace understudy_test::xproc {
namespace {

US_PEER(XprocEventSide) { serve_event(channel); }

bool same(const aclrtIpcEventHandle& a, const aclrtIpcEventHandle& b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

aclrtIpcEventHandle handle_filled_with(int byte) {
  aclrtIpcEventHandle handle;
  memset(&handle, byte, sizeof handle);
  return handle;
}

// An event of another process, opened in this one.
class OpenedEvent {
 public:
  explicit OpenedEvent(const aclrtIpcEventHandle& handle) {
    EXPECT_SUCCESS(aclrtIpcOpenEventHandle(handle, &event_));
    EXPECT_NE(event_, nullptr);
  }
  ~OpenedEvent() { EXPECT_SUCCESS(aclrtDestroyEvent(event_)); }
  OpenedEvent(const OpenedEvent&) = delete;
  OpenedEvent& operator=(const OpenedEvent&) = delete;

  aclrtEvent get() const { return event_; }

 private:
  aclrtEvent event_ = nullptr;
};

void expect_open_refused(const aclrtIpcEventHandle& handle) {
  aclrtEvent event = untouched_address();
  (void)recent_error();
  EXPECT_NE(ipc::noted("aclrtIpcOpenEventHandle", aclrtIpcOpenEventHandle(handle, &event)),
            ACL_SUCCESS);
  EXPECT_EQ(event, untouched_address());
}

// ---- Handles ----

using XprocHandle = DeviceTest;

TEST_F(XprocHandle, XPROC_01_NullIsRefusedFirst) {
  const TestEvent event(EventFamily::kEx, ACL_EVENT_IPC);
  const auto refuse = [&] {
    aclrtIpcEventHandle handle = handle_filled_with(0x7E);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcGetEventHandle(nullptr, &handle));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcGetEventHandle(event.get(), nullptr));
    EXPECT_TRUE(same(handle, handle_filled_with(0x7E)));
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(XprocHandle, XPROC_01_OnlyIpcEventsHaveHandles) {
  const struct {
    EventFamily family;
    uint32_t flags;
  } kinds[] = {{EventFamily::kEx, ACL_EVENT_SYNC},
               {EventFamily::kEx, ACL_EVENT_TIME_LINE},
               {EventFamily::kEx, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE},
               {EventFamily::kEx, ACL_EVENT_CAPTURE_STREAM_PROGRESS},
               {EventFamily::kClassic, ACL_EVENT_SYNC},
               {EventFamily::kClassic, ACL_EVENT_TIME_LINE}};
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.flags);
    const TestEvent event(kind.family, kind.flags);
    aclrtIpcEventHandle handle = handle_filled_with(0x7E);
    (void)recent_error();
    EXPECT_NE(ipc::noted("aclrtIpcGetEventHandle", aclrtIpcGetEventHandle(event.get(), &handle)),
              ACL_SUCCESS);
    EXPECT_TRUE(same(handle, handle_filled_with(0x7E)));
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), nullptr));
    EXPECT_SUCCESS(finish(nullptr));
    EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  }
}

TEST_F(XprocHandle, XPROC_01_WhatIsNoEventIsRefused) {
  TestEvent ended(EventFamily::kEx, ACL_EVENT_IPC);
  const aclrtEvent destroyed = ended.release();
  EXPECT_SUCCESS(aclrtDestroyEvent(destroyed));
  const TestStream stream;
  uint64_t variable[8] = {};
  for (const aclrtEvent event :
       {destroyed, aclrtEvent{stream.get()}, aclrtEvent{&variable}, aclrtEvent{address(0x1234)}}) {
    aclrtIpcEventHandle handle = handle_filled_with(0x7E);
    (void)recent_error();
    EXPECT_NE(ipc::noted("aclrtIpcGetEventHandle", aclrtIpcGetEventHandle(event, &handle)),
              ACL_SUCCESS);
    EXPECT_TRUE(same(handle, handle_filled_with(0x7E)));
  }
}

TEST_F(XprocHandle, XPROC_01_EveryEventHasAHandleOfItsOwnThatCanBeAskedForAgain) {
  EventSide other(XprocEventSide);
  std::deque<TestEvent> events;
  std::vector<aclrtIpcEventHandle> handles = {other.create()};
  for (int i = 0; i < 10; ++i) {
    events.emplace_back(EventFamily::kEx, ACL_EVENT_IPC);
    aclrtIpcEventHandle handle{};
    ASSERT_SUCCESS(aclrtIpcGetEventHandle(events.back().get(), &handle));
    for (const aclrtIpcEventHandle& earlier : handles) EXPECT_FALSE(same(earlier, handle));
    handles.push_back(handle);
  }
  aclrtIpcEventHandle again{};
  EXPECT_SUCCESS(aclrtIpcGetEventHandle(events[3].get(), &again));
  EventSide opener(XprocEventSide);
  EXPECT_EQ(opener.open(again), ACL_SUCCESS);
  EXPECT_EQ(opener.destroy(), ACL_SUCCESS);
  EXPECT_EQ(opener.open(handles[4]), ACL_SUCCESS);
}

TEST_F(XprocHandle, XPROC_02_NullIsRefusedFirst) {
  const auto refuse = [] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcOpenEventHandle(handle_filled_with(0), nullptr));
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(XprocHandle, XPROC_02_GarbageIsRefused) {
  for (const int byte : {0x00, 0x01, 0x2F, 0x41, 0x7F, 0x80, 0xFF}) {
    SCOPED_TRACE(byte);
    expect_open_refused(handle_filled_with(byte));
  }
  aclrtIpcEventHandle path{};
  strcpy(path.reserved, "../../../dev/zero");
  expect_open_refused(path);
}

// Not every bit need count, but none may do harm.
TEST_F(XprocHandle, XPROC_02_ADamagedHandleDoesNoHarm) {
  EventSide creator(XprocEventSide);
  const aclrtIpcEventHandle good = creator.create();
  for (size_t i = 0; i < sizeof good.reserved; ++i) {
    SCOPED_TRACE(i);
    aclrtIpcEventHandle damaged = good;
    damaged.reserved[i] = static_cast<char>(damaged.reserved[i] ^ 0x55);
    aclrtEvent event = untouched_address();
    if (aclrtIpcOpenEventHandle(damaged, &event) == ACL_SUCCESS) {
      EXPECT_SUCCESS(aclrtDestroyEvent(event));
    } else {
      EXPECT_EQ(event, untouched_address());
    }
  }
  creator.record();
  EXPECT_EQ(creator.synchronize(), ACL_SUCCESS);
}

TEST_F(XprocHandle, XPROC_02_TheHandleOfAnEndedProcessIsRefused) {
  for (const bool by_signal : {false, true}) {
    SCOPED_TRACE(by_signal);
    EventSide creator(XprocEventSide);
    const aclrtIpcEventHandle handle = creator.create();
    { const OpenedEvent once(handle); }
    if (by_signal) {
      creator.peer().kill();
    } else {
      creator.peer().finish();
    }
    expect_open_refused(handle);
  }
}

TEST_F(XprocHandle, XPROC_02_TheHandleOfADestroyedEventIsRefused) {
  EventSide creator(XprocEventSide);
  const aclrtIpcEventHandle handle = creator.create();
  EXPECT_EQ(creator.destroy(), ACL_SUCCESS);
  expect_open_refused(handle);
}

// Whether the creator may open its own handle is not said. If so, it is the same event.
TEST_F(XprocHandle, XPROC_02_OpenedByItsCreatorItIsTheSameEventOrRefused) {
  const TestEvent event(EventFamily::kEx, ACL_EVENT_IPC);
  aclrtIpcEventHandle handle{};
  ASSERT_SUCCESS(aclrtIpcGetEventHandle(event.get(), &handle));
  aclrtEvent opened = untouched_address();
  if (aclrtIpcOpenEventHandle(handle, &opened) == ACL_SUCCESS) {
    const TestStream stream;
    {
      const Gate gate(stream.get());
      EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
      EXPECT_EQ(event_status(opened), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    }
    EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(opened, kEventPatience));
    EXPECT_SUCCESS(aclrtDestroyEvent(opened));
  } else {
    EXPECT_EQ(opened, untouched_address());
  }
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), nullptr));
  EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event.get(), kEventPatience));
}

TEST_F(XprocHandle, XPROC_02_TheRestIsNotSupportedOnAnOpenedEvent) {
  EventSide creator(XprocEventSide);
  const OpenedEvent opened(creator.create());
  const aclrtEvent event = opened.get();
  const TestEvent timed(EventFamily::kEx, ACL_EVENT_TIME_LINE);
  EXPECT_SUCCESS(aclrtRecordEvent(timed.get(), nullptr));
  EXPECT_SUCCESS(aclrtRecordEvent(event, nullptr));
  EXPECT_SUCCESS(finish(nullptr));

  auto status = ACL_EVENT_STATUS_RESERVED;
  auto wait_status = ACL_EVENT_WAIT_STATUS_RESERVED;
  float milliseconds = -1;
  uint64_t timestamp = 77;
  uint32_t id = 77;
  aclrtIpcEventHandle handle = handle_filled_with(0x7E);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(event, nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtQueryEvent(event, &status));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtQueryEventWaitStatus(event, &wait_status));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtEventElapsedTime(&milliseconds, event, timed.get()));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtEventElapsedTime(&milliseconds, timed.get(), event));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtEventGetTimestamp(event, &timestamp));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtGetEventId(event, &id));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtIpcGetEventHandle(event, &handle));
  EXPECT_EQ(status, ACL_EVENT_STATUS_RESERVED);
  EXPECT_EQ(wait_status, ACL_EVENT_WAIT_STATUS_RESERVED);
  EXPECT_EQ(milliseconds, -1);
  EXPECT_EQ(timestamp, 77u);
  EXPECT_EQ(id, 77u);
  EXPECT_TRUE(same(handle, handle_filled_with(0x7E)));
  EXPECT_EQ(event_status(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_TRUE(creator.is_complete());
}

}  // namespace
}  // namespace understudy_test::xproc
