// SPDX-License-Identifier: Apache-2.0
//
// What tests of queued tasks share: tasks that can be counted, held and made to fail, and calls
// that wait on a thread of their own.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rules/live_mapping.h"
#include "rules/runtime_support.h"
#include "rules/stream_objects.h"

namespace understudy_test {

// For calls that would otherwise hang if a rule is broken.
inline constexpr int32_t kLongLimit = 60'000;
// For calls that must run into their limit.
inline constexpr int32_t kShortLimit = 1;

// ---- Tasks ----

// A host function that counts how often it ran.
class TaskCounter {
 public:
  TaskCounter() = default;
  TaskCounter(const TaskCounter&) = delete;
  TaskCounter& operator=(const TaskCounter&) = delete;

  static void run(void* self) { ++static_cast<TaskCounter*>(self)->runs_; }
  void queue_on(aclrtStream stream) { EXPECT_SUCCESS(aclrtLaunchHostFunc(stream, run, this)); }
  int runs() const { return runs_; }

 private:
  std::atomic<int> runs_ = 0;
};

// Holds streams by waits for a word of device memory. Such a wait can be stopped and dropped, which
// the function of a Gate cannot once it runs.
class WordGate {
 public:
  WordGate() { copy_in(word_.data(), std::vector<uint8_t>(sizeof kOpen, 0)); }
  // Opens it, for the case that a wait survived which should not have.
  ~WordGate() {
    (void)aclrtMemcpy(word_.data(), sizeof kOpen, &kOpen, sizeof kOpen, ACL_MEMCPY_HOST_TO_DEVICE);
    (void)recent_error();
  }
  WordGate(const WordGate&) = delete;
  WordGate& operator=(const WordGate&) = delete;

  void hold(aclrtStream stream) {
    EXPECT_SUCCESS(aclrtValueWait(word_.data(), kOpen, ACL_STREAM_WAIT_VALUE_EQ, stream));
  }
  void open() {
    EXPECT_SUCCESS(
        aclrtMemcpy(word_.data(), sizeof kOpen, &kOpen, sizeof kOpen, ACL_MEMCPY_HOST_TO_DEVICE));
  }

 private:
  static constexpr uint64_t kOpen = 0x0BE7;
  LiveMapping word_;
};

// A page of device memory that tasks set, byte by byte to one value.
class TargetPage {
 public:
  static constexpr uint8_t kInitial = 0x11;

  TargetPage() { copy_in(memory_.data(), std::vector<uint8_t>(kPage, kInitial)); }

  aclError try_set(aclrtStream stream, uint8_t value) {
    return aclrtMemsetAsync(memory_.data(), kPage, value, kPage, stream);
  }
  void queue_set(aclrtStream stream, uint8_t value) { EXPECT_SUCCESS(try_set(stream, value)); }
  bool holds(uint8_t value) const {
    return copy_out(memory_.data(), kPage) == std::vector<uint8_t>(kPage, value);
  }

 private:
  LiveMapping memory_;
};

// A set that leaves its mapping: accepted, because only its first byte is looked at by the call,
// and refused by the device when it runs.
class FailingTask {
 public:
  explicit FailingTask(uint32_t device = 0)
      : memory_(kGranule, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, device)) {
    copy_in(memory_.data(), before_);
  }

  aclError try_queue(aclrtStream stream) {
    return aclrtMemsetAsync(memory_.data(), 2 * kGranule, 0xEE, kGranule + 1, stream);
  }
  void queue_on(aclrtStream stream) { EXPECT_SUCCESS(try_queue(stream)); }
  const void* start() const { return memory_.data(); }
  void expect_nothing_written() const { EXPECT_TRUE(copy_out(memory_.data(), kPage) == before_); }

 private:
  LiveMapping memory_;
  const std::vector<uint8_t> before_ = pattern(kPage, 77);
};

// ---- Calls that wait ----

// A call on a thread of its own, in the context given. A NULL context leaves the thread without.
class WaitingCall {
 public:
  WaitingCall(aclrtContext context, std::function<aclError()> call)
      : thread_([this, context, body = std::move(call)] {
          if (context != nullptr) {
            EXPECT_SUCCESS(aclrtSetCurrentContext(context));
          }
          thread_id_.set_value(syscall(SYS_gettid));
          const aclError code = body();
          text_ = recent_error();
          code_.set_value(code);
        }) {}
  explicit WaitingCall(std::function<aclError()> call)
      : WaitingCall(runtime::current_context(), std::move(call)) {}
  ~WaitingCall() { thread_.join(); }
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;

