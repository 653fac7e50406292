// SPDX-License-Identifier: Apache-2.0
//
// What tests of callbacks and events share: bodies that a stream or a thread runs, threads that
// serve streams, and the rules that hold for every function with a stream.
#pragma once

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rules/live_mapping.h"
#include "rules/runtime_support.h"
#include "rules/stream_objects.h"

namespace understudy_test::callbacks {

// Only a library that hangs ever reaches these.
inline constexpr int32_t kLongMilliseconds = 60'000;
inline constexpr std::chrono::seconds kLongerThanThat{90};

// Waits for the stream or the event without the risk of waiting forever.
inline aclError finish(aclrtStream stream) {
  return aclrtSynchronizeStreamWithTimeout(stream, kLongMilliseconds);
}
inline aclError reach(aclrtEvent event) {
  return aclrtSynchronizeEventWithTimeout(event, kLongMilliseconds);
}

inline uint64_t this_thread() { return static_cast<uint64_t>(pthread_self()); }

using runtime::current_context;

// The handle that stands for NULL in calls that take a stream.
inline aclrtStream handle_of_default_stream() {
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCtxGetCurrentDefaultStream(&stream));
  EXPECT_NE(stream, nullptr);
  return stream;
}

// ---- Bodies ----

// What is to run, in the form that callbacks and host functions take. It must outlive its run.
class Body {
 public:
  explicit Body(std::function<void()> action) : action_(std::move(action)) {}
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  static void run(void* self) { static_cast<Body*>(self)->action_(); }

 private:
  std::function<void()> action_;
};

// A body queued on a stream as a host function.
class HostStep {
 public:
  HostStep(aclrtStream stream, std::function<void()> action) : body_(std::move(action)) {
    EXPECT_SUCCESS(aclrtLaunchHostFunc(stream, Body::run, &body_));
  }

 private:
  Body body_;
};

// Keeps whoever runs stand() in it until release().
class Pause {
 public:
  ~Pause() { release(); }

  void stand() {
    reached_.set_value();
    released_future_.wait();
  }
  bool is_reached() {
    return reached_future_.wait_for(kLongerThanThat) == std::future_status::ready;
  }
  void release() {
    if (!std::exchange(is_released_, true)) released_.set_value();
  }

 private:
  bool is_released_ = false;
  std::promise<void> reached_;
  std::future<void> reached_future_ = reached_.get_future();
  std::promise<void> released_;
  std::future<void> released_future_ = released_.get_future();
};

// ---- Serving ----

// A stream served by a thread until the end of the scope, or before with end().
class Subscription {
 public:
  explicit Subscription(aclrtStream stream, uint64_t thread = this_thread())
      : stream_(stream), thread_(thread) {
    EXPECT_SUCCESS(aclrtSubscribeReport(thread_, stream_));
  }
  ~Subscription() {
    if (!is_over_) end();
  }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  void end() {
    is_over_ = true;
    EXPECT_SUCCESS(aclrtUnSubscribeReport(thread_, stream_));
  }

 private:
  const aclrtStream stream_;
  const uint64_t thread_;
  bool is_over_ = false;
};

inline void launch(Body& body, aclrtStream stream,
                   aclrtCallbackBlockType block = ACL_CALLBACK_BLOCK) {
  EXPECT_SUCCESS(aclrtLaunchCallback(Body::run, &body, block, stream));
}

inline aclError serve_one() { return aclrtProcessReport(kLongMilliseconds); }

inline void expect_nothing_to_serve() {
  EXPECT_FAILS(ACL_ERROR_RT_REPORT_TIMEOUT, aclrtProcessReport(1));
}

// A thread that can be appointed by its id and calls aclrtProcessReport once, when told to. If
// that never returns the test fails and goes on without the thread.
class Server {
 public:
  Server() : answer_(talk_->answer.get_future()), thread_(serve, talk_, current_context()) {
    id_ = talk_->id.get_future().get();
  }
  ~Server() {
    if (!is_told_) tell(kGoHome);
    if (!answer_.valid() || answer_.wait_for(kLongerThanThat) == std::future_status::ready) {
      thread_.join();
    } else {
      ADD_FAILURE() << "aclrtProcessReport did not return";
      thread_.detach();
    }
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint64_t id() const { return id_; }
  void start(int32_t timeout = kLongMilliseconds) { tell(timeout); }
  // What the call returned; none if it did not.
  std::optional<aclError> answer() {
    if (answer_.wait_for(kLongerThanThat) != std::future_status::ready) return std::nullopt;
    return answer_.get();
  }

 private:
  static constexpr int32_t kGoHome = 0;

  struct Talk {
    std::promise<uint64_t> id;
    std::promise<int32_t> timeout;
    std::promise<aclError> answer;
  };

  static void serve(const std::shared_ptr<Talk>& talk, aclrtContext context) {
    EXPECT_SUCCESS(aclrtSetCurrentContext(context));
    talk->id.set_value(this_thread());
    const int32_t timeout = talk->timeout.get_future().get();
    talk->answer.set_value(timeout == kGoHome ? ACL_SUCCESS : aclrtProcessReport(timeout));
  }
  void tell(int32_t timeout) {
    is_told_ = true;
    talk_->timeout.set_value(timeout);
  }

  const std::shared_ptr<Talk> talk_ = std::make_shared<Talk>();
  std::future<aclError> answer_;
  uint64_t id_ = 0;
  bool is_told_ = false;
  std::thread thread_;
};

// ---- What holds for every function with a stream ----

// A function with its other arguments good.
struct StreamCall {
  const char* name;
  std::function<aclError(aclrtStream)> call;

  void expect_fails(aclError code, aclrtStream stream) const {
    (void)recent_error();
    EXPECT_TRUE(fails_with(code, call(stream), name));
  }
};

// GEN-03, GEN-05 and GEN-06, on device 0.
inline void expect_bad_streams_refused(const std::vector<StreamCall>& calls) {
  const aclrtContext own = current_context();
  aclrtContext other = nullptr;
  ASSERT_SUCCESS(aclrtCreateContext(&other, 0));
  TestStream of_other;
  ASSERT_SUCCESS(aclrtSetCurrentContext(own));

  TestStream good;
  aclrtStream destroyed = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&destroyed));
  ASSERT_SUCCESS(aclrtDestroyStream(destroyed));
  int not_a_stream = 0;
  for (const StreamCall& function : calls) {
    SCOPED_TRACE(function.name);
    function.expect_fails(ACL_ERROR_RT_STREAM_CONTEXT, of_other.get());
    function.expect_fails(ACL_ERROR_RT_INVALID_HANDLE, destroyed);
    function.expect_fails(ACL_ERROR_RT_INVALID_HANDLE, &not_a_stream);
    on_bare_thread([&] {
      function.expect_fails(ACL_ERROR_RT_CONTEXT_NULL, good.get());
      function.expect_fails(ACL_ERROR_RT_CONTEXT_NULL, nullptr);
    });
  }
  EXPECT_EQ(stream_status(good.get()), ACL_STREAM_STATUS_COMPLETE);

  EXPECT_SUCCESS(aclrtSetCurrentContext(other));
  EXPECT_EQ(stream_status(of_other.get()), ACL_STREAM_STATUS_COMPLETE);
  of_other.destroy();
  EXPECT_SUCCESS(aclrtDestroyContext(other));
  EXPECT_SUCCESS(aclrtSetCurrentContext(own));
}

}  // namespace understudy_test::callbacks
