// SPDX-License-Identifier: Apache-2.0
//
// Eight processes share memory in all ways, fork, start programs, open and close the ledger file
// and close their descriptors, and are stopped and killed at random instants, each killed one
// replaced by a new one. A process in their middle that nobody stops or kills never sees a wrong
// byte, in what is shared or in what is its own, nor a wrong code, nor waits longer than the
// contract's 5 s; and afterwards everything is given back.
//
// UNDERSTUDY_STORM_KILLS sets how many kills there are; 10000 is the full storm:
//   UNDERSTUDY_STORM_KILLS=10000 build/dev/bin/stress_tests --gtest_filter='ShareStorm.*'
// Covers: IPC-22, SHARE-38, SHARE-39, SHARE-40.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "stress/share_storm_process.h"
#include "support/sanitizers.h"
#include "support/server_directory.h"

namespace understudy_test::storm {
namespace {

using std::chrono::steady_clock;

const unsigned kUsualKills = kSanitized ? 100 : 300;
constexpr std::chrono::seconds kStandstill(30);
constexpr unsigned kStepsBetweenKills = 3;
constexpr std::chrono::milliseconds kLongestStop(20);
// The contract's 5 s, and what a busy machine may add.
constexpr std::chrono::seconds kLongestCall(8);

struct Appointment {
  std::array<char, 64> board;
  unsigned place;
  uint32_t start;
};

[[noreturn]] void work_until_killed(Board& board, unsigned place, uint32_t start) {
  Process process(board, place, start);
  while (true) process.take_random_step();
}

US_PEER(StormsUntilKilled) {
  const auto appointment = channel.receive<Appointment>();
  const SharedBoard board(appointment.board.data());
  work_until_killed(*board, appointment.place, appointment.start);
}

// Offers some of everything, and does nothing else until the storm is over.
US_PEER(OffersTheSameAllTheTime) {
  const auto appointment = channel.receive<Appointment>();
  const SharedBoard board(appointment.board.data());
  Process process(*board, appointment.place, appointment.start);
  process.offer_something(Kind::kBlock, true);
  process.offer_something(Kind::kBlock, false);
  process.offer_something(Kind::kSmallAllocation, false);
  process.offer_something(Kind::kLargeAllocation, true);
  channel.send(true);
  // A storm may take longer than a channel waits.
  for (bool is_over = false; !is_over;) channel.receive_bytes(&is_over, sizeof is_over);
  process.give_back_everything();
  channel.send(true);
  channel.wait_for_end();
}

// Memory that is never shared, of every kind. Every byte of it is looked at, again and again.
class OwnMemory {
 public:
  explicit OwnMemory(Board& board) : board_(board) {
    const aclrtDrvMemHandle block = create_block(2 * kMiB);
    void* const start = reserve(2 * kMiB);
    EXPECT_SUCCESS(aclrtMapMem(start, 2 * kMiB, 0, block, 0));
    EXPECT_SUCCESS(aclrtFreePhysical(block));  // lives as long as its mapping
    parts_ = {{start, pattern(2 * kMiB, 1)},
              {allocate(kMiB), pattern(kMiB, 2)},
              {allocate(4 * kKiB), pattern(4 * kKiB, 3)}};
    for (const Part& part : parts_) copy_in(part.start, part.bytes);
  }
  void look() {
    for (const Part& part : parts_) {
      if (copy_out(part.start, part.bytes.size()) == part.bytes) continue;
      board_.note_failure("memory of %zu bytes that was never shared has changed",
                          part.bytes.size());
    }
  }
  void give_back() {
    EXPECT_SUCCESS(aclrtUnmapMem(parts_[0].start));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(parts_[0].start));
    EXPECT_SUCCESS(aclrtFree(parts_[1].start));
    EXPECT_SUCCESS(aclrtFree(parts_[2].start));
  }

