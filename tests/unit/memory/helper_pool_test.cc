// SPDX-License-Identifier: Apache-2.0
#include "memory/helper_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "base/sizes.h"
#include "memory/copy_engine.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

// Takes every n-th item, each on a thread of its own; 0 takes none.
class TestHelpers final : public HelperPool {
 public:
  explicit TestHelpers(unsigned takes_every, unsigned most = kMostHelpers)
      : takes_every_(takes_every), most_(most) {
    engine.set_helper_pool(this);
  }

  CopyEngine engine;  // that they help

  unsigned most_helpers() const override { return most_; }
  void offer(std::span<WorkItem> items) noexcept override {
    calls_.fetch_add(1);
    most_offered_.store(std::max(most_offered_.load(), items.size()));
    for (size_t i = 0; i < items.size(); ++i) {
      if (takes_every_ == 0 || i % takes_every_ != 0) continue;
      threads().emplace_back([&item = items[i]] { item.work(item.argument); });
    }
  }
  void withdraw(std::span<WorkItem>) noexcept override {
    for (std::thread& thread : threads()) thread.join();
    threads().clear();
  }

  bool has_other_work() const noexcept override { return is_busy_.load(); }
  // From now on helpers are wanted elsewhere.
  void become_busy() { is_busy_.store(true); }

  int calls() const { return calls_.load(); }
  size_t most_offered() const { return most_offered_.load(); }

 private:
  // Of the copy that the calling thread makes.
  static std::vector<std::thread>& threads() {
    thread_local std::vector<std::thread> mine;
    return mine;
  }

  const unsigned takes_every_;
  const unsigned most_;
  std::atomic<bool> is_busy_{false};
  std::atomic<int> calls_{0};
  std::atomic<size_t> most_offered_{0};
};

// Words that tell where they belong.
std::vector<uint64_t> numbered(size_t bytes, uint64_t seed) {
  std::vector<uint64_t> words(bytes / sizeof(uint64_t));
  for (size_t i = 0; i < words.size(); ++i) words[i] = i * 0x9E3779B97F4A7C15 + seed;
  return words;
}

// The first turns try it alone and together: some of these copies have help.
void expect_exact_copies(CopyEngine& engine, size_t bytes, uint64_t seed) {
  constexpr int kTurns = 4;
  const std::vector<uint64_t> source = numbered(bytes, seed);
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<uint64_t> target(source.size() + 1, ~seed);
    engine.copy_many(target.data(), source.data(), bytes);
    EXPECT_EQ(target.back(), ~seed);
    target.pop_back();
    EXPECT_TRUE(target == source);
  }
}

TEST(HelperPool, AllItemsDoneMakeAnExactCopy) {
  TestHelpers helpers(1);
  for (const size_t bytes : {CopyEngine::kWorthHelp, 19 * kMiB + 8, 33 * kMiB}) {
    expect_exact_copies(helpers.engine, bytes, 1);
  }
  EXPECT_EQ(helpers.calls(), 12);
}

TEST(HelperPool, WithoutHelpTheCallerDoesItAll) {
  TestHelpers helpers(0);
  for (const size_t bytes : {CopyEngine::kWorthHelp, 35 * kMiB - 8})
    expect_exact_copies(helpers.engine, bytes, 2);
  EXPECT_EQ(helpers.calls(), 8);
}

TEST(HelperPool, SomeItemsDoneMakeAnExactCopy) {
  TestHelpers helpers(2);
  for (const size_t bytes : {17 * kMiB, 32 * kMiB}) expect_exact_copies(helpers.engine, bytes, 3);
}

TEST(HelperPool, HelpersThatAreWantedElsewhereLeaveTheRestToTheCaller) {
  TestHelpers helpers(1);
  helpers.become_busy();
  expect_exact_copies(helpers.engine, 20 * kMiB, 8);
}

TEST(HelperPool, NoMoreItemsAreOfferedThanHelpersWant) {
  TestHelpers helpers(1, 1);
  expect_exact_copies(helpers.engine, 18 * kMiB, 4);
  EXPECT_LE(helpers.most_offered(), 1u);
}

TEST(HelperPool, ShortCopiesAskForNoHelp) {
  TestHelpers helpers(1);
  expect_exact_copies(helpers.engine, CopyEngine::kWorthHelp - 8, 5);
  EXPECT_EQ(helpers.calls(), 0);
}

TEST(HelperPool, HelpersThatWantNothingAreNotAsked) {
  TestHelpers helpers(1, 0);
  expect_exact_copies(helpers.engine, CopyEngine::kWorthHelp, 6);
  EXPECT_EQ(helpers.calls(), 0);
}

TEST(HelperPool, CopiesOfSeveralThreadsDoNotMix) {
  TestHelpers helpers(1);
  run_on_threads(2, [&](int index) {
    expect_exact_copies(helpers.engine, CopyEngine::kWorthHelp, 7 + static_cast<uint64_t>(index));
  });
}

}  // namespace
}  // namespace understudy
