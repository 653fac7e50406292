// SPDX-License-Identifier: Apache-2.0
//
// Recordings that a program begins and ends itself: what is in them, what is refused, and what
// becomes of them when files, processes and threads end at any moment.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "acl/acl_understudy.h"
#include "process/log_objects.h"
#include "process/recorded_file.h"
#include "rules/stream_objects.h"
#include "support/fork_safety.h"
#include "support/peer.h"

namespace understudy_test {
namespace {

using logged::in_child;
using logged::OwnFile;

aclError start(const OwnFile& file, uint32_t flags = 0, uint64_t limit = 0) {
  aclUnderstudyRecordingOptions options = {};
  options.flags = flags;
  options.limit = limit;
  return aclUnderstudyStartRecording(file.path().c_str(), &options);
}

// The call before failed, and its text has a part.
void expect_refused(aclError code, const std::string& part,
                    aclError expected = ACL_ERROR_INVALID_PARAM) {
  EXPECT_EQ(code, expected);
  const std::string text = recent_error();
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

void allocate_and_free() {
  void* block = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&block, 64 * kKiB, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_SUCCESS(aclrtFree(block));
}

bool is_mapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) return true;
  }
  return false;
}

// ---- What is in it ----

TEST(Recording, HasWhatTheProcessDoesBetweenStartAndStop) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  ASSERT_SUCCESS(aclrtSetDevice(0));
  allocate_and_free();
  ASSERT_SUCCESS(start(file));
  allocate_and_free();
  {
    const TestStream stream;
    void* block = nullptr;
    ASSERT_SUCCESS(aclrtMalloc(&block, kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_SUCCESS(aclrtMemsetAsync(block, kMiB, 1, kMiB, stream.get()));
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
    EXPECT_SUCCESS(aclrtFree(block));
  }
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  allocate_and_free();

  const RecordedFile recorded(file.path());
  EXPECT_TRUE(recorded.is_whole());
  EXPECT_TRUE(recorded.knows_all_functions());
  EXPECT_EQ(recorded.calls("aclrtMalloc"), 2U);
  EXPECT_EQ(recorded.calls("aclrtFree"), 2U);
  EXPECT_EQ(recorded.calls("aclrtSetDevice"), 0U);
  EXPECT_EQ(recorded.run_tasks(), 1U);
  EXPECT_EQ(recorded.begun_objects(), 3U);
  EXPECT_EQ(recorded.open_calls(), 0U);
  EXPECT_EQ(recorded.lost(), 0U);
  EXPECT_FALSE(is_mapped(file.path()));
}

TEST(Recording, BeginsBeforeTheFirstCallThatNeedsADevice) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  ASSERT_SUCCESS(start(file));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  EXPECT_EQ(RecordedFile(file.path()).calls("aclrtSetDevice"), 1U);
}

TEST(Recording, OneAfterAnotherHasWhatIsItsOwn) {
  US_FRESH_PROCESS();
  const OwnFile first("first");
  const OwnFile second("second");
  ASSERT_SUCCESS(aclrtSetDevice(0));
  ASSERT_SUCCESS(start(first));
  allocate_and_free();
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  ASSERT_SUCCESS(start(second));
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  EXPECT_EQ(RecordedFile(first.path()).calls("aclrtMalloc"), 1U);
  EXPECT_EQ(RecordedFile(first.path()).calls("aclrtSynchronizeDevice"), 0U);
  EXPECT_EQ(RecordedFile(second.path()).calls("aclrtSynchronizeDevice"), 1U);
  EXPECT_TRUE(RecordedFile(second.path()).knows_all_functions());

  ASSERT_SUCCESS(start(first));
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  EXPECT_EQ(RecordedFile(first.path()).calls("aclrtMalloc"), 0U) << "it was not replaced";
}

TEST(Recording, HasThePlacesThatAnInterpreterNames) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(aclUnderstudyWantsPlaces(), 0);
  ASSERT_SUCCESS(start(file));
  EXPECT_EQ(aclUnderstudyWantsPlaces(), 0);
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  ASSERT_SUCCESS(start(file, ACL_UNDERSTUDY_RECORD_STACKS));
  EXPECT_EQ(aclUnderstudyWantsPlaces(), 2);
  aclUnderstudySetPlace("kv.py:41 fill");
  allocate_and_free();
  aclUnderstudySetPlace(nullptr);
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  EXPECT_EQ(aclUnderstudyWantsPlaces(), 0);
  const std::vector<std::string> stacks = RecordedFile(file.path()).stacks();
  EXPECT_EQ(std::count(stacks.begin(), stacks.end(), "kv.py:41 fill"), 1);
}

