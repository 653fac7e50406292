// SPDX-License-Identifier: Apache-2.0
//
// Long random sequences of calls on a stream-ordered pool, with four streams that are held and let
// go, and on a simple model of it. No two allocations overlap, figures agree, and what a stream
// wrote is there for the tasks that it queued before the free, whoever has the memory by then.
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "rules/live_mapping.h"
#include "rules/pool_objects.h"
#include "support/sanitizers.h"

namespace understudy_test::pool {
namespace {

const int kSteps = kSanitized ? 10'000 : 100'000;
constexpr size_t kStreams = 4;
constexpr size_t kLimit = 256 * kMiB;
constexpr size_t kMostAllocations = 40;
constexpr size_t kChecks = 4096;  // copies of what a stream saw, before they are looked at

struct Allocation {
  size_t size = 0;
  uint64_t stamp = 0;  // in its first and its last word
  size_t stream = 0;   // that wrote them
};

class RandomPool {
 public:
  explicit RandomPool(uint64_t seed)
      : random_(seed), pool_(kLimit), free_before_(free_bytes(ACL_HBM_MEM_HUGE)) {
    EXPECT_SUCCESS(aclrtMallocHost(reinterpret_cast<void**>(&seen_), kChecks * sizeof *seen_));
    copy_in(words_.data(), std::vector<uint8_t>(kStreams * sizeof(uint64_t), 0));
    pool_.keep(kLimit);
  }
  ~RandomPool() { EXPECT_SUCCESS(aclrtFreeHost(seen_)); }

  void run() {
    for (step_ = 0; step_ < kSteps && !testing::Test::HasFailure(); ++step_) {
      SCOPED_TRACE(step_);
      make_a_call();
      check_figures();
    }
    while (!live_.empty() && !testing::Test::HasFailure()) free_one();
    check_what_was_seen();
    pool_.keep(0);
    synchronize_all();
    EXPECT_EQ(pool_.reserved(), 0u);
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), free_before_);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  aclrtStream stream(size_t n) const { return streams_[n].get(); }
  auto some_allocation() {
    return std::next(live_.begin(), static_cast<ptrdiff_t>(pick(live_.size())));
  }

  void make_a_call() {
    const size_t choice = pick(100);
    if (choice < 44) return allocate();
    if (choice < 82) return live_.empty() ? allocate() : free_one();
    if (choice < 86) return hold(pick(kStreams));
    if (choice < 91) return let_go(pick(kStreams));
    if (choice < 93) return order(pick(kStreams), pick(kStreams));
    if (choice < 95) return change_rules();
    if (choice < 96) return synchronize(pick(kStreams));
    if (choice < 98) return free_wrongly();
    if (choice < 99) return live_.empty() ? allocate() : free_at_once();
    if (pick(4) == 0) trim();
  }

  void allocate() {
    if (live_.size() >= kMostAllocations) return free_one();
    const size_t on = pick(kStreams);
    const size_t asked = 1 + pick(pick(4) == 0 ? 24 * kMiB : 5 * kMiB);
    const size_t size = (asked + kUnit - 1) / kUnit * kUnit;
    const bool was_pending = is_any_pending();
    void* data = nullptr;
    const aclError code = aclrtMemPoolMallocAsync(&data, asked, pool_.get(), stream(on));
    if (code != ACL_SUCCESS) {
      EXPECT_EQ(code, ACL_ERROR_RT_INTERNAL_ERROR) << recent_error();
      // Only what is in use, or was freed on a stream that had not got there, can be in the way.
      EXPECT_TRUE(used_ + size > kLimit || was_pending) << recent_error();
      return;
    }
    const auto next = live_.lower_bound(number(data));
    EXPECT_TRUE(next == live_.end() || number(data) + size <= next->first);
    if (next != live_.begin()) {
      const auto previous = std::prev(next);
      EXPECT_LE(previous->first + previous->second.size, number(data));
    }
    const Allocation made{size, ++latest_stamp_, on};
    live_[number(data)] = made;
    used_ += size;
    used_high_ = std::max(used_high_, used_);
    for (const size_t offset : {size_t{0}, size - sizeof(uint64_t)}) {
      EXPECT_SUCCESS(aclrtValueWrite(at(data, offset), made.stamp, 0, stream(on)));
    }
  }

