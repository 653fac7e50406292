// SPDX-License-Identifier: Apache-2.0
//
// What viewers of a process see of its streams: which have work.
#include <gtest/gtest.h>

#include "unit/stream/stream_test_base.h"

namespace understudy {
namespace {

class StreamFiguresTest : public StreamTestBase {
 protected:
  bool is_marked(const StreamReference& stream) {
    return rig_.memory.capacity.server().figures().busy_mark(stream.id())->load() != 0;
  }
};

TEST_F(StreamFiguresTest, StreamIsMarkedWhileItHasWork) {
  const StreamReference stream = make_stream();
  const StreamReference other = make_stream();
  EXPECT_FALSE(is_marked(stream));
  block(stream);
  EXPECT_TRUE(is_marked(stream));
  EXPECT_FALSE(is_marked(other));
  gate_.open();
  expect_synchronized(stream);
  wait_for([&] { return !is_marked(stream); });
}

TEST_F(StreamFiguresTest, StreamThatWaitsForAnotherIsMarked) {
  const StreamReference first = make_stream();
  const StreamReference second = make_stream();
  const EventReference event = make_event();
  block(first);
  ASSERT_TRUE(is_ok(events().record(event, first)));
  park(second, event);
  EXPECT_TRUE(is_marked(second));
  gate_.open();
  expect_synchronized(second);
  wait_for([&] { return !is_marked(second) && !is_marked(first); });
}

TEST_F(StreamFiguresTest, MarksAreRightAfterManyTurns) {
  const StreamReference stream = make_stream();
  for (int i = 0; i < 2000; ++i) {
    submit(stream, setting(memory_, 1));
    if (i % 3 == 0) expect_synchronized(stream);
  }
  expect_synchronized(stream);
  wait_for([&] { return !is_marked(stream); });
  EXPECT_TRUE(stays([&] { return !is_marked(stream); }));
}

}  // namespace
}  // namespace understudy
