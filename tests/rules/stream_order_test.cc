// SPDX-License-Identifier: Apache-2.0
//
// In which order tasks run: one after the other on a stream, freely on different streams, and as
// events say across them.
// Covers: STREAM-06, STREAM-14, STREAM-15, STREAM-16, STREAM-17.
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using StreamOrder = DeviceTest;

// Host functions that note their numbers.
class Notebook {
 public:
  void queue_on(aclrtStream stream, int value) {
    entries_.push_back(std::make_unique<Entry>(Entry{this, value}));
    EXPECT_SUCCESS(aclrtLaunchHostFunc(
        stream,
        [](void* argument) {
          const Entry* entry = static_cast<Entry*>(argument);
          entry->notebook->noted_.push_back(entry->value);
        },
        entries_.back().get()));
  }
  const std::vector<int>& noted() const { return noted_; }

 private:
  struct Entry {
    Notebook* notebook;
    int value;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<int> noted_;
};

std::vector<int> numbers_below(int end) {
  std::vector<int> numbers(static_cast<size_t>(end));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST_F(StreamOrder, STREAM_06_TasksOfAStreamRunInOrder) {
  constexpr int kTasks = 1000;
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    Notebook notebook;
    for (int i = 0; i < kTasks; ++i) notebook.queue_on(stream, i);
    expect_finishes(stream);
    EXPECT_EQ(notebook.noted(), numbers_below(kTasks));
  }
}

TEST_F(StreamOrder, STREAM_06_TasksOfSeveralKindsRunInOrder) {
  const TestStream stream;
  const LiveMapping memory;
  void* const first = memory.data();
  void* const second = memory.at(kPage);
  copy_in(first, std::vector<uint8_t>(2 * kPage, 0));
  constexpr auto kWithin = ACL_MEMCPY_DEVICE_TO_DEVICE;
  Gate gate(stream.get());
  EXPECT_SUCCESS(aclrtMemsetAsync(first, kPage, 1, kPage, stream.get()));
  EXPECT_SUCCESS(aclrtMemcpyAsync(second, kPage, first, kPage, kWithin, stream.get()));
  EXPECT_SUCCESS(aclrtMemsetAsync(first, kPage, 2, kPage, stream.get()));
  EXPECT_SUCCESS(aclrtValueWrite(first, 0x0303030303030303, 0, stream.get()));
  EXPECT_SUCCESS(aclrtMemcpyAsync(memory.at(kPage + 16), 8, first, 8, kWithin, stream.get()));
  EXPECT_SUCCESS(aclrtMemsetAsync(first, 8, 4, 8, stream.get()));
  gate.open();
  expect_finishes(stream.get());

  std::vector<uint8_t> expected_first(kPage, 2);
  std::fill_n(expected_first.begin(), 8, uint8_t{4});
  std::vector<uint8_t> expected_second(kPage, 1);
  std::fill_n(expected_second.begin() + 16, 8, uint8_t{3});
  EXPECT_TRUE(copy_out(first, kPage) == expected_first);
  EXPECT_TRUE(copy_out(second, kPage) == expected_second);
}

TEST_F(StreamOrder, STREAM_06_NothingRunsBeforeWhatWasQueuedEarlier) {
  const TestStream stream;
  TargetPage page;
  TaskCounter counter;
  Gate gate(stream.get());
  gate.wait_until_reached();
  page.queue_set(stream.get(), 7);
  counter.queue_on(stream.get());
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
               aclrtSynchronizeStreamWithTimeout(stream.get(), kShortLimit));
  EXPECT_TRUE(page.holds(TargetPage::kInitial));
  EXPECT_EQ(counter.runs(), 0);
  gate.open();
  expect_finishes(stream.get());
  EXPECT_TRUE(page.holds(7));
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(StreamOrder, STREAM_06_ThreadsShareTheOrderOfAStream) {
  const TestStream stream;
  const aclrtContext context = runtime::current_context();
  Notebook notebook;
  notebook.queue_on(stream.get(), 0);
  on_bare_thread([&] {
    ASSERT_SUCCESS(aclrtSetCurrentContext(context));
    notebook.queue_on(stream.get(), 1);
    notebook.queue_on(stream.get(), 2);
  });
  notebook.queue_on(stream.get(), 3);
  expect_finishes(stream.get());
  EXPECT_EQ(notebook.noted(), numbers_below(4));
}

TEST_F(StreamOrder, STREAM_06_AHeldStreamHoldsNoOther) {
  const TestStream first;
  const TestStream second;
  const aclrtStream streams[] = {first.get(), second.get(), nullptr};
  for (const aclrtStream held : streams) {
    SCOPED_TRACE(held);
    TargetPage page;
    uint8_t value = 0x20;
    Gate gate(held);
    gate.wait_until_reached();
    for (const aclrtStream other : streams) {
      if (other == held) continue;
      page.queue_set(other, ++value);
      expect_finishes(other);
      EXPECT_TRUE(page.holds(value));
    }
    EXPECT_EQ(stream_status(held), ACL_STREAM_STATUS_NOT_READY);
    gate.open();
    expect_finishes(held);
  }
}

TEST_F(StreamOrder, STREAM_06_EventsOrderManyStreams) {
  constexpr size_t kStreams = 64;
  const std::vector<TestStream> streams(kStreams);
  const std::vector<TestEvent> events(kStreams);
  Notebook notebook;
  Gate gate(streams[0].get());
  for (size_t i = 0; i < kStreams; ++i) {
    if (i > 0) {
      EXPECT_SUCCESS(aclrtStreamWaitEvent(streams[i].get(), events[i - 1].get()));
    }
    notebook.queue_on(streams[i].get(), static_cast<int>(i));
    EXPECT_SUCCESS(aclrtRecordEvent(events[i].get(), streams[i].get()));
  }
  gate.open();
  expect_finishes(streams.back().get());
  EXPECT_EQ(notebook.noted(), numbers_below(kStreams));
}

// ---- Waiting for events ----

struct WaitFunction {
  const char* name;
  aclError (*call)(aclrtStream stream, aclrtEvent event);
};
constexpr WaitFunction kWaitFunctions[] = {
    {"aclrtStreamWaitEvent", aclrtStreamWaitEvent},
    {"aclrtStreamWaitEventWithTimeout",
     [](aclrtStream stream, aclrtEvent event) {
       return aclrtStreamWaitEventWithTimeout(stream, event, 0);
     }},
    {"aclrtStreamWaitEventWithTimeout",
     [](aclrtStream stream, aclrtEvent event) {
       return aclrtStreamWaitEventWithTimeout(stream, event, std::numeric_limits<int32_t>::max());
     }},
    {"aclrtStreamWaitEventWithFlag",
     [](aclrtStream stream, aclrtEvent event) {
       return aclrtStreamWaitEventWithFlag(stream, event, 0, ACL_EVENT_WAIT_DEFAULT);
     }},
    {"aclrtStreamWaitEventWithFlag",
     [](aclrtStream stream, aclrtEvent event) {
       return aclrtStreamWaitEventWithFlag(stream, event, 0xFFFFFFFF, ACL_EVENT_WAIT_DEFAULT);
     }},
};

TEST_F(StreamOrder, STREAM_14_AnEventIsNeeded) {
  const TestStream stream;
  for (const WaitFunction& wait : kWaitFunctions) {
    SCOPED_TRACE(wait.name);
    for (const aclrtStream name : {stream.get(), aclrtStream{nullptr}}) {
      (void)recent_error();
      EXPECT_TRUE(fails_with(ACL_ERROR_INVALID_PARAM, wait.call(name, nullptr), wait.name));
      EXPECT_EQ(stream_status(name), ACL_STREAM_STATUS_COMPLETE);
    }
    on_bare_thread([&wait] {
      EXPECT_TRUE(fails_with(ACL_ERROR_INVALID_PARAM, wait.call(nullptr, nullptr), wait.name));
    });
  }
}

TEST_F(StreamOrder, STREAM_14_NullIsTheDefaultStream) {
  const TestStream helper;
  for (const WaitFunction& wait : kWaitFunctions) {
    SCOPED_TRACE(wait.name);
    const TestEvent event;
    Gate gate(helper.get());
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), helper.get()));
    EXPECT_SUCCESS(wait.call(nullptr, event.get()));
    EXPECT_EQ(stream_status(runtime::default_stream()), ACL_STREAM_STATUS_NOT_READY);
    gate.open();
    expect_finishes(runtime::default_stream());
  }
}

