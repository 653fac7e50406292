// SPDX-License-Identifier: Apache-2.0
//
// Eight processes share memory in all ways and are killed at random instants, thousands of times,
// each time replaced by a new one. A process in their middle that nobody kills never sees a wrong
// byte or a wrong code, and afterwards everything is given back.
// UNDERSTUDY_STORM_KILLS sets how many kills there are.
// Covers: IPC-22, SHARE-38, SHARE-39, SHARE-40.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "stress/process_status.h"
#include "stress/share_storm_process.h"
#include "support/server_directory.h"

namespace understudy_test::storm {
namespace {

using std::chrono::steady_clock;

constexpr unsigned kUsualKills = kSanitized ? 300 : 10'000;
constexpr std::chrono::seconds kStandstill(30);
constexpr unsigned kStepsBetweenKills = 3;

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

US_PEER(IsHealthyInTheStorm) {
  const auto appointment = channel.receive<Appointment>();
  const SharedBoard board(appointment.board.data());
  Process process(*board, appointment.place, appointment.start);
  channel.send(true);
  while (!board->ends.load()) process.take_random_step();
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
  const unsigned kills = wanted_kills();
  alarm(100 + kills / 50);  // seconds; for all of it
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
