// SPDX-License-Identifier: Apache-2.0
//
// What a process records comes back from the file: of many threads, of short ones, of threads that
// end, of fork children, and of signal handlers in the middle of a record.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "observe/history.h"
#include "observe/recorder.h"
#include "observe/recording_definitions.h"
#include "observe/recording_file.h"
#include "tools/recording/recording.h"
#include "unit/other_process.h"
#include "unit/temporary_directory.h"

namespace understudy {
namespace {

constexpr CallShape kStore{"store", "out(place), size", "p,u"};
constexpr CallShape kCheck{"check", "", ""};

// A call that ends when this does.
class RecordedCall {
 public:
  explicit RecordedCall(const CallShape& shape = kStore) { Recorder::begin_call(shape, open_); }
  ~RecordedCall() {
    const std::array<uint64_t, 2> arguments{1, number};
    if (open_.begun != 0) Recorder::end_call(open_, code, arguments);
  }
  uint64_t number = 0;
  int32_t code = 0;

 private:
  OpenCall open_;
};

void call(uint64_t number) {
  RecordedCall call;
  call.number = number;
}

class RecordingRecordsTest : public testing::Test {
 protected:
  void begin(uint64_t chunks = 1024, bool is_ring = false) const {
    RecordingChoice choice;
    choice.file = path();
    choice.limit = chunks * kChunkBytes;
    choice.is_ring = is_ring;
    ASSERT_TRUE(Recorder::begin(choice, "program=test\n").ok());
  }
  // In a process of its own, which is recorded.
  template <typename Body>
  command::Recording recording_of(Body body) const {
    OtherProcess other([&](const Line&) {
      begin();
      body();
    });
    EXPECT_TRUE(other.ended_well());
    return read();
  }
  command::Recording read() const {
    const Result<command::Recording> recording = command::read_recording(path());
    EXPECT_TRUE(recording.ok()) << recording.error().text();
    return recording.ok() ? recording.value() : command::Recording{};
  }
  std::string path() const { return directory_.at("recording"); }