 private:
  struct Part {
    void* start = nullptr;
    std::vector<uint8_t> bytes;
  };
  static void* allocate(size_t size) {
    void* start = nullptr;
    EXPECT_SUCCESS(aclrtMalloc(&start, size, ACL_MEM_MALLOC_HUGE_FIRST));
    return start;
  }
  Board& board_;
  std::vector<Part> parts_;
};

US_PEER(IsHealthyInTheStorm) {
  const auto appointment = channel.receive<Appointment>();
  const SharedBoard board(appointment.board.data());
  Process process(*board, appointment.place, appointment.start);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  OwnMemory own(*board);
  channel.send(true);
  for (unsigned steps = 0; !board->ends.load(); ++steps) {
    process.take_random_step();
    if (steps % 4 == 0) own.look();
  }
  own.look();
  own.give_back();
  process.give_back_everything();
  channel.send(true);
  channel.wait_for_end();
}

// Whether all memory of all devices is free, as a new process sees it.
US_PEER(FindsAllMemoryFree) {
  for (int32_t device = 0; device < static_cast<int32_t>(kDevices); ++device) {
    ASSERT_SUCCESS(aclrtSetDevice(device));
    for (const aclrtMemAttr attribute : {ACL_HBM_MEM_HUGE, ACL_HBM_MEM_NORMAL}) {
      size_t free = 0;
      size_t total = 0;
      EXPECT_SUCCESS(aclrtGetMemInfo(attribute, &free, &total));
      EXPECT_EQ(free, total) << "device " << device << ", attribute " << attribute;
      EXPECT_GT(total, 0u);
    }
  }
}

Appointment appointment_at(const SharedBoard& board, unsigned place, uint32_t start) {
  Appointment appointment{.board = {}, .place = place, .start = start};
  board.path().copy(appointment.board.data(), appointment.board.size() - 1);
  return appointment;
}

// A process that is killed: forked from the test, which is quick, or a program started anew.
class Worker {
 public:
  void begin(const SharedBoard& board, unsigned place, uint32_t start) {
    if (start % 16 == 0) {
      program_.emplace(StormsUntilKilled);
      program_->send(appointment_at(board, place, start));
      return;
    }
    forked_ = fork();
    if (forked_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work_until_killed(*board, place, start);
  }
  void shoot() const {
    if (program_) program_->signal(SIGKILL);
    if (forked_ > 0) kill(forked_, SIGKILL);
  }
  // Until it is gone. It has to be the shot that ended it.
  void bury() {
    if (program_) program_->kill();
    program_.reset();
    if (forked_ <= 0) return;
    int status = 0;
    EXPECT_EQ(waitpid(forked_, &status, 0), forked_);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "a process ended by itself, with wait status " << status;
    forked_ = -1;
  }
  pid_t process() const { return program_ ? program_->pid() : forked_; }
  void stop() const { kill(process(), SIGSTOP); }
  void go_on() const { kill(process(), SIGCONT); }

 private:
  std::optional<Peer> program_;
  pid_t forked_ = -1;
};

// Kills without end are not wanted if something is wrong already.
bool is_in_order(const Board& board, uint64_t& steps, steady_clock::time_point& latest) {
  if (board.failures.load() != 0) return false;
  if (const uint64_t now = board.healthy_steps.load(); now != steps) {
    steps = now;
    latest = steady_clock::now();
  }
  EXPECT_LT(steady_clock::now() - latest, kStandstill) << "the healthy process stands still";
  return !testing::Test::HasFailure();
}

unsigned wanted_kills() {
  const char* const text = getenv("UNDERSTUDY_STORM_KILLS");
  return text == nullptr ? kUsualKills : static_cast<unsigned>(std::stoul(text));
}

// Lets some of them stand still for a moment, in which the healthy process goes on. The places of
// those that are to be killed where they stand; every other time they all go on.
std::set<unsigned> stop_some(std::array<Worker, kWorkers>& workers, const Board& board,
                             std::mt19937& random) {
  std::set<unsigned> places;
  for (unsigned i = 0; i < 1 + random() % 3; ++i) places.insert(random() % kWorkers);
  for (const unsigned place : places) workers[place].stop();
  const uint64_t until = board.healthy_steps.load() + 1 + random() % kStepsBetweenKills;
  const steady_clock::time_point end = steady_clock::now() + kLongestStop;
  while (board.healthy_steps.load() < until && steady_clock::now() < end) {
    std::this_thread::yield();
  }
  if (random() % 2 == 0) return places;
  for (const unsigned place : places) workers[place].go_on();
  return {};
}

// How many there were.
unsigned storm(const SharedBoard& board, unsigned kills) {
  std::mt19937 random(5);
  std::array<Worker, kWorkers> workers;
  uint32_t started = 100;  // numbers below are those of the others
  for (unsigned place = 0; place < kWorkers; ++place) {
    workers[place].begin(board, place, ++started);
  }
  unsigned killed = 0;
  uint64_t steps = 0;
  steady_clock::time_point latest = steady_clock::now();
  while (killed < kills && is_in_order(*board, steps, latest)) {
    // The next kill comes when the healthy process has done a little more.
    const uint64_t until = board->healthy_steps.load() + random() % kStepsBetweenKills;
    while (board->healthy_steps.load() < until && is_in_order(*board, steps, latest)) {
      std::this_thread::yield();
    }
    // Sometimes several at once, so that both ends of an import go.
    std::set<unsigned> places;
    if (random() % 4 == 0) places = stop_some(workers, *board, random);
    for (unsigned i = 0; i < 1 + random() % 3; ++i) places.insert(random() % kWorkers);
    for (const unsigned place : places) workers[place].shoot();
    for (const unsigned place : places) workers[place].bury();
    for (const unsigned place : places) workers[place].begin(board, place, ++started);
    killed += static_cast<unsigned>(places.size());
  }
  for (const Worker& worker : workers) worker.shoot();
  for (Worker& worker : workers) worker.bury();
  return killed;
}

// Children of those that were killed: they die with their parent, but that takes a moment. The
// list of children misses some while others leave it, so that it is read until it has none.
void bury_orphans(const std::set<pid_t>& others) {
  for (bool has_any = true; has_any;) {
    has_any = false;
    std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
    for (pid_t child = 0; children >> child;) {
      if (others.contains(child)) continue;
      waitpid(child, nullptr, 0);
      has_any = true;
    }
  }
}

std::set<std::string> files_of_server() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(getenv(kServerVariable))) {
    names.insert(entry.path().filename());
  }
  return names;
}

