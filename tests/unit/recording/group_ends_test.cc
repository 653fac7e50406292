// SPDX-License-Identifier: Apache-2.0
//
// Objects that end with their device or their whole (tools/recording/recorded_lives.h).
#include <gtest/gtest.h>

#include "tools/recording/recorded_lives.h"

namespace understudy::command {
namespace {

ObjectRecord record(uint64_t tick, RecordKind kind, uint64_t number, int32_t value) {
  ObjectRecord made;
  made.tick = tick;
  made.record = kind;
  made.number = number;
  made.value = value;
  return made;
}

TEST(GroupEnds, AnObjectThatEndsWithItsDeviceMayBeSaidToEndOnceMore) {
  std::vector<ObjectRecord> records = {record(1, RecordKind::kObjectBegin, 7, 0),
                                       record(2, RecordKind::kObjectsEnd, 0, 0),
                                       record(3, RecordKind::kObjectEnd, 7, 0)};
  std::vector<RecordedObject> objects;
  EXPECT_EQ(match_lives(records, objects), 0U);
  ASSERT_EQ(objects.size(), 1U);
  EXPECT_EQ(objects[0].end, 2U);
}

TEST(GroupEnds, ANumberThatIsUsedAgainIsAnotherObject) {
  std::vector<ObjectRecord> records = {
      record(1, RecordKind::kObjectBegin, 7, 0), record(2, RecordKind::kObjectsEnd, 0, 0),
      record(3, RecordKind::kObjectBegin, 7, 0), record(4, RecordKind::kObjectEnd, 7, 0),
      record(5, RecordKind::kObjectEnd, 7, 0)};
  std::vector<RecordedObject> objects;
  EXPECT_EQ(match_lives(records, objects), 1U);
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[0].end, 2U);
  EXPECT_EQ(objects[1].end, 4U);
}

}  // namespace
}  // namespace understudy::command