TEST_F(StreamOrder, STREAM_15_LaterTasksStartAfterTheRecord) {
  const TestStream recorded;
  const TestStream waiting;
  for (const WaitFunction& wait : kWaitFunctions) {
    SCOPED_TRACE(wait.name);
    const TestEvent event;
    const TestEvent before_the_wait;
    Notebook notebook;
    Gate gate(recorded.get());
    notebook.queue_on(recorded.get(), 0);
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), recorded.get()));

    TaskCounter earlier;
    earlier.queue_on(waiting.get());
    EXPECT_SUCCESS(aclrtRecordEvent(before_the_wait.get(), waiting.get()));
    EXPECT_SUCCESS(wait.call(waiting.get(), event.get()));
    notebook.queue_on(waiting.get(), 1);
    EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(before_the_wait.get(), kLongLimit));
    EXPECT_EQ(earlier.runs(), 1) << "tasks queued before the wait are not held";
    EXPECT_EQ(stream_status(waiting.get()), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                 aclrtSynchronizeStreamWithTimeout(waiting.get(), kShortLimit));
    gate.open();
    expect_finishes(waiting.get());
    EXPECT_EQ(notebook.noted(), numbers_below(2));
    expect_finishes(recorded.get());
  }
}

TEST_F(StreamOrder, STREAM_15_ARecordAfterTheWaitDoesNotMatter) {
  const TestStream first;
  const TestStream second;
  const TestStream waiting;
  const TestEvent event;
  Gate first_gate(first.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), first.get()));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(waiting.get(), event.get()));
  Gate second_gate(second.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), second.get()));
  EXPECT_EQ(stream_status(waiting.get()), ACL_STREAM_STATUS_NOT_READY);
  first_gate.open();
  expect_finishes(waiting.get());
  EXPECT_EQ(stream_status(second.get()), ACL_STREAM_STATUS_NOT_READY);
}