 private:
  const TemporaryDirectory directory_;
};

const std::string& name_of(const command::Recording& recording, const command::RecordedCall& call) {
  return recording.functions.at(call.function).name;
}

// How often each number is among the second arguments.
std::vector<unsigned> numbers_of(const command::Recording& recording, size_t count) {
  std::vector<unsigned> times(count);
  for (const command::RecordedCall& call : recording.calls) {
    EXPECT_EQ(name_of(recording, call), "store");
    const auto arguments = recording.arguments(call);
    EXPECT_EQ(arguments.size(), 2U);
    if (arguments.size() == 2 && arguments[1] < count) ++times[arguments[1]];
  }
  return times;
}

void expect_each_once(const command::Recording& recording, size_t count) {
  EXPECT_EQ(recording.calls.size(), count);
  EXPECT_EQ(numbers_of(recording, count), std::vector<unsigned>(count, 1));
  EXPECT_EQ(recording.lost, 0U);
  EXPECT_EQ(recording.notes, std::vector<std::string>{});
}

TEST_F(RecordingRecordsTest, ACallHasItsFunctionArgumentsAndCode) {
  const command::Recording recording = recording_of([] {
    RecordedCall call;
    call.number = UINT64_MAX;
    call.code = -7;
  });
  ASSERT_EQ(recording.calls.size(), 1U);
  const command::RecordedCall& call = recording.calls.front();
  EXPECT_EQ(call.code, -7);
  const command::RecordedFunction& function = recording.functions.at(call.function);
  EXPECT_EQ(function.name, "store");
  ASSERT_EQ(function.parameters.size(), 2U);
  EXPECT_TRUE(function.parameters[0].is_out);
  EXPECT_EQ(function.parameters[0].name, "place");
  EXPECT_EQ(function.parameters[1].type, 'u');
  EXPECT_EQ(recording.arguments(call)[1], UINT64_MAX);
}

TEST_F(RecordingRecordsTest, CallsOfManyChunksAreAllThere) {
  constexpr size_t kCalls = 100'000;
  const command::Recording recording = recording_of([] {
    for (size_t i = 0; i < kCalls; ++i) call(i);
  });
  expect_each_once(recording, kCalls);
}

TEST_F(RecordingRecordsTest, CallsOfSeveralThreadsAreAllThere) {
  constexpr size_t kThreads = 8;
  constexpr size_t kCalls = 5000;
  const command::Recording recording = recording_of([] {
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([thread] {
        for (size_t i = 0; i < kCalls; ++i) call(thread * kCalls + i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  expect_each_once(recording, kThreads * kCalls);
  EXPECT_EQ(recording.threads.size(), kThreads);
}

// The first calls of all threads are of a function that was not defined yet.
TEST_F(RecordingRecordsTest, AFunctionHasANameInTheFirstCallsOfAllThreads) {
  constexpr size_t kThreads = 8;
  constexpr size_t kFunctions = 200;
  static std::array<std::array<char, 8>, kFunctions> names;
  const command::Recording recording = recording_of([] {
    for (size_t i = 0; i < kFunctions; ++i) snprintf(names[i].data(), 8, "f%03zu", i);
    std::atomic<bool> may_go{false};
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        while (!may_go) std::this_thread::yield();
        for (const auto& name : names) RecordedCall({name.data(), "place, number", "u,u"});
      });
    }
    may_go = true;
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(recording.calls.size(), kThreads * kFunctions);
  EXPECT_EQ(recording.functions.size(), kFunctions);
  EXPECT_EQ(recording.notes, std::vector<std::string>{});
}

TEST_F(RecordingRecordsTest, ShortThreadsGoOnInTheChunksOfOthers) {
  constexpr size_t kThreads = 1000;
  const command::Recording recording = recording_of([] {
    for (size_t i = 0; i < kThreads; ++i) std::thread(call, i).join();
  });
  expect_each_once(recording, kThreads);
  EXPECT_EQ(recording.threads.size(), kThreads);
  RecordingChoice choice;
  choice.file = path();
  EXPECT_LT(RecordingFile::open(choice).value()->header().chunks.load(), 8U);
}

// Destructors of a thread's variables may run behind that of the recorder's part of the thread.
TEST_F(RecordingRecordsTest, CallsOfThreadsThatEndTakeNoChunksOfTheirOwn) {
  constexpr size_t kThreads = 500;
  struct CallsAtEnd {
    ~CallsAtEnd() {
      for (size_t i = 0; i < 3; ++i) call(3 * number + i);
    }
    size_t number = 0;
  };
  const command::Recording recording = recording_of([] {
    for (size_t i = 0; i < kThreads; ++i) {
      std::thread([i] {
        static thread_local CallsAtEnd ends;
        ends.number = i;
        RecordedCall first(kCheck);  // the recorder's part is made behind that of `ends`
      }).join();
    }
  });
  EXPECT_EQ(recording.calls.size(), 4 * kThreads);
  EXPECT_EQ(recording.threads.size(), kThreads);
  EXPECT_EQ(recording.lost, 0U);
  RecordingChoice choice;
  choice.file = path();
  EXPECT_LT(RecordingFile::open(choice).value()->header().chunks.load(), 8U);
}

TEST_F(RecordingRecordsTest, AThreadThatEndsInACallIsInNoneBehindThat) {
  const command::Recording recording = recording_of([] {
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          OpenCall open;
          Recorder::begin_call(kStore, open);
          return nullptr;
        },
        nullptr);
    pthread_join(thread, nullptr);
    std::thread(call, 0).join();
  });
  EXPECT_EQ(recording.calls.size(), 1U);
  for (const command::RecordedThread& thread : recording.threads) {
    EXPECT_EQ(thread.open_function, command::kNone);
  }
}

// Also where its chunk has been full since it began.
TEST_F(RecordingRecordsTest, AProcessThatIsKilledInACallIsFoundInIt) {
  for (const int records : {0, 20'000}) {
    OtherProcess other([&](const Line& line) {
      begin();
      OpenCall open;
      Recorder::begin_call(kStore, open);
      for (int i = 0; i < records; ++i) Recorder::end_object(ObjectKind::kBlock, 1);
      line.say();
      line.hear();
    });
    other.hear_word();
    other.kill();
    const command::Recording recording = read();
    ASSERT_EQ(recording.threads.size(), 1U) << records;
    ASSERT_NE(recording.threads[0].open_function, command::kNone) << records;
    EXPECT_EQ(recording.functions.at(recording.threads[0].open_function).name, "store");
    ASSERT_EQ(unlink(path().c_str()), 0);
  }
}

TEST_F(RecordingRecordsTest, AnObjectMayEndInTheCallThatBeganIt) {
  const command::Recording recording = recording_of([] {
    RecordedCall call;
    Recorder::begin_object({.kind = ObjectKind::kBlock, .number = 5, .size = 4096, .device = 1});
    Recorder::end_object(ObjectKind::kBlock, 5);
    Recorder::begin_object({.kind = ObjectKind::kBlock, .number = 5, .size = 8192, .device = 1});
  });
  ASSERT_EQ(recording.objects.size(), 2U);
  EXPECT_NE(recording.objects[0].end, command::kStillAlive);
  EXPECT_EQ(recording.objects[1].end, command::kStillAlive);
  EXPECT_EQ(recording.objects[1].size, 8192U);
  EXPECT_EQ(recording.objects[0].begin_call, 0U);
  EXPECT_EQ(recording.notes, std::vector<std::string>{});
}

TEST_F(RecordingRecordsTest, ATextThatIsUsedAgainIsDefinedOnce) {
  const command::Recording recording = recording_of([] {
    const uint64_t first = Recorder::define_text("text", true);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(Recorder::define_text("text", true), first);
    EXPECT_NE(Recorder::define_text("other", true), first);
    call(first);
  });
  EXPECT_EQ(recording.texts.size(), 2U);
}

TEST_F(RecordingRecordsTest, AtTheLimitWhatIsLostIsCounted) {
  constexpr size_t kCalls = 100'000;
  OtherProcess other([&](const Line&) {
    begin(4);
    for (size_t i = 0; i < kCalls; ++i) call(i);
  });
  EXPECT_TRUE(other.ended_well());
  const command::Recording recording = read();
  EXPECT_GT(recording.calls.size(), 0U);
  EXPECT_EQ(recording.calls.size() + recording.lost, kCalls);
}

TEST_F(RecordingRecordsTest, AsARingTheLatestCallsAreThere) {
  constexpr size_t kCalls = 200'000;
  OtherProcess other([&](const Line&) {
    begin(8, true);
    for (size_t i = 0; i < kCalls; ++i) call(i);
  });
  EXPECT_TRUE(other.ended_well());
  const command::Recording recording = read();
  EXPECT_EQ(recording.lost, 0U);
  ASSERT_GT(recording.calls.size(), 5000U);
  const size_t first = kCalls - recording.calls.size();
  for (size_t i = 0; i < recording.calls.size(); ++i) {
    ASSERT_EQ(recording.arguments(recording.calls[i])[1], first + i);
  }
}

// Each leaves a chunk of definitions, of which the ring has far fewer.
TEST_F(RecordingRecordsTest, AsARingHasTheLatestOfManyProcesses) {
  constexpr uint64_t kProcesses = 60;
  for (uint64_t number = 0; number < kProcesses; ++number) {
    OtherProcess other([&](const Line&) {
      begin(16, true);
      call(number);
    });
    EXPECT_TRUE(other.ended_well());
  }
  const command::Recording recording = read();
  EXPECT_EQ(recording.lost, 0U);
  ASSERT_GE(recording.calls.size(), 4U);
  EXPECT_EQ(recording.arguments(recording.calls.back())[1], kProcesses - 1);
  for (const command::RecordedCall& call : recording.calls) {
    EXPECT_EQ(name_of(recording, call), "store");
  }
}

// ---- Fork ----

TEST_F(RecordingRecordsTest, AForkChildGoesOnAsAProcessOfItsOwn) {
  const command::Recording recording = recording_of([] {
    call(0);
    for (uint64_t number = 1; number <= 3; ++number) {
      const pid_t child = fork();
      if (child == 0) {
        call(number);
        _exit(0);
      }
      int status = -1;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    call(4);
  });
  expect_each_once(recording, 5);
  ASSERT_EQ(recording.processes.size(), 4U);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(recording.processes[i].parent, recording.processes[0].pid);
    EXPECT_EQ(recording.processes[i].program, "test");
  }
}

// At whatever moment of a record the other threads are.
TEST_F(RecordingRecordsTest, AForkWhileThreadsRecordHarmsNeither) {
  constexpr uint64_t kForks = 30;
  std::atomic<uint64_t> calls{0};
  const command::Recording recording = recording_of([&] {
    std::atomic<bool> is_done{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!is_done) {
          call(kForks);
          std::thread(call, kForks).join();
        }
      });
    }
    for (uint64_t number = 0; number < kForks; ++number) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(30);
        call(number);
        _exit(0);
      }
      int status = -1;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    is_done = true;
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(numbers_of(recording, kForks), std::vector<unsigned>(kForks, 1));
  EXPECT_EQ(recording.lost, 0U);
  EXPECT_EQ(recording.notes, std::vector<std::string>{});
}

// ---- Signals ----

std::atomic<uint64_t> calls_of_handler{0};

// Its calls may be in the middle of anything. What they lose is counted.
TEST_F(RecordingRecordsTest, ASignalHandlerMayCallInTheMiddleOfARecord) {
  std::atomic<uint64_t>* shared = &calls_of_handler;
  static std::array<std::array<char, 8>, 4000> names;
  uint64_t calls = 0;
  OtherProcess other([&](const Line& line) {
    begin();
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int number = errno;
      RecordedCall call(kCheck);
      (void)Recorder::define_text("of a handler", true);
      calls_of_handler.fetch_add(1);
      errno = number;
    };
    ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
    const itimerval often{{0, 500}, {0, 500}};
    ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
    uint64_t own = 0;
    for (size_t i = 0; i < names.size(); ++i, ++own) {
      snprintf(names[i].data(), 8, "f%04zu", i % 10'000);
      RecordedCall(CallShape{names[i].data(), "place, number", "u,u"});
    }
    while (shared->load() < 200) {
      call(0);
      ++own;
    }
    const itimerval never{};
    ASSERT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
    line.say(own + shared->load());
  });
  calls = other.hear_word();
  EXPECT_TRUE(other.ended_well());
  const command::Recording recording = read();
  EXPECT_EQ(recording.calls.size() + recording.lost, calls);
  for (const command::RecordedThread& thread : recording.threads) {
    EXPECT_EQ(thread.open_function, command::kNone);
  }
}

TEST_F(RecordingRecordsTest, ErrnoStaysAsItWas) {
  OtherProcess other([&](const Line&) {
    begin();
    const rlimit none{0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    errno = 4711;
    for (int i = 0; i < 100'000; ++i) call(0);
    EXPECT_EQ(errno, 4711);
  });
  EXPECT_TRUE(other.ended_well());
}

// ---- Definitions ----

TEST_F(RecordingRecordsTest, WhatFindsNoRoomAmongTheDefinitionsHasTheNumber0) {
  constexpr size_t kMany = 20'000;
  RecordingChoice choice;
  choice.file = path();
  const std::unique_ptr<RecordingFile> file = std::move(RecordingFile::open(choice).value());
  const auto definitions = std::make_unique<RecordingDefinitions>(*file);
  size_t defined = 0;
  for (size_t i = 0; i < kMany; ++i) {
    if (definitions->text(std::to_string(i)) != 0) ++defined;
  }
  EXPECT_GT(defined, 4096U);
  EXPECT_LT(defined, kMany);
  EXPECT_EQ(definitions->text("0"), 1U);
  EXPECT_EQ(definitions->text("another"), 0U);
  const std::vector<char> functions(kMany * 8);
  defined = 0;
  for (size_t i = 0; i < kMany; ++i) {
    if (definitions->function({&functions[8 * i], "", ""}) != 0) ++defined;
  }
  EXPECT_GT(defined, 4096U);
  EXPECT_LT(defined, kMany);
  EXPECT_EQ(definitions->function({functions.data(), "", ""}), 1U);
}

}  // namespace
}  // namespace understudy
