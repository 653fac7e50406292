// SPDX-License-Identifier: Apache-2.0
//
// Callbacks that will never run are told to those who ask.
#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "acl/acl_understudy.h"
#include "rules/callback_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using callbacks::this_thread;
using Numbers = std::set<uint64_t>;

void nothing(void*) {}

// All that can be taken, few at a time.
Numbers dropped() {
  Numbers found;
  void* room[2];
  size_t count = 0;
  do {
    EXPECT_SUCCESS(aclUnderstudyTakeDroppedCallbacks(nothing, room, 2, &count));
    for (size_t i = 0; i < count; ++i) EXPECT_TRUE(found.insert(number(room[i])).second);
  } while (count == 2);
  return found;
}

// The same until there are as many. A worker may have one in its hands when its stream ends.
Numbers dropped(size_t count) {
  Numbers found;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (found.size() < count && std::chrono::steady_clock::now() < limit) {
    found.merge(dropped());
    std::this_thread::yield();
  }
  return found;
}

class DroppedCallbacks : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    dropped();  // asked for from now on
    stream_.emplace();
    ASSERT_SUCCESS(aclrtSubscribeReport(this_thread(), stream_->get()));
  }
  void TearDown() override {
    stream_.reset();
    DeviceTest::TearDown();
  }
  void launch(uint64_t name, aclrtCallbackBlockType block = ACL_CALLBACK_NO_BLOCK) {
    ASSERT_SUCCESS(aclrtLaunchCallback(nothing, address(name), block, stream_->get()));
  }

  std::optional<TestStream> stream_;
};

TEST_F(DroppedCallbacks, OnesThatRanAreNotAmongThem) {
  launch(1);
  launch(2, ACL_CALLBACK_BLOCK);
  ASSERT_SUCCESS(callbacks::serve_one());
  ASSERT_SUCCESS(callbacks::serve_one());
  expect_finishes(stream_->get());
  stream_->destroy();
  EXPECT_EQ(dropped(), Numbers());
}

TEST_F(DroppedCallbacks, AnAbortDropsThoseThatWereSentAndThoseThatWereNot) {
  launch(1);
  launch(2, ACL_CALLBACK_BLOCK);
  launch(3);  // behind one that nobody serves
  launch(4, ACL_CALLBACK_BLOCK);
  EXPECT_EQ(dropped(), Numbers());
  ASSERT_SUCCESS(aclrtStreamAbort(stream_->get()));
  EXPECT_EQ(dropped(), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(dropped(), Numbers());
}

TEST_F(DroppedCallbacks, AnEndedSubscriptionDropsThem) {
  launch(1);
  launch(2, ACL_CALLBACK_BLOCK);
  launch(3);
  ASSERT_SUCCESS(aclrtUnSubscribeReport(this_thread(), stream_->get()));
  (void)aclrtSynchronizeStream(stream_->get());  // says that nobody served the third
  EXPECT_EQ(dropped(), (Numbers{1, 2, 3}));
}

TEST_F(DroppedCallbacks, AStreamThatIsDestroyedByForceDropsThem) {
  launch(1, ACL_CALLBACK_BLOCK);
  launch(2);
  ASSERT_SUCCESS(aclrtDestroyStreamForce(stream_->release()));
  EXPECT_EQ(dropped(2), (Numbers{1, 2}));
}

TEST_F(DroppedCallbacks, AResetByForceDropsThem) {
  launch(1, ACL_CALLBACK_BLOCK);
  launch(2);
  (void)stream_->release();
  ASSERT_SUCCESS(aclrtResetDeviceForce(0));
  EXPECT_EQ(dropped(2), (Numbers{1, 2}));
  ASSERT_SUCCESS(aclrtSetDevice(0));
}

TEST_F(DroppedCallbacks, BadArgumentsAreRefused) {
  void* room[1];
  size_t count = 7;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclUnderstudyTakeDroppedCallbacks(nullptr, room, 1, &count));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclUnderstudyTakeDroppedCallbacks(nothing, nullptr, 1, &count));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclUnderstudyTakeDroppedCallbacks(nothing, room, 1, nullptr));
  EXPECT_EQ(count, 7U);
}

}  // namespace
}  // namespace understudy_test
