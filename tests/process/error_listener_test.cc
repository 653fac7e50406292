// SPDX-License-Identifier: Apache-2.0
//
// aclUnderstudySetErrorListener: what a listener hears, and on which thread; that it may fail,
// throw, call back, be replaced and be forked at any moment.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "acl/acl_understudy.h"
#include "rules/stream_tasks.h"
#include "support/fork_safety.h"

namespace understudy_test {
namespace {

struct Heard {
  std::string function;  // empty for a task
  std::string sentence;
  aclError code;
  int32_t device;
  uint32_t stream;
  std::thread::id thread;
};

// Listens for its lifetime.
class Listener {
 public:
  Listener() { EXPECT_SUCCESS(aclUnderstudySetErrorListener(hear, this)); }
  ~Listener() { EXPECT_SUCCESS(aclUnderstudySetErrorListener(nullptr, nullptr)); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::vector<Heard> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(heard_, {});
  }

 private:
  static void hear(const aclUnderstudyFailure* failure, void* self) {
    for (const uint64_t word : failure->reserved) EXPECT_EQ(word, 0U);
    auto& listener = *static_cast<Listener*>(self);
    const std::lock_guard lock(listener.mutex_);
    listener.heard_.push_back({failure->function != nullptr ? failure->function : "",
                               failure->sentence, failure->code, failure->deviceId,
                               failure->streamId, std::this_thread::get_id()});
  }

  std::mutex mutex_;
  std::vector<Heard> heard_;
};

aclError fail() { return aclrtFree(nullptr); }

using ErrorListener = DeviceTest;

TEST_F(ErrorListener, HearsOfEachCallThatFails) {
  Listener listener;
  ASSERT_SUCCESS(aclrtSynchronizeDevice());
  EXPECT_TRUE(listener.take().empty());
  const aclError code = fail();
  ASSERT_NE(code, ACL_SUCCESS);
  const std::vector<Heard> heard = listener.take();
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].function, "aclrtFree");
  EXPECT_EQ(heard[0].code, code);
  EXPECT_EQ(heard[0].device, -1);
  EXPECT_EQ(heard[0].thread, std::this_thread::get_id());
  EXPECT_EQ("aclrtFree: " + heard[0].sentence + "\n", recent_error());
}

TEST_F(ErrorListener, HearsOfOtherThreads) {
  Listener listener;
  std::thread::id other;
  std::thread thread([&] {
    other = std::this_thread::get_id();
    EXPECT_NE(fail(), ACL_SUCCESS);
  });
  thread.join();
  const std::vector<Heard> heard = listener.take();
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].thread, other);
}

TEST_F(ErrorListener, HearsOfATaskAndOfTheCallThatReturnsItsError) {
  Listener listener;
  aclrtStream stream = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&stream));
  int32_t id = -1;
  ASSERT_SUCCESS(aclrtStreamGetId(stream, &id));
  FailingTask task;
  task.queue_on(stream);
  const aclError code = aclrtSynchronizeStreamWithTimeout(stream, kLongLimit);
  EXPECT_EQ(code, ACL_ERROR_RT_SYS_DMA);
  const std::vector<Heard> heard = listener.take();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0].function, "");
  EXPECT_EQ(heard[0].code, code);
  EXPECT_EQ(heard[0].device, 0);
  EXPECT_EQ(heard[0].stream, static_cast<uint32_t>(id));
  EXPECT_EQ(heard[1].function, "aclrtSynchronizeStreamWithTimeout");
  EXPECT_EQ(heard[1].sentence, heard[0].sentence);
  EXPECT_SUCCESS(aclrtDestroyStream(stream));
}

TEST_F(ErrorListener, LeavesTheCallbacksOfTasksAlone) {
  static std::atomic<int> told;
  told = 0;
  ASSERT_SUCCESS(aclrtSetExceptionInfoCallback([](aclrtExceptionInfo*) { ++told; }));
  { const Listener ended; }
  FailingTask task;
  task.queue_on(nullptr);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(nullptr, kLongLimit), ACL_ERROR_RT_SYS_DMA);
  EXPECT_EQ(told, 1);
  EXPECT_SUCCESS(aclrtSetExceptionInfoCallback(nullptr));
}

TEST_F(ErrorListener, MayThrow) {
  const auto listener = [](const aclUnderstudyFailure*, void*) { throw std::logic_error("no"); };
  ASSERT_SUCCESS(aclUnderstudySetErrorListener(listener, nullptr));
  EXPECT_NE(fail(), ACL_SUCCESS);
  ASSERT_SUCCESS(aclUnderstudySetErrorListener(nullptr, nullptr));
}