  // True once the thread sleeps in the call, false if the call ended.
  bool waits() {
    if (stat_file_.empty()) {
      stat_file_ = "/proc/self/task/" + std::to_string(thread_id_.get_future().get()) + "/stat";
    }
    // A few looks in a row: a lock on the way into the call is a short sleep too. A call that
    // never sleeps waits all the same, hence the limit.
    constexpr int kLooksAsleep = 20;
    constexpr int kMostLooks = 100'000;
    int looks_asleep = 0;
    for (int look = 0; look < kMostLooks && looks_asleep < kLooksAsleep; ++look) {
      if (ended_within(std::chrono::seconds(0))) return false;
      looks_asleep = sleeps() ? looks_asleep + 1 : 0;
      std::this_thread::yield();
    }
    return !ended_within(std::chrono::seconds(0));
  }
  bool ends() { return ended_within(std::chrono::milliseconds(kLongLimit)); }
  // Waits for the end of the call. The text of an error must name the function.
  aclError code() { return result_.get(); }
  const std::string& text() {
    result_.wait();
    return text_;
  }

 private:
  template <typename Duration>
  bool ended_within(Duration limit) {
    return result_.wait_for(limit) == std::future_status::ready;
  }
  bool sleeps() const {
    std::ifstream file(stat_file_);
    std::string line;
    std::getline(file, line);
    const size_t end_of_name = line.rfind(") ");
    return end_of_name != std::string::npos && line.compare(end_of_name + 2, 1, "S") == 0;
  }

  std::promise<long> thread_id_;
  std::promise<aclError> code_;
  std::shared_future<aclError> result_ = code_.get_future().share();
  std::string text_;
  std::string stat_file_;
  std::thread thread_;
};

// What `wait` returns when `interrupt` meets it while the streams are held. An interrupt that came
// before the wait meets nothing, and the wait succeeds: then all of it again.
inline aclError code_of_interrupted(const std::vector<aclrtStream>& held,
                                    const std::function<aclError()>& wait,
                                    const std::function<void()>& interrupt) {
  WordGate word;
  for (int attempt = 0; attempt < 100; ++attempt) {
    for (const aclrtStream stream : held) word.hold(stream);
    WaitingCall waiting(wait);
    (void)waiting.waits();
    interrupt();
    if (!waiting.ends()) {
      ADD_FAILURE() << "the wait goes on";
      word.open();
    }
    if (waiting.code() != ACL_SUCCESS) {
      EXPECT_NE(waiting.text().find("aclrtSynchronize"), std::string::npos) << waiting.text();
      return waiting.code();
    }
  }
  return ACL_SUCCESS;
}

// ---- What the library says ----

inline int32_t id_of(aclrtStream stream) {
  int32_t id = -77;
  EXPECT_SUCCESS(aclrtStreamGetId(stream, &id));
  return id;
}

inline uint32_t streams_left() {
  uint32_t count = 0xAAAAAAAA;
  EXPECT_SUCCESS(aclrtGetStreamAvailableNum(&count));
  return count;
}

inline aclrtStreamAttrValue attribute_of(aclrtStream stream, aclrtStreamAttr attribute) {
  aclrtStreamAttrValue value;
  std::fill(std::begin(value.reserve), std::end(value.reserve), 0x5a5a5a5au);
  EXPECT_SUCCESS(aclrtGetStreamAttribute(stream, attribute, &value));
  return value;
}

inline uint64_t failure_mode_of(aclrtStream stream) {
  return attribute_of(stream, ACL_STREAM_ATTR_FAILURE_MODE).failureMode;
}

inline void expect_finishes(aclrtStream stream) {
  EXPECT_SUCCESS(aclrtSynchronizeStreamWithTimeout(stream, kLongLimit));
}

// A context of its own, current from its creation to the end of its scope.
class ContextScope {
 public:
  explicit ContextScope(int32_t device = 0)
      : before_(runtime::current_context()), context_(runtime::create_context(device)) {}
  ~ContextScope() {
    if (context_ != nullptr) {
      destroy();
    }
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  aclrtContext get() const { return context_; }
  aclrtContext before() const { return before_; }
  void enter() const { EXPECT_SUCCESS(aclrtSetCurrentContext(context_)); }
  void leave() const { EXPECT_SUCCESS(aclrtSetCurrentContext(before_)); }
  void destroy() {
    EXPECT_SUCCESS(aclrtDestroyContext(std::exchange(context_, nullptr)));
    leave();
  }

 private:
  const aclrtContext before_;
  aclrtContext context_;
};

}  // namespace understudy_test
