// SPDX-License-Identifier: Apache-2.0
//
// Processes that try to import what is not meant for them: unlisted ones, ones with a listed number
// that is not theirs, guessed and stale handles, children of listed processes, other users.
// Covers: SHARE-06, SHARE-22, SHARE-23, SHARE-28, SHARE-30, SHARE-32.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <future>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "rules/share_objects.h"
#include "support/fork_safety.h"
#include "support/server_directory.h"

namespace understudy_test::share {
namespace {

// A block with known bytes that only listed processes may import. However the attack ends, the
// bytes are there, and a listed process gets them.
class ShareAttack : public VirtualMemoryTest {
 protected:
  void SetUp() override {
    VirtualMemoryTest::SetUp();
    offer_ = offer_block(kGranule, kListed, 23);
  }
  void TearDown() override {
    EXPECT_TRUE(is_marked(offer_.view.start, kGranule, 23));
    {
      Remote listed;
      list(offer_.token, {listed.id()});
      RemoteView view(listed, offer_.token);
      EXPECT_TRUE(view.shows(23));
    }
    close_view(offer_.view);
    VirtualMemoryTest::TearDown();
  }
  uint64_t token() const { return offer_.token; }

 private:
  Offer offer_{};
};

TEST_F(ShareAttack, SHARE_30_UnlistedProcessesAreRefusedHoweverOftenTheyTry) {
  Remote listed;
  Remote unlisted;
  list(token(), {listed.id()});
  const RemoteView held(listed, token());
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(unlisted.import(token(), kVersions[i % 2]), ACL_ERROR_RT_NO_PERMISSION);
  }
}

// ---- Numbers of processes ----

// False where nobody may choose (root of the pid namespace alone may).
bool let_next_process_have(pid_t pid) {
  std::ofstream last("/proc/sys/kernel/ns_last_pid");
  last << pid - 1 << std::flush;
  return last.good();
}

bool is_free(pid_t pid) {
  struct stat unused;  // also sees threads, which kill() does not
  return stat(("/proc/" + std::to_string(pid)).c_str(), &unused) != 0;
}

// A number that no process has now, and that the next ones will not get by themselves soon.
pid_t find_free_pid() {
  pid_t last = 0;
  pid_t limit = 32768;
  std::ifstream("/proc/sys/kernel/ns_last_pid") >> last;
  std::ifstream("/proc/sys/kernel/pid_max") >> limit;
  std::mt19937 random(std::random_device{}());
  while (true) {
    const pid_t pid = 1000 + static_cast<pid_t>(random() % static_cast<unsigned>(limit - 2000));
    if (std::abs(pid - last) > 500 && is_free(pid)) return pid;
  }
}

// Starts a process with this number in `process`, if no other program is quicker.
bool start_with_pid(pid_t pid, std::optional<Remote>& process) {
  if (!let_next_process_have(pid)) return false;
  process.emplace(kNoDevice);
  if (process->pid() == pid) return true;
  process.reset();
  return false;
}

constexpr int kTries = 20;
#define US_SKIP_UNLESS_PIDS_CAN_BE_CHOSEN() \
  if (!let_next_process_have(find_free_pid())) GTEST_SKIP() << "only root can choose process ids"

TEST_F(ShareAttack, SHARE_23_ANumberListedBeforeItsProcessStartsAdmitsNobody) {
  US_SKIP_UNLESS_PIDS_CAN_BE_CHOSEN();
  std::optional<Remote> late;
  for (int i = 0; i < kTries && !late; ++i) {
    const pid_t pid = find_free_pid();
    list(token(), {pid});
    (void)start_with_pid(pid, late);
  }
  if (!late) GTEST_SKIP() << "other programs took every process id";
  late->call(bind, 0);
  EXPECT_EQ(late->import(token()), ACL_ERROR_RT_NO_PERMISSION);
  list(token(), {late->id()});
  EXPECT_EQ(late->import(token()), ACL_SUCCESS) << "now it exists";
}

TEST_F(ShareAttack, SHARE_23_AReusedNumberAdmitsNobody) {
  US_SKIP_UNLESS_PIDS_CAN_BE_CHOSEN();
  std::optional<Remote> second;
  for (int i = 0; i < kTries && !second; ++i) {
    pid_t pid = -1;
    {
      Remote first;
      pid = first.pid();
      list(token(), {first.id()});
      ASSERT_EQ(first.import(token()), ACL_SUCCESS);
      if (i % 2 == 0) first.kill();
    }
    (void)start_with_pid(pid, second);
  }
  if (!second) GTEST_SKIP() << "other programs took every process id";
  second->call(bind, 0);
  for (const Version version : kVersions) {
    EXPECT_EQ(second->import(token(), version), ACL_ERROR_RT_NO_PERMISSION);
  }
  list(token(), {second->id()});
  EXPECT_EQ(second->import(token()), ACL_SUCCESS) << "now it is meant";
}

// A thread of the importer that lives while others use its number.
struct ThreadWithNumber {
  std::promise<pid_t> number;
  std::promise<void> end;
  std::promise<uint64_t> token;
  std::promise<aclError> code;
  std::thread thread;
};
ThreadWithNumber& only_thread() {
  static auto& thread = *new ThreadWithNumber();
  return thread;
}
pid_t start_thread() {
  ThreadWithNumber& self = only_thread();
  self.thread = std::thread([&self] {
    self.number.set_value(static_cast<pid_t>(syscall(SYS_gettid)));
    bind(0);
    self.code.set_value(try_import(Version::kV1, self.token.get_future().get(), 0));
    self.end.get_future().wait();
  });
  return self.number.get_future().get();
}
aclError import_in_thread(uint64_t token) {
  only_thread().token.set_value(token);
  return only_thread().code.get_future().get();
}
void end_thread() {
  only_thread().end.set_value();
  only_thread().thread.join();
}

TEST_F(ShareAttack, SHARE_22_SHARE_30_TheNumberOfAThreadIsNoProcess) {
  Remote importer;
  const pid_t number = importer.call(start_thread);
  ASSERT_NE(number, importer.pid());
  list(token(), {number});
  EXPECT_EQ(importer.call(import_in_thread, token()), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(importer.import(token()), ACL_ERROR_RT_NO_PERMISSION);
  importer.call(end_thread);
}

// ---- Children of processes ----

// The code that a forked child of this process gets.
aclError import_in_child(uint64_t token) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    aclrtDrvMemHandle handle = nullptr;
    aclError code = aclrtSetDevice(0);
    if (code == ACL_SUCCESS) code = aclrtMemImportFromShareableHandle(token, 0, &handle);
    _exit(write(ends[1], &code, sizeof code) == sizeof code ? 0 : 1);
  }
  close(ends[1]);
  aclError code = -1;
  EXPECT_EQ(read(ends[0], &code, sizeof code), static_cast<ssize_t>(sizeof code));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return code;
}