  // Looks at what is there behind all that its stream did with it, and frees.
  void free_one() {
    const auto found = some_allocation();
    const Allocation ended = found->second;
    void* const data = address(found->first);
    size_t on = ended.stream;
    if (pick(4) == 0) {  // on another stream, which comes behind
      on = pick(kStreams);
      order(on, ended.stream);
    }
    for (const size_t offset : {size_t{0}, ended.size - sizeof(uint64_t)}) {
      if (expected_.size() == kChecks) check_what_was_seen();
      uint64_t* const into = &seen_[expected_.size()];
      expected_.push_back(ended.stamp);
      EXPECT_SUCCESS(aclrtMemcpyAsync(into, sizeof *into, at(data, offset), sizeof *into,
                                      ACL_MEMCPY_DEVICE_TO_HOST, stream(on)));
    }
    EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, stream(on)));
    forget(found);
  }

  void free_at_once() {
    const auto found = some_allocation();
    const Allocation ended = found->second;
    synchronize(ended.stream);
    for (const size_t offset : {size_t{0}, ended.size - sizeof(uint64_t)}) {
      uint64_t word = 0;
      EXPECT_SUCCESS(aclrtMemcpy(&word, sizeof word, address(found->first + offset), sizeof word,
                                 ACL_MEMCPY_DEVICE_TO_HOST));
      EXPECT_EQ(word, ended.stamp);
    }
    EXPECT_SUCCESS(aclrtFree(address(found->first)));
    forget(found);
  }

  void forget(std::map<uint64_t, Allocation>::iterator found) {
    used_ -= found->second.size;
    latest_end_ = found->first;
    live_.erase(found);
  }

  void free_wrongly() {
    if (!live_.empty()) {
      const auto found = some_allocation();
      const uint64_t inside = found->first + 1 + pick(found->second.size - 1);
      EXPECT_EQ(aclrtMemPoolFreeAsync(address(inside), stream(0)), ACL_ERROR_RT_PARAM_INVALID);
      EXPECT_EQ(aclrtFree(address(inside)), ACL_ERROR_RT_PARAM_INVALID);
    }
    if (latest_end_ != 0 && live_.count(latest_end_) == 0) {
      EXPECT_EQ(aclrtMemPoolFreeAsync(address(latest_end_), stream(1)), ACL_ERROR_RT_PARAM_INVALID);
    }
    (void)recent_error();
  }

  void trim() { EXPECT_SUCCESS(aclrtMemPoolTrimTo(pool_.get(), pick(kLimit))); }

  // ---- Streams
  void* word(size_t n) { return at(words_.data(), n * sizeof(uint64_t)); }
  void hold(size_t n) {
    if (held_[n]) return;
    held_[n] = true;
    ++turns_[n];
    EXPECT_SUCCESS(aclrtValueWait(word(n), turns_[n], ACL_STREAM_WAIT_VALUE_GEQ, stream(n)));
  }
  void let_go(size_t n) {
    if (!held_[n]) return;
    held_[n] = false;
    EXPECT_SUCCESS(aclrtMemcpy(word(n), sizeof turns_[n], &turns_[n], sizeof turns_[n],
                               ACL_MEMCPY_HOST_TO_DEVICE));
  }
  // A stream may wait for others that are held.
  void synchronize(size_t n) {
    for (size_t each = 0; each < kStreams; ++each) let_go(each);
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream(n)));
  }
  void synchronize_all() {
    for (size_t n = 0; n < kStreams; ++n) synchronize(n);
  }
  void order(size_t later, size_t earlier) {
    if (later == earlier) return;
    EXPECT_SUCCESS(aclrtRecordEvent(events_[earlier].get(), stream(earlier)));
    EXPECT_SUCCESS(aclrtStreamWaitEvent(stream(later), events_[earlier].get()));
  }
  // Whether a stream is held, or was let go and has yet to run. Nothing but this thread adds tasks.
  bool is_any_pending() const {
    for (const bool each : held_) {
      if (each) return true;
    }
    for (size_t n = 0; n < kStreams; ++n) {
      if (stream_status(stream(n)) != ACL_STREAM_STATUS_COMPLETE) return true;
    }
    return false;
  }

  // ---- What is expected
  void change_rules() {
    for (const auto attribute : {ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                                 ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC,
                                 ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
      pool_.allow(attribute, static_cast<uint32_t>(pick(2)));
    }
    pool_.keep(pick(8) == 0 ? pick(kLimit) : kLimit);
  }
  void check_what_was_seen() {
    synchronize_all();
    for (size_t i = 0; i < expected_.size(); ++i) EXPECT_EQ(seen_[i], expected_[i]);
    expected_.clear();
  }
  void check_figures() {
    EXPECT_EQ(pool_.used(), used_);
    EXPECT_EQ(pool_.used_high(), used_high_);
    const uint64_t reserved = pool_.reserved();
    EXPECT_GE(reserved, used_);
    EXPECT_LE(reserved, kLimit);
    EXPECT_GE(pool_.reserved_high(), reserved);
    if (step_ % 16 != 0) return;
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), free_before_ - reserved);
  }

  std::mt19937_64 random_;
  const TestPool pool_;
  LiveMapping words_;
  const size_t free_before_;
  std::array<TestStream, kStreams> streams_;
  std::array<TestEvent, kStreams> events_;
  std::array<bool, kStreams> held_ = {};
  std::array<uint64_t, kStreams> turns_ = {};
  std::map<uint64_t, Allocation> live_;
  uint64_t* seen_ = nullptr;
  std::vector<uint64_t> expected_;
  size_t used_ = 0;
  size_t used_high_ = 0;
  uint64_t latest_stamp_ = 0;
  uint64_t latest_end_ = 0;
  int step_ = 0;
};

using PoolModel = DeviceTest;

TEST_F(PoolModel, RandomCallsOnFourStreamsAgreeWithTheModel) {
  RandomPool pool(20261116);
  pool.run();
}

}  // namespace
}  // namespace understudy_test::pool
