// SPDX-License-Identifier: Apache-2.0
//
// A program that is recorded because its environment says so, and what may happen to it: it is
// killed, forks, ends its threads, and calls where others would not. What it has called is in the
// recording, and it does what it does without one.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "process/log_objects.h"
#include "process/recorded_file.h"
#include "rules/stream_objects.h"
#include "support/fork_safety.h"

namespace understudy_test {
namespace {

using logged::in_child;
using logged::OwnFile;

// Chosen before the first call of this process.
void choose_recording(const OwnFile& file, const char* limit = "64M", bool is_ring = false) {
  setenv("UNDERSTUDY_TRACE", file.path().c_str(), 1);
  setenv("UNDERSTUDY_TRACE_LIMIT", limit, 1);
  setenv("UNDERSTUDY_TRACE_RING", is_ring ? "on" : "off", 1);
}

// Of this process and its children.
class SharedCounter {
 public:
  SharedCounter()
      : count_(new (mmap(nullptr, sizeof *count_, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<size_t>(0)) {}
  ~SharedCounter() { munmap(count_, sizeof *count_); }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;

  std::atomic<size_t>& operator*() const { return *count_; }

 private:
  std::atomic<size_t>* count_;
};

void allocate_and_free() {
  void* memory = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_SUCCESS(aclrtFree(memory));
}

// One call, of any thread at any time.
void ask() {
  uint32_t count = 0;
  EXPECT_SUCCESS(aclrtGetDeviceCount(&count));
}
constexpr const char* kAsked = "aclrtGetDeviceCount";

// ---- The end of a process ----

// At any moment: each call that has returned is there, and what is there is whole.
TEST(RecordedProcess, ThatIsKilledLeavesWholeRecords) {
  US_FRESH_PROCESS();
  std::mt19937 random(20260101);
  for (int round = 0; round < 8; ++round) {
    const OwnFile file("rec");
    choose_recording(file, round % 2 == 0 ? "64M" : "1M", round % 2 == 1);
    const SharedCounter frees;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      EXPECT_SUCCESS(aclrtSetDevice(0));
      std::vector<std::thread> threads;
      for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
          EXPECT_SUCCESS(aclrtSetDevice(0));
          while (true) {
            allocate_and_free();
            (*frees).fetch_add(1);
          }
        });
      }
      pause();
    }
    const size_t wanted = random() % 2000;
    while (*frees < wanted && waitpid(child, nullptr, WNOHANG) == 0) usleep(100);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const RecordedFile recorded(file.path());
    EXPECT_TRUE(recorded.is_whole()) << round;
    EXPECT_TRUE(recorded.knows_all_functions()) << round;
    EXPECT_EQ(recorded.lost(), 0U) << round;
    if (round % 2 == 0) {
      EXPECT_GE(recorded.calls("aclrtFree"), *frees) << round;
      EXPECT_LE(recorded.calls("aclrtFree"), *frees + 2) << round;
      EXPECT_GE(recorded.calls("aclrtMalloc"), recorded.calls("aclrtFree")) << round;
    } else {
      EXPECT_GT(recorded.calls("aclrtFree"), 0U) << round;
    }
  }
}

TEST(RecordedProcess, IsRecordedBeforeInitAndBehindFinalize) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file);
  ask();
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclrtSetDevice(0));
  allocate_and_free();
  EXPECT_SUCCESS(aclrtResetDevice(0));
  EXPECT_SUCCESS(aclFinalize());
  ask();
  const RecordedFile recorded(file.path());
  EXPECT_EQ(recorded.calls(kAsked), 2U);
  for (const char* const function : {"aclInit", "aclrtSetDevice", "aclrtMalloc", "aclrtFree",
                                     "aclrtResetDevice", "aclFinalize"}) {
    EXPECT_EQ(recorded.calls(function), 1U) << function;
  }
}

struct AsksAtItsEnd {
  ~AsksAtItsEnd() {
    if (is_wanted) ask();
  }
  bool is_wanted = false;
};
AsksAtItsEnd at_exit_of_process;