TEST_F(ShareAttack, SHARE_30_AChildOfAListedProcessIsNotListed) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  Remote listed;
  list(token(), {listed.id()});
  EXPECT_EQ(listed.import(token()), ACL_SUCCESS);
  EXPECT_EQ(listed.call(import_in_child, token()), ACL_ERROR_RT_NO_PERMISSION);
  const RemoteView held(listed, token());
  EXPECT_EQ(listed.call(import_in_child, token()), ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(ShareAttack, SHARE_30_SHARE_32_AChildOfTheExporterIsAnotherProcess) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  list(token(), {own_id()});
  EXPECT_EQ(import_in_child(token()), ACL_ERROR_RT_NO_PERMISSION);
  const Block open_block;
  EXPECT_EQ(import_in_child(token_of(open_block.handle(), kEveryone)), ACL_SUCCESS);
}

// ---- Handles ----

// How many of a list of guesses got another answer than that there is no such handle.
size_t try_guesses(uint64_t good, uint32_t count) {
  std::mt19937_64 random(good);
  size_t other_answers = 0;
  const auto guess = [&](uint64_t value) {
    aclrtDrvMemHandle handle = untouched();
    if (value == good) return;
    const aclError code = aclrtMemImportFromShareableHandle(value, 0, &handle);
    if (code != ACL_ERROR_RT_INVALID_HANDLE || handle != untouched()) ++other_answers;
  };
  for (int bit = 0; bit < 64; ++bit) guess(good ^ (uint64_t{1} << bit));
  for (int bit = 0; bit < 63; ++bit) guess(good ^ (uint64_t{3} << bit));
  for (uint32_t i = 0; i < count; ++i) {
    guess(random());
    guess(good ^ (random() & 0xFFFFFFFF));
    guess(good ^ (random() << 32));
    guess(good + i + 1);
  }
  return other_answers;
}