size_t ledger_bytes() {
  struct stat status {};
  const std::string path = std::string(getenv(kServerVariable)) + "/ledger";
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return static_cast<size_t>(status.st_blocks) * 512;
}

void end_with_a_word(int) {
  constexpr char kWord[] = "the storm did not end in time\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWord, sizeof kWord - 1);
  _exit(3);
}

TEST(ShareStorm, SHARE_38_SHARE_39_SHARE_40_IPC_22_ThousandsOfKillsLeaveNothingBehind) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "2"}, {"UNDERSTUDY_MEMORY", "1G"});
  (void)signal(SIGALRM, end_with_a_word);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // children of those that are killed come to this process
  const unsigned kills = wanted_kills();
  alarm(100 + kills / 8);  // seconds; for all of it
  const SharedBoard board;
  Peer anchor(OffersTheSameAllTheTime);
  Peer healthy(IsHealthyInTheStorm);
  healthy.send(appointment_at(board, kHealthy, 2));
  ASSERT_TRUE(healthy.receive<bool>());
  anchor.send(appointment_at(board, kAnchor, 1));  // knows the healthy one by now
  ASSERT_TRUE(anchor.receive<bool>());

  const steady_clock::time_point begin = steady_clock::now();
  const unsigned killed = storm(board, kills);
  const std::chrono::duration<double> time = steady_clock::now() - begin;
  std::cout << killed << " kills in " << time.count() << " s, " << board->imports.load()
            << " imports, " << board->refusals.load() << " refusals, "
            << board->healthy_steps.load() << " steps of the healthy process\n";

  board->ends.store(true);
  EXPECT_TRUE(healthy.receive<bool>());
  anchor.send(true);
  EXPECT_TRUE(anchor.receive<bool>());
  for (unsigned i = 0; i < std::min(board->failures.load(), Board::kTexts); ++i) {
    ADD_FAILURE() << board->texts[i].data();
  }
  EXPECT_EQ(board->failures.load(), 0u);
  EXPECT_GT(board->healthy_steps.load(), 100u);
  EXPECT_LT(std::chrono::nanoseconds(board->healthy_longest.load()), kLongestCall);
  bury_orphans({anchor.pid(), healthy.pid()});

  // As long as the two live, it is the same server, whose books must be right.
  Peer(FindsAllMemoryFree).finish();
  EXPECT_LE(files_of_server().size(), 3u) << "the ledger and two sockets";
  EXPECT_LT(ledger_bytes(), 2 * kMiB) << "entries of dead processes were not used again";
  healthy.finish();
  anchor.finish();
  EXPECT_EQ(files_of_server(), std::set<std::string>{"ledger"});
  Peer(FindsAllMemoryFree).finish();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
}

}  // namespace
}  // namespace understudy_test::storm