TEST(Recording, TellsOfACallThatHasNotEnded) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  const OwnFile next("next");
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const TestStream stream;
  Gate gate(stream.get());
  ASSERT_SUCCESS(start(file));
  std::atomic<bool> waits{false};
  std::thread waiter([&] {
    EXPECT_SUCCESS(aclrtSetDevice(0));
    waits = true;
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
  });
  while (!waits || RecordedFile(file.path()).open_calls("aclrtSynchronizeStream") == 0) {
    std::this_thread::yield();
  }
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  EXPECT_EQ(RecordedFile(file.path()).open_calls("aclrtSynchronizeStream"), 1U);
  EXPECT_EQ(RecordedFile(file.path()).open_calls(), 1U);
  EXPECT_FALSE(is_mapped(file.path()));
  // What began before a recording is not in it.
  ASSERT_SUCCESS(start(next));
  gate.open();
  waiter.join();
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  EXPECT_EQ(RecordedFile(next.path()).calls("aclrtSynchronizeStream"), 0U);
  EXPECT_EQ(RecordedFile(next.path()).run_tasks(), 0U);
}

// ---- What is refused ----

TEST(Recording, WrongArgumentsAreRefused) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  aclUnderstudyRecordingOptions options = {};
  const char* const path = file.path().c_str();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclUnderstudyStartRecording(nullptr, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclUnderstudyStartRecording("", nullptr));
  for (const uint64_t limit : {uint64_t{1}, uint64_t{kMiB - 1}, uint64_t{kTiB + 1}, UINT64_MAX}) {
    expect_refused(start(file, 0, limit), "limit ");
  }
  expect_refused(start(file, 4), "flags 0x4 ");
  options.reserved[5] = 1;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclUnderstudyStartRecording(path, &options));
  EXPECT_FALSE(std::ifstream(path).good()) << "it was made";
}

TEST(Recording, APathWhereNoneCanBeIsRefused) {
  US_FRESH_PROCESS();
  for (const char* const path : {"/proc/recording", "/nowhere/recording", "/dev/full", "/tmp"}) {
    expect_refused(aclUnderstudyStartRecording(path, nullptr), path);
  }
  EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclUnderstudyStopRecording());
}

TEST(Recording, AFileThatIsSomethingElseIsLeftAsItIs) {
  US_FRESH_PROCESS();
  const OwnFile file("text");
  for (const size_t length : {size_t{1}, 100 * kKiB}) {
    const std::string text(length, 'x');
    std::ofstream(file.path()) << text;
    expect_refused(start(file), file.path());
    EXPECT_EQ(file.content(), text);
  }
}

TEST(Recording, IsOneAtATime) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  const OwnFile other("other");
  EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclUnderstudyStopRecording());
  ASSERT_SUCCESS(start(file));
  expect_refused(start(other), file.path(), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(other.content(), "");
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclUnderstudyStopRecording());
}

TEST(Recording, OfTheKeyTraceLastsAsLongAsTheProcess) {
  US_FRESH_PROCESS();
  const OwnFile file("trace");
  const OwnFile other("other");
  setenv("UNDERSTUDY_TRACE", file.path().c_str(), 1);
  expect_refused(start(other), file.path(), ACL_ERROR_REPEAT_INITIALIZE);
  expect_refused(aclUnderstudyStopRecording(), "key trace", ACL_ERROR_REPEAT_FINALIZE);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  allocate_and_free();
  EXPECT_EQ(RecordedFile(file.path()).calls("aclrtMalloc"), 1U);
  EXPECT_EQ(other.content(), "");
}

// ---- When there is no room ----

// More calls than a recording of 1 MiB has room for.
constexpr int kManyCalls = 60'000;

TEST(Recording, AtItsLimitCountsWhatIsLost) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  ASSERT_SUCCESS(start(file, 0, kMiB));
  for (int i = 0; i < kManyCalls; ++i) (void)aclrtFree(nullptr);
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  const RecordedFile recorded(file.path());
  EXPECT_LE(recorded.size(), kMiB);
  EXPECT_GT(recorded.lost(), 0U);
  EXPECT_EQ(recorded.calls("aclrtFree") + recorded.lost(), size_t{kManyCalls});
}