TEST_F(ErrorListener, MayMakeCallsButNotReplaceItself) {
  struct Answers {
    int calls = 0;
    aclError good = -1;
    aclError bad = -1;
    aclError replace = -1;
  } answers;
  const auto listener = [](const aclUnderstudyFailure*, void* data) {
    auto& own = *static_cast<Answers*>(data);
    ++own.calls;
    own.good = aclrtSynchronizeDevice();
    own.bad = fail();
    own.replace = aclUnderstudySetErrorListener(nullptr, nullptr);
  };
  ASSERT_SUCCESS(aclUnderstudySetErrorListener(listener, &answers));
  EXPECT_NE(fail(), ACL_SUCCESS);
  EXPECT_NE(fail(), ACL_SUCCESS);
  ASSERT_SUCCESS(aclUnderstudySetErrorListener(nullptr, nullptr));
  EXPECT_EQ(answers.calls, 2);
  EXPECT_EQ(answers.good, ACL_SUCCESS);
  EXPECT_NE(answers.bad, ACL_SUCCESS);
  EXPECT_EQ(answers.replace, ACL_ERROR_RT_PARAM_INVALID);
}

// A listener that stays in its first call until it is let go.
struct SlowListener {
  std::promise<void> entered;
  std::promise<void> gate;
  std::atomic<bool> left{false};

  static void hear(const aclUnderstudyFailure*, void* self) {
    auto& own = *static_cast<SlowListener*>(self);
    own.entered.set_value();
    own.gate.get_future().wait();
    own.left = true;
  }
};

TEST_F(ErrorListener, IsNotInUseOnceItWasReplaced) {
  SlowListener slow;
  ASSERT_SUCCESS(aclUnderstudySetErrorListener(SlowListener::hear, &slow));
  std::thread failing([] { (void)fail(); });
  slow.entered.get_future().wait();
  std::promise<void> begun;
  bool left = false;
  std::thread replacing([&] {
    begun.set_value();
    EXPECT_SUCCESS(aclUnderstudySetErrorListener(nullptr, nullptr));
    left = slow.left;
  });
  begun.get_future().wait();
  slow.gate.set_value();
  replacing.join();
  failing.join();
  EXPECT_TRUE(left);
}

TEST_F(ErrorListener, CanBeReplacedAtAnyMoment) {
  constexpr int kReplacements = 500;
  static std::atomic<int> heard;
  heard = 0;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) (void)fail();
    });
  }
  for (int i = 0; i < kReplacements; ++i) {
    const auto number = std::make_unique<int>(i);
    const auto listener = [](const aclUnderstudyFailure*, void* data) {
      heard += *static_cast<int*>(data) >= 0 ? 1 : 0;
    };
    ASSERT_SUCCESS(aclUnderstudySetErrorListener(listener, number.get()));
    const int before = heard;
    while (i % 50 == 0 && heard == before) std::this_thread::yield();
    ASSERT_SUCCESS(aclUnderstudySetErrorListener(nullptr, nullptr));
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

// The exit code of the child.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(ErrorListener, IsNotInheritedByAChildWhichCanHaveItsOwn) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  SlowListener slow;
  ASSERT_SUCCESS(aclUnderstudySetErrorListener(SlowListener::hear, &slow));
  std::thread failing([] { (void)fail(); });
  slow.entered.get_future().wait();  // the child has a thread less, which is in the listener
  EXPECT_EQ(in_child([] {
              (void)fail();
              Listener own;
              (void)fail();
              return static_cast<int>(own.take().size());
            }),
            1);
  slow.gate.set_value();
  failing.join();
  ASSERT_SUCCESS(aclUnderstudySetErrorListener(nullptr, nullptr));
}

TEST_F(ErrorListener, MayFork) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  const auto listener = [](const aclUnderstudyFailure*, void* data) {
    *static_cast<pid_t*>(data) = fork();
  };
  pid_t child = -1;
  ASSERT_SUCCESS(aclUnderstudySetErrorListener(listener, &child));
  (void)fail();
  if (child == 0) {  // it returned from the listener as well
    Listener own;
    (void)fail();
    _exit(own.take().size() == 1 ? 0 : 1);
  }
  ASSERT_SUCCESS(aclUnderstudySetErrorListener(nullptr, nullptr));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ErrorListenerAtFirst, HearsWhyThereIsNoRuntime) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "no such product"});
  Listener listener;
  EXPECT_NE(aclInit(nullptr), ACL_SUCCESS);
  const std::vector<Heard> heard = listener.take();
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].function, "aclInit");
  EXPECT_NE(heard[0].sentence.find("no such product"), std::string::npos);
}

TEST(ErrorListenerAtFirst, StartsNothing) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "2"});
  { const Listener listener; }
  EXPECT_EQ(aclUnderstudyRuntimeDirectory(), nullptr);
}

}  // namespace
}  // namespace understudy_test
