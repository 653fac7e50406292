// SPDX-License-Identifier: Apache-2.0
//
// Host memory is obtained before the lock of a reservation is taken: that may take long, and wait
// for other threads and processes, while calls on the same reservation go on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <thread>

#include "memory/address_space.h"
#include "memory/commit_states.h"
#include "platform/shared_mapping.h"
#include "unit/memory/memory_rig.h"

namespace understudy {
namespace {

// Far more than any call takes that does not wait.
constexpr std::chrono::seconds kLong(20);

// A granule that is being committed for as long as the test wants.
class HeldCommit {
 public:
  HeldCommit(MemoryRig& rig, BlockHandle handle) {
    Block* const block = value_of(rig.physical.add_internal_ref(handle));
    const platform::MemoryFile& file = block->extent.backing->states_file();
    granule_ = block->extent.offset / kGranule;
    states_.emplace(
        value_of(CommitStates::attach(copy_of(file), file.size() / sizeof(std::atomic<uint32_t>),
                                      &rig.capacity.server().slots())));
    words_ = value_of(platform::SharedMapping::of_file(file.descriptor(), file.size()));
    rig.physical.drop_internal_ref(*block);
    EXPECT_TRUE(states_->claim(granule_));
    claimed_ = word().load();
  }
  ~HeldCommit() { end(); }
  HeldCommit(const HeldCommit&) = delete;
  HeldCommit& operator=(const HeldCommit&) = delete;

  // A thread that waits for the granule marks it.
  void wait_until_waited_for() {
    while (word().load() == claimed_) std::this_thread::yield();
  }
  void end() {
    if (is_held_) states_->settle(granule_, CommitState::kCold);
    is_held_ = false;
  }

 private:
  static platform::MemoryFile copy_of(const platform::MemoryFile& file) {
    return platform::MemoryFile::adopt(platform::UniqueFd(dup(file.descriptor())), file.kind(),
                                       file.size());
  }
  std::atomic<uint32_t>& word() {
    return reinterpret_cast<std::atomic<uint32_t>*>(words_.data())[granule_];
  }

  uint64_t granule_ = 0;
  uint32_t claimed_ = 0;
  bool is_held_ = true;
  std::optional<CommitStates> states_;
  platform::SharedMapping words_;
};

class CommitWithoutLocks : public testing::Test {
 protected:
  CommitWithoutLocks() : base_(rig_.reserve(2 * kGranule)) {}

  // Whether a call ends while a commit is held up. It ends in any case.
  template <typename Call>
  bool ends_meanwhile(HeldCommit& held, Call call) {
    std::future<void> done = std::async(std::launch::async, call);
    const bool in_time = done.wait_for(kLong) == std::future_status::ready;
    if (!in_time) held.end();
    done.get();
    return in_time;
  }
  Result<void> grant_host(VirtualAddress base) {
    const Location host[] = {kHostLocation};
    return rig_.space.mapper().grant({base, kGranule}, host);
  }
  auto map_meanwhile(BlockHandle handle) {
    return std::async(std::launch::async,
                      [this, handle] { return rig_.map(base_, kGranule, handle); });
  }

  MemoryRig rig_;
  const VirtualAddress base_;
};

TEST_F(CommitWithoutLocks, MapOfHostMemoryDoesNotHoldUpItsReservation) {
  const BlockHandle slow = rig_.create(kGranule, kHostLocation);
  const BlockHandle quick = rig_.create(kGranule, kHostLocation);
  HeldCommit held(rig_, slow);
  std::future<Result<void>> mapped = map_meanwhile(slow);
  held.wait_until_waited_for();
  EXPECT_TRUE(ends_meanwhile(held, [&] {
    EXPECT_TRUE(is_ok(rig_.map(base_ + kGranule, kGranule, quick)));
    EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_ + kGranule)));
  }));
  held.end();
  EXPECT_TRUE(is_ok(mapped.get()));
  EXPECT_TRUE(rig_.space.translation().find(base_));
}