TEST(Recording, AsARingHasTheLatestCalls) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  ASSERT_SUCCESS(start(file, ACL_UNDERSTUDY_RECORD_RING, kMiB));
  for (int i = 0; i < kManyCalls; ++i) (void)aclrtFree(nullptr);
  EXPECT_SUCCESS(aclrtSetDevice(0));
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  const RecordedFile recorded(file.path());
  EXPECT_LE(recorded.size(), kMiB);
  EXPECT_EQ(recorded.lost(), 0U);
  EXPECT_GT(recorded.recycled(), 0U);
  EXPECT_EQ(recorded.calls("aclrtSetDevice"), 1U);
}

void record_on_a_full_disk(const OwnFile& file, uint32_t flags) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{300 * kKiB, 300 * kKiB};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ASSERT_SUCCESS(start(file, flags));
  for (int i = 0; i < kManyCalls; ++i) (void)aclrtFree(nullptr);
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  const RecordedFile recorded(file.path());
  EXPECT_LE(recorded.size(), 300 * kKiB);
  EXPECT_GT(recorded.calls("aclrtFree"), 0U);
  EXPECT_GT(recorded.lost() + recorded.recycled(), 0U);
}

TEST(Recording, OnAFullDiskCountsWhatIsLost) {
  US_FRESH_PROCESS();
  record_on_a_full_disk(OwnFile("rec"), 0);
}

TEST(Recording, AsARingOnAFullDiskGoesOn) {
  US_FRESH_PROCESS();
  record_on_a_full_disk(OwnFile("rec"), ACL_UNDERSTUDY_RECORD_RING);
}

TEST(Recording, OnADiskWithoutAnyRoomDoesNotBegin) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{kKiB, kKiB};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(start(file), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
  EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
}

// ---- Processes ----

TEST(Recording, IsContinuedByForkChildrenUntilTheyStopIt) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  ASSERT_SUCCESS(start(file));
  (void)aclrtFree(nullptr);
  in_child([] {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    allocate_and_free();
    ASSERT_SUCCESS(aclUnderstudyStopRecording());
    allocate_and_free();
    EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclUnderstudyStopRecording());
  });
  (void)aclrtFree(nullptr);
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  const RecordedFile recorded(file.path());
  EXPECT_EQ(recorded.processes().size(), 2U);
  EXPECT_EQ(recorded.calls("aclrtMalloc"), 1U);
  EXPECT_EQ(recorded.calls("aclrtFree", static_cast<uint32_t>(getpid())), 2U);
}

TEST(Recording, OfTheKeyTraceHasTheFirstCallOfAForkChildThatHasTheKeyAlone) {
  US_FRESH_PROCESS();
  const OwnFile file("trace");
  (void)aclrtFree(nullptr);
  in_child([&] {
    setenv("UNDERSTUDY_TRACE", file.path().c_str(), 1);
    (void)aclrtFree(nullptr);
    ASSERT_SUCCESS(aclrtSetDevice(0));
  });
  (void)aclrtFree(nullptr);
  EXPECT_EQ(RecordedFile(file.path()).calls("aclrtFree"), 1U);
  EXPECT_EQ(RecordedFile(file.path()).calls("aclrtSetDevice"), 1U);
}

TEST(Recording, EndsInAForkChildThatMakesItsFirstCallByStoppingIt) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  const OwnFile own("own");
  ASSERT_SUCCESS(start(file));
  in_child([&] {
    ASSERT_SUCCESS(aclUnderstudyStopRecording());
    ASSERT_SUCCESS(start(own));
    (void)aclrtFree(nullptr);
    ASSERT_SUCCESS(aclUnderstudyStopRecording());
  });
  EXPECT_EQ(RecordedFile(file.path()).calls("aclrtFree"), 0U);
  EXPECT_EQ(RecordedFile(own.path()).calls("aclrtFree"), 1U);
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
}

TEST(Recording, ThatWasStoppedIsNotContinuedByLaterForkChildren) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  ASSERT_SUCCESS(start(file));
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
  in_child([] { (void)aclrtFree(nullptr); });
  EXPECT_EQ(RecordedFile(file.path()).calls(), 0U);
}