TEST_F(StreamOrder, STREAM_15_OfSeveralRecordsTheLatestCounts) {
  const TestStream held;
  const TestStream idle;
  const TestStream waiting;
  const TestEvent event;
  Gate gate(held.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), held.get()));
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), idle.get()));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(waiting.get(), event.get()));
  expect_finishes(waiting.get());
  EXPECT_EQ(stream_status(held.get()), ACL_STREAM_STATUS_NOT_READY);
}

TEST_F(StreamOrder, STREAM_15_AnEventThatIsPastHoldsNothing) {
  const TestStream recorded;
  const TestStream waiting;
  const TestEvent event;
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), recorded.get()));
  expect_finishes(recorded.get());
  Gate gate(recorded.get());
  for (const WaitFunction& wait : kWaitFunctions) {
    SCOPED_TRACE(wait.name);
    EXPECT_SUCCESS(wait.call(waiting.get(), event.get()));
    expect_finishes(waiting.get());
  }
}

TEST_F(StreamOrder, STREAM_15_AStreamMayWaitForItself) {
  const TestStream stream;
  const TestEvent event;
  TaskCounter counter;
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(stream.get(), event.get()));
  counter.queue_on(stream.get());
  expect_finishes(stream.get());
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(StreamOrder, STREAM_16_EventAndStreamMayBeOfDifferentContextsAndDevices) {
  const TestStream recorded;
  const TestEvent event;
  for (const int32_t device : {0, 1}) {
    SCOPED_TRACE(device);
    for (const WaitFunction& wait : kWaitFunctions) {
      SCOPED_TRACE(wait.name);
      Notebook notebook;
      Gate gate(recorded.get());
      notebook.queue_on(recorded.get(), 0);
      EXPECT_SUCCESS(aclrtRecordEvent(event.get(), recorded.get()));

      const ContextScope context(device);
      const TestStream waiting;
      EXPECT_SUCCESS(wait.call(waiting.get(), event.get()));
      notebook.queue_on(waiting.get(), 1);
      EXPECT_EQ(stream_status(waiting.get()), ACL_STREAM_STATUS_NOT_READY);
      gate.open();
      expect_finishes(waiting.get());
      EXPECT_EQ(notebook.noted(), numbers_below(2));
    }
  }
}

TEST_F(StreamOrder, STREAM_17_NegativeLimitsAreRefused) {
  const TestStream idle;
  const TestStream held;
  const TestEvent event;
  Gate pending(held.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), held.get()));
  for (const int32_t limit : {-1, -2, std::numeric_limits<int32_t>::min()}) {
    SCOPED_TRACE(limit);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtStreamWaitEventWithTimeout(idle.get(), event.get(), limit));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtStreamWaitEventWithTimeout(idle.get(), nullptr, limit));
    EXPECT_EQ(stream_status(idle.get()), ACL_STREAM_STATUS_COMPLETE) << "a wait was queued";
  }
}

TEST_F(StreamOrder, STREAM_17_UnknownFlagsAreRefused) {
  const TestStream idle;
  const TestStream held;
  const TestEvent event;
  Gate pending(held.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), held.get()));
  for (const uint32_t flag : {2u, 3u, 0x80000000u, 0xFFFFFFFFu}) {
    SCOPED_TRACE(flag);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtStreamWaitEventWithFlag(idle.get(), event.get(), 0, flag));
    EXPECT_EQ(stream_status(idle.get()), ACL_STREAM_STATUS_COMPLETE) << "a wait was queued";
    on_bare_thread([&] {
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                   aclrtStreamWaitEventWithFlag(idle.get(), event.get(), 0, flag));
    });
  }
}

TEST_F(StreamOrder, STREAM_17_AWaitThatPassesItsLimitFailsAndLaterTasksRun) {
  const TestStream held;
  const TestStream waiting;
  const TestEvent event;
  TaskCounter counter;
  Gate pending(held.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), held.get()));
  EXPECT_SUCCESS(aclrtStreamWaitEventWithTimeout(waiting.get(), event.get(), 1));
  counter.queue_on(waiting.get());
  EXPECT_FAILS(ACL_ERROR_RT_TASK_TIMEOUT,
               aclrtSynchronizeStreamWithTimeout(waiting.get(), kLongLimit));
  EXPECT_EQ(counter.runs(), 1);
  EXPECT_EQ(stream_status(held.get()), ACL_STREAM_STATUS_NOT_READY);
  expect_finishes(waiting.get());
}

}  // namespace
}  // namespace understudy_test