TEST_F(ShareAttack, SHARE_28_GuessedHandlesAreUnknown) {
  Remote guesser;
  Remote listed;
  list(token(), {listed.id()});
  const Block open_block;
  EXPECT_EQ(guesser.call(try_guesses, token(), 300u), 0u) << "a refusal tells that a guess is good";
  EXPECT_EQ(listed.call(try_guesses, token(), 300u), 0u);
  EXPECT_EQ(guesser.call(try_guesses, token_of(open_block.handle(), kEveryone), 300u), 0u);
}

TEST_F(ShareAttack, SHARE_06_SHARE_28_OldHandlesDoNotLeadToNewBlocks) {
  Remote importer;
  list(token(), {importer.id()});
  std::set<uint64_t> old = {token()};
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const uint64_t flags = kAccessRules[round % 2];
    Block first;
    const uint64_t stale = token_of(first.handle(), flags);
    ASSERT_TRUE(old.insert(stale).second) << "a value was issued twice";
    if (flags == kListed) list(stale, {importer.id()});
    first.free();
    // Most likely in the same place as the first.
    const Block second;
    const uint64_t fresh = token_of(second.handle(), flags);
    ASSERT_TRUE(old.insert(fresh).second) << "a value was issued twice";
    ASSERT_EQ(importer.import(stale), ACL_ERROR_RT_INVALID_HANDLE);
    // Nor does the old list hold for the new block.
    ASSERT_EQ(importer.import(fresh), flags == kListed ? ACL_ERROR_RT_NO_PERMISSION : ACL_SUCCESS);
  }
}

TEST_F(ShareAttack, SHARE_28_HandlesOfAnEndedProcessDoNotLeadToItsSuccessor) {
  Remote importer;
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    uint64_t stale = 0;
    {
      Remote exporter;
      stale = exporter.call(offer_block, kGranule, kEveryone, uint8_t{1}).token;
      exporter.kill();
    }
    Remote successor;
    const Offer offer = successor.call(offer_block, kGranule, kEveryone, uint8_t{2});
    EXPECT_NE(offer.token, stale);
    EXPECT_EQ(importer.import(stale), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_EQ(importer.import(offer.token), ACL_SUCCESS);
    successor.call(close_view, offer.view);
  }
}

// ---- Other users ----

constexpr uid_t kNobody = 65534;

// As if it had been started by that user: a change of user closes /proc/self until told otherwise.
bool become_nobody() {
  return setgid(kNobody) == 0 && setuid(kNobody) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
}
aclError import_after_binding(uint64_t token) {
  (void)aclrtSetDevice(0);
  aclrtDrvMemHandle handle = untouched();
  const aclError code = aclrtMemImportFromShareableHandle(token, 0, &handle);
  EXPECT_EQ(handle, untouched());
  return code;
}

TEST_F(ShareAttack, SHARE_30_AnotherUserCannotUseTheExportersServer) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Block open_block;
  Remote stranger(kNoDevice);
  list(token(), {static_cast<int32_t>(stranger.pid())});
  ASSERT_TRUE(stranger.call(become_nobody));
  EXPECT_NE(stranger.call(import_after_binding, token()), ACL_SUCCESS);
  EXPECT_NE(stranger.call(import_after_binding, token_of(open_block.handle(), kEveryone)),
            ACL_SUCCESS);
}

TEST_F(ShareAttack, SHARE_28_AnotherServerDoesNotKnowTheHandle) {
  const ServerDirectory elsewhere;
  const Block open_block;
  Remote stranger(kNoDevice, {{kServerVariable, elsewhere.path()}});
  list(token(), {static_cast<int32_t>(stranger.pid())});
  if (geteuid() == 0) {  // as another user it has its own server anyway
    ASSERT_EQ(chown(elsewhere.path().c_str(), kNobody, kNobody), 0);
    ASSERT_TRUE(stranger.call(become_nobody));
  }
  EXPECT_EQ(stranger.call(import_after_binding, token()), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(stranger.call(import_after_binding, token_of(open_block.handle(), kEveryone)),
            ACL_ERROR_RT_INVALID_HANDLE);
}

}  // namespace
}  // namespace understudy_test::share