TEST_F(CommitWithoutLocks, PlaceThatWasTakenMeanwhileIsRefused) {
  const BlockHandle slow = rig_.create(kGranule, kHostLocation);
  const BlockHandle quick = rig_.create(kGranule, kHostLocation);
  HeldCommit held(rig_, slow);
  std::future<Result<void>> mapped = map_meanwhile(slow);
  held.wait_until_waited_for();
  ASSERT_TRUE(ends_meanwhile(held, [&] { EXPECT_TRUE(is_ok(rig_.map(base_, kGranule, quick))); }));
  rig_.write(base_, {0x41});
  held.end();
  EXPECT_TRUE(fails_with(mapped.get(), ErrorCode::kInvalidParam));
  EXPECT_EQ(rig_.byte_at(base_), 0x41);
  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  EXPECT_TRUE(is_ok(rig_.physical.free(slow)));
  EXPECT_TRUE(is_ok(rig_.physical.free(quick)));
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
}

TEST_F(CommitWithoutLocks, ReservationThatEndedMeanwhileIsRefused) {
  const BlockHandle slow = rig_.create(kGranule, kHostLocation);
  HeldCommit held(rig_, slow);
  std::future<Result<void>> mapped = map_meanwhile(slow);
  held.wait_until_waited_for();
  ASSERT_TRUE(
      ends_meanwhile(held, [&] { EXPECT_TRUE(is_ok(rig_.space.reservations().release(base_))); }));
  held.end();
  EXPECT_TRUE(fails_with(mapped.get(), ErrorCode::kInvalidParam));
  EXPECT_TRUE(is_ok(rig_.physical.free(slow)));
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
}

TEST_F(CommitWithoutLocks, GrantToTheHostDoesNotHoldUpItsReservation) {
  const BlockHandle slow = rig_.create();
  ASSERT_TRUE(is_ok(rig_.map(base_, kGranule, slow)));
  HeldCommit held(rig_, slow);
  std::future<Result<void>> granted =
      std::async(std::launch::async, [&] { return grant_host(base_); });
  held.wait_until_waited_for();
  EXPECT_TRUE(ends_meanwhile(held, [&] {
    rig_.map_fresh(base_ + kGranule);
    EXPECT_TRUE(is_ok(grant_host(base_ + kGranule)));
    EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_ + kGranule)));
  }));
  held.end();
  EXPECT_TRUE(is_ok(granted.get()));
  EXPECT_TRUE(value_of(rig_.space.mapper().has_access(base_, kHostLocation)));
}

TEST_F(CommitWithoutLocks, GrantOfAMappingThatEndedMeanwhileIsRefused) {
  const BlockHandle slow = rig_.create();
  ASSERT_TRUE(is_ok(rig_.map(base_, kGranule, slow)));
  HeldCommit held(rig_, slow);
  ASSERT_TRUE(is_ok(rig_.physical.free(slow)));
  std::future<Result<void>> granted =
      std::async(std::launch::async, [&] { return grant_host(base_); });
  held.wait_until_waited_for();
  ASSERT_TRUE(ends_meanwhile(held, [&] { EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_))); }));
  EXPECT_EQ(rig_.charged(), kGranule) << "the grant keeps the block while it obtains its memory";
  held.end();
  EXPECT_TRUE(fails_with(granted.get(), ErrorCode::kInvalidParam));
  EXPECT_EQ(rig_.charged(), 0u);
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
}

TEST_F(CommitWithoutLocks, GrantFollowsAMappingThatReplacedTheOne) {
  const BlockHandle slow = rig_.create();
  ASSERT_TRUE(is_ok(rig_.map(base_, kGranule, slow)));
  HeldCommit held(rig_, slow);
  std::future<Result<void>> granted =
      std::async(std::launch::async, [&] { return grant_host(base_); });
  held.wait_until_waited_for();
  ASSERT_TRUE(ends_meanwhile(held, [&] {
    EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
    rig_.map_fresh(base_);
  }));
  rig_.write(base_, {0x42});
  held.end();
  EXPECT_TRUE(is_ok(granted.get()));
  EXPECT_EQ(*static_cast<uint8_t*>(to_pointer(base_)), 0x42);
  EXPECT_TRUE(is_ok(rig_.physical.free(slow)));
}

#if defined(US_CHECK_INVARIANTS)
TEST(CommitWithoutLocksDeathTest, CommitUnderALockStopsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  MemoryRig rig;
  const BlockHandle handle = rig.create();
  Block* const block = value_of(rig.physical.add_internal_ref(handle));
  Mutex mutex(LockRank::kReservation);
  EXPECT_DEATH(
      {
        MutexLock lock(mutex);
        (void)rig.pools.commit(*block->extent.backing, block->extent.offset, kGranule);
      },
      "host memory is obtained while locks of ranks 0x");
}
#endif

}  // namespace
}  // namespace understudy
