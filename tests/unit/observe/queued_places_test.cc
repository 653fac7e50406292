// SPDX-License-Identifier: Apache-2.0
#include "observe/queued_places.h"

#include <gtest/gtest.h>

namespace understudy {
namespace {

ProgramPlace place_of_call(const char* function) { return {nullptr, function, 1}; }

TEST(QueuedPlaces, PlaceIsKnownWhileTheTaskIsQueued) {
  constexpr uint32_t kStream = 900;
  QueuedPlaces::add({kStream, 3}, place_of_call("third"));
  QueuedPlaces::add({kStream, 5}, place_of_call("fifth"));
  QueuedPlaces::add({kStream + 1, 3}, place_of_call("other"));
  EXPECT_STREQ(QueuedPlaces::find({kStream, 3}).function, "third");
  EXPECT_STREQ(QueuedPlaces::find({kStream, 5}).function, "fifth");
  EXPECT_EQ(QueuedPlaces::find({kStream, 4}).function, nullptr);
  QueuedPlaces::remove({kStream, 4});
  EXPECT_EQ(QueuedPlaces::find({kStream, 3}).function, nullptr);
  EXPECT_STREQ(QueuedPlaces::find({kStream, 5}).function, "fifth");
  QueuedPlaces::remove({kStream, 5});
  EXPECT_EQ(QueuedPlaces::find({kStream, 5}).function, nullptr);
  EXPECT_STREQ(QueuedPlaces::find({kStream + 1, 3}).function, "other");
}

}  // namespace
}  // namespace understudy
