// SPDX-License-Identifier: Apache-2.0
//
// Runs tests of a program in processes of their own, a bounded number at a time. Most tests hold,
// so they run several to a process, a shard. A test that fails in it, ends it or hangs in it runs
// again alone, and that run counts: what earlier tests left behind cannot blame it. Tests that a
// shard did not come to run in another one. Each test has a time limit, so the run always ends.
//
// One thread. While it runs, SIGINT and SIGTERM (unless ignored) end it: see interruption().
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/child_process.h"
#include "tools/conformance/test_result.h"

namespace understudy::command {

struct TestRunOptions {
  std::string program;
  std::vector<std::string> environment;
  std::filesystem::path directory;  // for files of the run
  unsigned jobs = 1;
  std::chrono::milliseconds time_limit{120000};  // for one test
  size_t shard_size = 25;
  std::function<void(size_t done)> on_progress;  // called several times a second
};

class TestRun {
 public:
  explicit TestRun(TestRunOptions options) : options_(std::move(options)) {}

  // The result of every test, in the order of their names. Throws std::system_error if no process
  // can be started.
  std::map<std::string, TestResult> run(const std::vector<std::string>& tests);
  // The signal that ended the run before all tests were done; 0 if none did.
  int interruption() const { return interruption_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Shard = std::vector<std::string>;
  struct Running {
    Shard shard;
    std::filesystem::path record;
    std::filesystem::path output;
    uintmax_t record_size;      // when it was last seen to grow
    Clock::time_point advance;  // when that was
    std::unique_ptr<ChildProcess> process;
  };

  void cut_into_shards(const std::vector<std::string>& tests);
  void start(Shard shard);
  // True if the process has ended, or was ended because its time was up.
  bool look_after(Running& running);
  void finish_shard(const Running& running);
  void finish_single(const Running& running, const ProcessEnd& end);

  const TestRunOptions options_;
  std::deque<Shard> waiting_;
  std::list<Running> running_;
  std::map<std::string, TestResult> results_;
  unsigned started_ = 0;
  int interruption_ = 0;
};

}  // namespace understudy::command
