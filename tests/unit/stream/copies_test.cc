// SPDX-License-Identifier: Apache-2.0
#include "stream/copies.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "unit/stream/stream_test_base.h"

namespace understudy {
namespace {

class CopiesTest : public StreamTestBase {
 protected:
  static constexpr uint64_t kCount = 64;

  VirtualAddress page_locked() {
    return value_of(rig_.memory.host_memory.allocate(kMiB, DeviceAddress::kOwn, 0));
  }
  VirtualAddress plain() { return to_address(plain_.data()); }
  Result<void> queue(VirtualAddress to, VirtualAddress from, CopyKind kind = CopyKind::kDefault) {
    return copies_.queue_copy(stream_, {to, from, kCount}, kind);
  }
  uint64_t queued() const { return stream_.stream->submitted.load(); }

  std::array<uint8_t, kCount> plain_{};
  Copies copies_{rig_.memory.settings,
                 {rig_.memory.space, rig_.memory.host_memory},
                 rig_.memory.transfer,
                 rig_.memory.pools.budget(),
                 streams()};
  const StreamReference stream_ = make_stream();
};

TEST_F(CopiesTest, DeviceAndPageLockedMemoryIsQueued) {
  const VirtualAddress host = page_locked();
  EXPECT_TRUE(is_ok(queue(memory_, host)));
  EXPECT_TRUE(is_ok(queue(memory_ + kCount, memory_)));
  EXPECT_EQ(queued(), 2u);
  expect_synchronized(stream_);
  EXPECT_TRUE(is_ok(rig_.memory.host_memory.free(host)));
}

TEST_F(CopiesTest, OtherHostMemoryIsCopiedAtOnceBehindTheTasks) {
  submit(stream_, setting(memory_, 7, kCount));
  EXPECT_TRUE(is_ok(queue(plain(), memory_)));
  EXPECT_EQ(queued(), 1u);
  EXPECT_TRUE(streams().is_complete(stream_));
  EXPECT_EQ(plain_[kCount - 1], 7);
}

TEST_F(CopiesTest, SourceThatIsPutAsideMayChangeAtOnce) {
  block(stream_);
  plain_.fill(5);
  EXPECT_TRUE(is_ok(queue(memory_, plain(), CopyKind::kHostThroughBuffer)));
  plain_.fill(6);
  gate_.open();
  expect_synchronized(stream_);
  EXPECT_EQ(byte_at(kCount - 1), 5);
}

TEST_F(CopiesTest, KindsThatDoNotFitTheMemoryAreRefusedAndQueueNothing) {
  EXPECT_TRUE(
      fails_with(queue(plain(), memory_, CopyKind::kHostToDevice), ErrorCode::kInvalidParam));
  EXPECT_TRUE(
      fails_with(queue(plain(), memory_, CopyKind::kHostThroughBuffer), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(queue(plain(), plain() + 1), ErrorCode::kNotSupported));
  EXPECT_EQ(queued(), 0u);
}

TEST_F(CopiesTest, ListIsOneTaskOrNone) {
  size_t failed = SIZE_MAX;
  const std::vector<Copy> queueable{{memory_ + 64, memory_, 8}, {memory_ + 128, memory_, 8}};
  EXPECT_TRUE(is_ok(copies_.queue_list(stream_, queueable, failed)));
  EXPECT_EQ(queued(), 1u);
  const std::vector<Copy> mixed{{memory_ + 64, memory_, 8}, {plain(), fault_, 8}};
  EXPECT_TRUE(fails_with(copies_.queue_list(stream_, mixed, failed), ErrorCode::kInvalidParam));
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(queued(), 1u);
}

TEST_F(CopiesTest, HostMemoryIsSetAtOnce) {
  block(stream_);
  EXPECT_TRUE(is_ok(copies_.queue_set(stream_, {plain(), kCount, 9})));
  EXPECT_EQ(plain_[0], 9);
  EXPECT_TRUE(is_ok(copies_.queue_set(stream_, {memory_, kCount, 3})));
  EXPECT_EQ(queued(), 2u);
  gate_.open();
  expect_synchronized(stream_);
  EXPECT_EQ(byte_at(0), 3);
}

TEST_F(CopiesTest, WordsAreSetInKnownMemoryAlone) {
  const VirtualAddress at = plain() / 4 * 4 + 4;
  EXPECT_TRUE(fails_with(copies_.set_words(at, 1, 2, 0), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(
      fails_with(copies_.queue_set_words(stream_, {at, 2, 1}), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(is_ok(copies_.set_words(memory_, 0x01010101, 2, 0)));
  EXPECT_EQ(byte_at(7), 1);
}

TEST_F(CopiesTest, CopyAtOnceWakesAStreamThatWaitsForAValue) {
  EXPECT_TRUE(is_ok(copies_.set(memory_, 0, 8, 0)));
  ASSERT_TRUE(is_ok(copies_.queue_value(stream_, TaskKind::kWaitForValue,
                                        {memory_, 1, ValueCondition::kEqual, 0})));
  wait_until_parked(stream_);
  const uint64_t one = 1;
  EXPECT_TRUE(is_ok(copies_.copy({memory_, to_address(&one), sizeof one}, 0)));
  expect_synchronized(stream_);
  EXPECT_TRUE(fails_with(copies_.queue_value(stream_, TaskKind::kWriteValue,
                                             {memory_ + 1, 1, ValueCondition::kEqual, 0}),
                         ErrorCode::kInvalidParam));
}

}  // namespace
}  // namespace understudy
