// SPDX-License-Identifier: Apache-2.0
#include "base/handle_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "unit/expect_result.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

struct Object {
  std::atomic<uint32_t> state{0};
  uint32_t index = 0;
  uint32_t pool_next = 0;

  SlotLife life() const { return SlotState::life(state.load()); }
};

class HandleTableTest : public testing::Test {
 protected:
  Object& begin() {
    Object& object = *value_of(table_.take());
    object.state.fetch_add(1);
    return object;
  }
  void end(Object& object) {
    object.state.fetch_add(1);
    table_.recycle(object);
  }
  std::string text_for(uint64_t handle) {
    const Result<Object*> found = table_.find(handle);
    return found.ok() ? "" : found.error().text();
  }

  HandleTable<Object> table_{HandleTag::kStream, {"stream", "created", "destroyed"}};
};

TEST_F(HandleTableTest, HandleFindsItsObjectWhileItLives) {
  Object& first = begin();
  Object& second = begin();
  EXPECT_EQ(value_of(table_.find(table_.handle_of(first))), &first);
  EXPECT_EQ(value_of(table_.find(table_.handle_of(second))), &second);
  EXPECT_NE(table_.handle_of(first), table_.handle_of(second));
}

TEST_F(HandleTableTest, StaleHandleIsRefusedAlsoWhenItsSlotHasAnotherObject) {
  Object& first = begin();
  const uint64_t stale = table_.handle_of(first);
  end(first);
  EXPECT_TRUE(fails_with(table_.find(stale), ErrorCode::kInvalidParam));
  EXPECT_NE(text_for(stale).find("was destroyed"), std::string::npos) << text_for(stale);
  Object& next = begin();
  ASSERT_EQ(&next, &first);
  EXPECT_TRUE(fails_with(table_.find(stale), ErrorCode::kInvalidParam));
  EXPECT_EQ(value_of(table_.find(table_.handle_of(next))), &next);
}

TEST_F(HandleTableTest, ForeignAndInventedHandlesAreRefused) {
  const uint64_t real = table_.handle_of(begin());
  const HandleParts parts = HandleParts::split(real);
  for (const uint64_t handle :
       {uint64_t{0}, UINT64_MAX, uint64_t{0x7fff12345678},
        HandleParts{HandleTag::kBlock, parts.generation, parts.index}.pack(),
        HandleParts{HandleTag::kStream, 0, UINT32_MAX}.pack()}) {
    EXPECT_TRUE(fails_with(table_.find(handle), ErrorCode::kInvalidParam)) << handle;
    EXPECT_NE(text_for(handle).find("was never created"), std::string::npos) << text_for(handle);
  }
  EXPECT_FALSE(
      table_.find(HandleParts{HandleTag::kStream, parts.generation + 1, parts.index}.pack()).ok());
}

TEST_F(HandleTableTest, SlotThatWasOnlyTakenHasNoHandle) {
  Object& object = *value_of(table_.take());
  EXPECT_FALSE(table_.find(table_.handle_of(object)).ok());
  table_.cancel(object);
  EXPECT_EQ(value_of(table_.take()), &object) << "a canceled slot is used again";
}

TEST_F(HandleTableTest, SlotWhoseGenerationsAreUsedUpIsNotUsedAgain) {
  Object& object = begin();
  constexpr uint32_t kLast = (1U << HandleParts::kGenerationBits) - 1;
  object.state = kLast * 2 + 1;
  const uint64_t last = table_.handle_of(object);
  EXPECT_EQ(value_of(table_.find(last)), &object);
  end(object);
  EXPECT_FALSE(table_.find(last).ok());
  EXPECT_NE(value_of(table_.take()), &object);
}

TEST_F(HandleTableTest, EveryLiveObjectIsVisited) {
  Object& first = begin();
  begin();
  end(first);
  int alive = 0;
  table_.for_each([&](const Object& object) { alive += object.life().alive ? 1 : 0; });
  EXPECT_EQ(alive, 1);
}

TEST_F(HandleTableTest, ThreadsNeverShareASlot) {
  run_on_threads(4, [&](int) {
    for (int i = 0; i < 5000; ++i) {
      Object& object = *value_of(table_.take());
      EXPECT_FALSE(SlotState::alive(object.state.fetch_add(1)));
      const uint64_t handle = table_.handle_of(object);
      EXPECT_EQ(value_of(table_.find(handle)), &object);
      end(object);
      EXPECT_FALSE(table_.find(handle).ok());
    }
  });
}

}  // namespace
}  // namespace understudy
