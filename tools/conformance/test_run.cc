// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/test_run.h"

#include <fstream>
#include <iterator>

#include "tools/held_signals.h"

namespace understudy::command {

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string filter_for(const std::vector<std::string>& tests) {
  std::string filter = "--gtest_filter=";
  for (const std::string& test : tests) filter += test + ":";
  return filter;
}

}  // namespace

std::map<std::string, TestResult> TestRun::run(const std::vector<std::string>& tests) {
  const HeldSignals held;
  cut_into_shards(tests);
  while (interruption_ == 0 && (!waiting_.empty() || !running_.empty())) {
    while (!waiting_.empty() && running_.size() < options_.jobs) {
      Shard shard = std::move(waiting_.front());
      waiting_.pop_front();
      start(std::move(shard));
    }
    interruption_ = held.wait();
    running_.remove_if([&](Running& running) { return look_after(running); });
    if (options_.on_progress) options_.on_progress(results_.size());
  }
  running_.clear();
  return std::move(results_);
}

// Neighbors go to different shards: tests of one group take about as long as each other.
void TestRun::cut_into_shards(const std::vector<std::string>& tests) {
  const size_t count = (tests.size() + options_.shard_size - 1) / options_.shard_size;
  waiting_.resize(count);
  for (size_t i = 0; i < tests.size(); ++i) waiting_[i % count].push_back(tests[i]);
}

void TestRun::start(Shard shard) {
  const std::string name = std::to_string(started_++);
  const std::filesystem::path record = options_.directory / (name + ".records");
  const std::filesystem::path output = options_.directory / (name + ".output");
  std::ofstream(record).close();
  std::vector<std::string> environment = options_.environment;
  environment.push_back("UNDERSTUDY_TEST_RECORD=" + record.string());
  std::vector<std::string> arguments = {options_.program, filter_for(shard)};
  auto process =
      std::make_unique<ChildProcess>(std::move(arguments), std::move(environment), output.string());
  running_.push_back({std::move(shard), record, output, 0, Clock::now(), std::move(process)});
}

bool TestRun::look_after(Running& running) {
  std::optional<int> status = running.process->poll_end();
  bool is_hung = false;
  if (!status) {
    std::error_code error;
    const uintmax_t size = std::filesystem::file_size(running.record, error);
    if (!error && size != running.record_size) {
      running.record_size = size;
      running.advance = Clock::now();
    }
    if (Clock::now() - running.advance < options_.time_limit) return false;
    running.process->kill();
    status = running.process->poll_end();
    is_hung = true;
  }
  const std::string output = read_file(running.output);
  const ProcessEnd end{*status, is_hung, output};
  if (running.shard.size() == 1) {
    finish_single(running, end);
  } else {
    finish_shard(running);
  }
  std::filesystem::remove(running.record);
  std::filesystem::remove(running.output);
  return true;
}

void TestRun::finish_single(const Running& running, const ProcessEnd& end) {
  const std::string& test = running.shard.front();
  results_[test] = judge(test, read_records(running.record.string())[test], end);
}

void TestRun::finish_shard(const Running& running) {
  const std::map<std::string, TestRecord> records = read_records(running.record.string());
  Shard rest;
  for (const std::string& test : running.shard) {
    const auto record = records.find(test);
    if (record == records.end()) {
      rest.push_back(test);
    } else if (record->second.is_ended && !record->second.is_failed) {
      // The process may have ended badly after this test, which is not its affair.
      results_[test] = judge(test, record->second, ProcessEnd{});
    } else {
      waiting_.push_back({test});
    }
  }
  if (rest.size() < running.shard.size()) {
    if (!rest.empty()) waiting_.push_front(std::move(rest));
    return;
  }
  for (std::string& test : rest) waiting_.push_back({std::move(test)});  // it never came to a test
}

}  // namespace understudy::command