TEST(RecordedProcess, IsRecordedUntilItsLastDestructor) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    at_exit_of_process.is_wanted = true;
    atexit([] { ask(); });
    std::thread([] {
      static thread_local AsksAtItsEnd at_exit_of_thread;
      at_exit_of_thread.is_wanted = true;
      ask();
    }).join();
    exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(RecordedFile(file.path()).calls(kAsked), 4U);
}

TEST(RecordedProcess, ThatBecomesAnotherProgramLeavesWhatItCalled) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file);
  const pid_t child = fork();
  if (child == 0) {
    ask();
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const RecordedFile recorded(file.path());
  EXPECT_EQ(recorded.calls(kAsked, static_cast<uint32_t>(child)), 1U);
  EXPECT_EQ(recorded.open_calls(), 0U);
}

// ---- Threads, signals ----

TEST(RecordedProcess, IsForkedWhileItsThreadsCall) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file);
  ask();
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!is_done) {
        ask();
        std::thread(ask).join();
      }
    });
  }
  constexpr size_t kForks = 20;
  for (size_t i = 0; i < kForks; ++i) {
    in_child([] {
      EXPECT_SUCCESS(aclrtSetDevice(0));
      allocate_and_free();
    });
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  const RecordedFile recorded(file.path());
  EXPECT_EQ(recorded.calls("aclrtFree"), kForks);
  EXPECT_EQ(recorded.processes().size(), kForks + 1);
  EXPECT_TRUE(recorded.knows_all_functions());
  EXPECT_EQ(recorded.lost(), 0U);
}

TEST(RecordedProcess, MayEndItsThreadsInTheMiddleOfCalls) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file);
  constexpr int kThreads = 50;
  std::atomic<int> calls{0};
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void* counter) -> void* {
                    while (true) {
                      ask();
                      static_cast<std::atomic<int>*>(counter)->fetch_add(1);
                      pthread_testcancel();
                    }
                  },
                  &calls),
              0);
    while (calls < 10 * i + 1) usleep(10);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
  }
  const RecordedFile recorded(file.path());
  EXPECT_EQ(recorded.calls(kAsked), static_cast<size_t>(calls.load()));
  EXPECT_EQ(recorded.open_calls(), 0U);
  EXPECT_LT(recorded.size(), 64U << 16);
}

TEST(RecordedProcess, MayCallInSignalHandlers) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file, "1G");
  static std::atomic<size_t> handled{0};
  ask();
  struct sigaction action = {};
  // This one takes no lock outside of what records it.
  action.sa_handler = [](int) {
    (void)aclGetRecentErrMsg();
    handled.fetch_add(1);
  };
  ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  const itimerval often = {{0, 500}, {0, 500}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  size_t asked = 1;
  for (; handled < 50; ++asked) ask();
  const itimerval never = {};
  ASSERT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  const RecordedFile recorded(file.path());
  EXPECT_EQ(recorded.calls(kAsked), asked);
  EXPECT_EQ(recorded.calls("aclGetRecentErrMsg") + recorded.lost(), handled.load());
  EXPECT_EQ(recorded.open_calls(), 0U);
}

TEST(RecordedProcess, MayCallInCallbacksOfTasks) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file);
  EXPECT_SUCCESS(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  constexpr size_t kTasks = 100;
  for (size_t i = 0; i < kTasks; ++i) {
    EXPECT_SUCCESS(aclrtLaunchHostFunc(
        stream, [](void*) { ask(); }, nullptr));
  }
  EXPECT_SUCCESS(aclrtSynchronizeStream(stream));
  EXPECT_SUCCESS(aclrtDestroyStream(stream));
  const RecordedFile recorded(file.path());
  EXPECT_EQ(recorded.calls(kAsked), kTasks);
  EXPECT_EQ(recorded.run_tasks(), kTasks);
  EXPECT_EQ(recorded.lost(), 0U);
}

// ---- Memory ----