// A child that comes late does not make the file anew, and writes into no other one.
TEST(Recording, WhoseFileIsGoneEndsInForkChildren) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  ASSERT_SUCCESS(start(file));
  in_child([&] {
    unlink(file.path().c_str());
    EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
    EXPECT_FALSE(std::ifstream(file.path()).good());
    std::ofstream(file.path()) << "something else";
    EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(file.content(), "something else");
  });
  ASSERT_SUCCESS(aclUnderstudyStopRecording());
}

US_PEER(RecordsUntilItIsKilled) {
  std::string path(channel.receive<size_t>(), '\0');
  ASSERT_TRUE(channel.receive_bytes(path.data(), path.size()));
  ASSERT_SUCCESS(aclUnderstudyStartRecording(path.c_str(), nullptr));
  std::atomic<bool> has_begun{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (true) {
        (void)aclrtFree(nullptr);
        has_begun = true;
      }
    });
  }
  while (!has_begun) std::this_thread::yield();
  channel.send(true);
  for (std::thread& thread : threads) thread.join();
}

TEST(Recording, OfAKilledProcessCanBeRead) {
  const OwnFile file("rec");
  Peer peer(RecordsUntilItIsKilled);
  peer.send(file.path().size());
  peer.channel().send_bytes(file.path().data(), file.path().size());
  ASSERT_TRUE(peer.receive<bool>());
  peer.kill();
  const RecordedFile recorded(file.path());
  EXPECT_TRUE(recorded.is_whole());
  EXPECT_TRUE(recorded.knows_all_functions());
  EXPECT_GT(recorded.calls("aclrtFree"), 0U);
}

// ---- Threads ----

// Makes calls until it is stopped, in one of several ways.
void call_until(const std::atomic<bool>& stops, int way) {
  while (!stops) {
    if (way == 0 && why_no_fork_of_threads() == nullptr) {
      in_child([] { EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM); });
    } else if (way % 10 == 1) {  // on threads that end
      std::thread([] { (void)aclrtFree(nullptr); }).join();
    } else {
      (void)aclrtFree(nullptr);
    }
    std::this_thread::yield();
  }
}

TEST(Recording, StopsAndStartsWhileThreadsCallAndEndAndFork) {
  US_FRESH_PROCESS();
  constexpr int kFiles = 5;
  std::vector<std::unique_ptr<OwnFile>> files;
  for (int i = 0; i < kFiles; ++i) {
    files.push_back(std::make_unique<OwnFile>("rec" + std::to_string(i)));
  }
  std::atomic<bool> stops{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 50; ++i) threads.emplace_back([&stops, i] { call_until(stops, i); });
  for (int i = 0; i < 4 * kFiles; ++i) {
    const uint32_t flags = i % 2 == 0 ? ACL_UNDERSTUDY_RECORD_RING : 0;
    EXPECT_EQ(start(*files[i % kFiles], flags, kMiB), ACL_SUCCESS);
    std::this_thread::yield();
    EXPECT_EQ(aclUnderstudyStopRecording(), ACL_SUCCESS);
  }
  stops = true;
  for (std::thread& thread : threads) thread.join();
  // What a thread still used when it was stopped goes with the next one.
  const OwnFile last("last");
  EXPECT_EQ(start(last), ACL_SUCCESS);
  EXPECT_EQ(aclUnderstudyStopRecording(), ACL_SUCCESS);
  for (const auto& file : files) {
    const RecordedFile recorded(file->path());
    EXPECT_TRUE(recorded.is_whole());
    EXPECT_TRUE(recorded.knows_all_functions() || recorded.lost() > 0);
    EXPECT_FALSE(is_mapped(file->path()));
  }
}

TEST(Recording, OfSeveralThatAreStartedAtOnceIsOne) {
  US_FRESH_PROCESS();
  const OwnFile file("rec");
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> started{0};
    std::atomic<int> stopped{0};
    const auto together = [](const auto& body) {
      std::vector<std::thread> threads;
      for (int i = 0; i < 8; ++i) threads.emplace_back(body);
      for (std::thread& thread : threads) thread.join();
    };
    together([&] { started += start(file) == ACL_SUCCESS ? 1 : 0; });
    (void)aclrtFree(nullptr);
    together([&] { stopped += aclUnderstudyStopRecording() == ACL_SUCCESS ? 1 : 0; });
    EXPECT_EQ(started, 1);
    EXPECT_EQ(stopped, 1);
    EXPECT_EQ(RecordedFile(file.path()).calls("aclrtFree"), 1U);
  }
}

}  // namespace
}  // namespace understudy_test
