// SPDX-License-Identifier: Apache-2.0
#include "stream/stream_order.h"

#include <gtest/gtest.h>

#include "unit/stream/stream_test_base.h"

namespace understudy {
namespace {

class StreamOrderTest : public StreamTestBase {
 protected:
  StreamOrderTest() { order().begin(); }

  StreamOrder& order() { return streams().order(); }
  // Records on a stream that is held, and lets another one wait. The position of the record.
  uint64_t let_wait(const StreamReference& later, const StreamReference& earlier,
                    uint32_t limit_seconds = 0) {
    const EventReference event = make_event();
    EXPECT_TRUE(is_ok(events().record(event, earlier)));
    const uint64_t position = earlier.stream->submitted.load();
    EXPECT_TRUE(is_ok(events().let_wait(later, event, limit_seconds)));
    return position;
  }

  const StreamReference one_ = make_stream();
  const StreamReference between_ = make_stream();
  const StreamReference other_ = make_stream();
};

TEST_F(StreamOrderTest, AWaitReachesTheRecord) {
  block(one_);
  EXPECT_EQ(order().reached_before(*other_.stream, *one_.stream), 0u);
  const uint64_t position = let_wait(other_, one_);
  EXPECT_EQ(order().reached_before(*other_.stream, *one_.stream), position);
  EXPECT_EQ(order().reached_before(*one_.stream, *other_.stream), 0u);
}

TEST_F(StreamOrderTest, AWaitThatIsOverCountsToo) {
  const EventReference event = make_event();
  ASSERT_TRUE(is_ok(events().record(event, one_)));
  const uint64_t position = one_.stream->submitted.load();
  expect_synchronized(one_);
  ASSERT_TRUE(is_ok(events().let_wait(other_, event, 0)));
  EXPECT_EQ(order().reached_before(*other_.stream, *one_.stream), position);
}

TEST_F(StreamOrderTest, TheWayLeadsOverOtherStreams) {
  block(one_);
  const uint64_t position = let_wait(between_, one_);
  let_wait(other_, between_);
  EXPECT_EQ(order().reached_before(*other_.stream, *one_.stream), position);
}

TEST_F(StreamOrderTest, WhatIsQueuedBehindTheRecordDoesNotCount) {
  block(one_);
  let_wait(other_, between_);
  let_wait(between_, one_);
  EXPECT_EQ(order().reached_before(*other_.stream, *one_.stream), 0u);
}

TEST_F(StreamOrderTest, AWaitThatMayEndEarlyDoesNotCount) {
  block(one_);
  let_wait(other_, one_, 60);
  EXPECT_EQ(order().reached_before(*other_.stream, *one_.stream), 0u);
  let_wait(other_, one_);
  EXPECT_NE(order().reached_before(*other_.stream, *one_.stream), 0u);
  streams().abort(other_);
  EXPECT_EQ(order().reached_before(*other_.stream, *one_.stream), 0u);
}

TEST_F(StreamOrderTest, OldWaitsAreForgotten) {
  block(one_);
  let_wait(other_, one_);
  for (int i = 0; i < 8; ++i) {
    const StreamReference another = make_stream();
    let_wait(another, one_);  // so that its record is not reached
    let_wait(other_, another);
  }
  // Still known, over one of the others.
  EXPECT_NE(order().reached_before(*other_.stream, *one_.stream), 0u);
}

}  // namespace
}  // namespace understudy