uint64_t used_memory() {
  size_t free = 0;
  size_t total = 0;
  EXPECT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  return total - free;
}

// What objects have taken is what the device is charged for, to the byte.
TEST(RecordedProcess, HasTheMemoryThatItsDeviceIsChargedFor) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file);
  EXPECT_SUCCESS(aclrtSetDevice(0));
  void* memory = nullptr;
  for (const size_t size : {size_t{1}, size_t{5000}, size_t{100'000}, 3 * kMiB}) {
    EXPECT_SUCCESS(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_SUCCESS(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_NORMAL_ONLY));
  }
  EXPECT_EQ(RecordedFile(file.path()).taken(), used_memory());
  // Managed memory is where it is used.
  EXPECT_SUCCESS(aclrtMemAllocManaged(&memory, 4 * kMiB, ACL_RT_MEM_ATTACH_GLOBAL));
  EXPECT_SUCCESS(aclrtMemset(memory, 4 * kMiB, 1, 4 * kMiB));
  EXPECT_EQ(RecordedFile(file.path()).taken(), used_memory());
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  aclrtMemPoolProps properties = {};
  properties.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  aclrtMemPool pool = nullptr;
  EXPECT_SUCCESS(aclrtMemPoolCreate(&pool, &properties));
  for (const size_t size : {size_t{1000}, 3 * kMiB}) {
    EXPECT_SUCCESS(aclrtMemPoolMallocAsync(&memory, size, pool, stream));
  }
  EXPECT_SUCCESS(aclrtSynchronizeStream(stream));
  EXPECT_EQ(RecordedFile(file.path()).taken(), used_memory());
}

// ---- What it is given ----

// What a pointer of a call that fails leads to is looked at with care.
TEST(RecordedProcess, GivesThePointersThatItLikes) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file);
  EXPECT_SUCCESS(aclrtSetDevice(0));
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* const pages = static_cast<char*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(munmap(pages + page, page), 0);
  char* const end = pages + page;  // of what can be read
  end[-1] = 'x';
  aclrtDrvMemHandle block = nullptr;
  // Sizes are looked at first.
  for (void* const bad : {static_cast<void*>(nullptr), static_cast<void*>(end),
                          static_cast<void*>(end - 4), reinterpret_cast<void*>(1)}) {
    EXPECT_NE(aclrtMallocPhysical(&block, 0, static_cast<aclrtPhysicalMemProp*>(bad), 0),
              ACL_SUCCESS);
    EXPECT_NE(aclrtMalloc(static_cast<void**>(bad), 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  }
  EXPECT_NE(aclrtMalloc(nullptr, 4096, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_NE(aclrtDeviceGetBareTgid(nullptr), ACL_SUCCESS);
  const RecordedFile recorded(file.path());
  EXPECT_EQ(recorded.calls("aclrtMallocPhysical"), 4U);
  EXPECT_EQ(recorded.calls("aclrtMalloc"), 5U);
  EXPECT_TRUE(recorded.knows_all_functions());
  munmap(pages, page);
}

TEST(RecordedProcess, KeepsErrnoAcrossItsCalls) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file);
  EXPECT_SUCCESS(aclrtSetDevice(0));
  allocate_and_free();
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  errno = 4711;
  for (int i = 0; i < 50'000; ++i) ask();
  EXPECT_EQ(errno, 4711);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_GT(RecordedFile(file.path()).lost(), 0U);
}

// The same calls have the same results, whatever hinders the recording.
TEST(RecordedProcess, GoesOnWhenItsFileCannot) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  choose_recording(file, "64M");
  EXPECT_SUCCESS(aclrtSetDevice(0));
  allocate_and_free();
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  // Nothing ignores SIGXFSZ here.
  const rlimit low = {size_t{1} << 16, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  for (int i = 0; i < 20'000; ++i) ask();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_EQ(unlink(file.path().c_str()), 0);
  for (int i = 0; i < 20'000; ++i) ask();
  in_child(ask);
}

}  // namespace
}  // namespace understudy_test
