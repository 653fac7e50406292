// SPDX-License-Identifier: Apache-2.0
//
// One history per process: each test has numbers of its own.
#include "observe/history.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace understudy {
namespace {

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() { chosen_checks.store(CheckSet::all().bits()); }
  ~HistoryTest() override { chosen_checks.store(0); }

  static uint64_t new_number() {
    static uint64_t last = 0x100000000000;
    return last += 0x10000000;
  }
  static void end(ObjectKind kind, uint64_t number) { ObjectEnd(kind, number).confirm(); }
};

TEST_F(HistoryTest, LifeHasBeginningAndEnd) {
  const uint64_t number = new_number();
  EXPECT_FALSE(History::explain(number));
  History::enter_function("aclrtMalloc");
  History::begin({ObjectKind::kAllocation, number, 4096, 3});
  History::leave_function();
  std::optional<ObjectLife> life = History::explain(number);
  ASSERT_TRUE(life);
  EXPECT_FALSE(life->has_ended);
  EXPECT_EQ(life->size, 4096U);
  EXPECT_EQ(life->device, 3);
  EXPECT_STREQ(life->begun.function, "aclrtMalloc");
  EXPECT_NE(life->begun.stack, nullptr);
  end(ObjectKind::kAllocation, number);
  life = History::explain(number);
  ASSERT_TRUE(life);
  EXPECT_TRUE(life->has_ended);
}

TEST_F(HistoryTest, UnconfirmedEndIsNone) {
  const uint64_t number = new_number();
  History::begin({ObjectKind::kBlock, number});
  (void)ObjectEnd(ObjectKind::kBlock, number);
  EXPECT_FALSE(History::explain(number)->has_ended);
}

// Between the end of an object and its confirmation another thread may get the number.
TEST_F(HistoryTest, EndIsThatOfTheLifeItWasMadeFor) {
  const uint64_t number = new_number();
  History::begin({ObjectKind::kAllocation, number, 16});
  const ObjectEnd first(ObjectKind::kAllocation, number);
  History::begin({ObjectKind::kAllocation, number, 32});
  first.confirm();
  const std::optional<ObjectLife> life = History::explain(number);
  ASSERT_TRUE(life);
  EXPECT_FALSE(life->has_ended);
  EXPECT_EQ(life->size, 32U);
}

TEST_F(HistoryTest, ObjectEndsWithItsLastHandle) {
  const uint64_t number = new_number();
  History::begin({ObjectKind::kBlock, number});
  History::add_handle(ObjectKind::kBlock, number);
  end(ObjectKind::kBlock, number);
  EXPECT_FALSE(History::explain(number)->has_ended);
  end(ObjectKind::kBlock, number);
  EXPECT_TRUE(History::explain(number)->has_ended);
  // A mapping keeps the block, and a handle of it can be had again.
  History::add_handle(ObjectKind::kBlock, number);
  EXPECT_FALSE(History::explain(number)->has_ended);
}

TEST_F(HistoryTest, AddressIsExplainedByWhatIsOrWasAroundIt) {
  const uint64_t base = new_number();
  History::begin({ObjectKind::kReservation, base, 1 << 20});
  EXPECT_EQ(History::explain(base + 4096)->kind, ObjectKind::kReservation);
  History::begin({ObjectKind::kMapping, base, 4096});
  EXPECT_EQ(History::explain(base + 100)->kind, ObjectKind::kMapping);
  EXPECT_EQ(History::explain(base + 4096)->kind, ObjectKind::kReservation);
  end(ObjectKind::kMapping, base);
  EXPECT_EQ(History::explain(base)->kind, ObjectKind::kMapping);
  EXPECT_TRUE(History::explain(base)->has_ended);
  EXPECT_FALSE(History::explain(base + (1 << 20)));
}

TEST_F(HistoryTest, DeviceAndOwnerEndTheirObjectsAlone) {
  const uint64_t stream = new_number();
  const uint64_t other = new_number();
  History::begin({ObjectKind::kStream, stream, 0, 5, 77});
  History::begin({ObjectKind::kStream, other, 0, 6, 78});
  History::end_parts_of(ObjectKind::kStream, 78, "its context was destroyed");
  EXPECT_FALSE(History::explain(stream)->has_ended);
  EXPECT_STREQ(History::explain(other)->cause, "its context was destroyed");
  History::end_on(ObjectKind::kStream, 5, "its device was reset");
  EXPECT_STREQ(History::explain(stream)->cause, "its device was reset");
}

TEST_F(HistoryTest, LivesThatEndedAreForgottenAtLast) {
  const size_t live_before = History::live().size();
  const uint64_t first = new_number();
  History::begin({ObjectKind::kEvent, first});
  end(ObjectKind::kEvent, first);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t number = (uint64_t{1} << 60) + static_cast<uint64_t>(i);
    History::begin({ObjectKind::kEvent, number});
    end(ObjectKind::kEvent, number);
  }
  EXPECT_FALSE(History::explain(first));
  EXPECT_EQ(History::live().size(), live_before);
}

TEST_F(HistoryTest, ThreadsDoNotLoseLives) {
  constexpr unsigned kThreads = 4;
  constexpr unsigned kEach = 2000;
  const size_t before = History::live().size();
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([thread] {
      for (unsigned i = 0; i < kEach; ++i) {
        const uint64_t number = (uint64_t{2} << 60) + thread * kEach + i;
        History::begin({ObjectKind::kNotify, number});
        if (i % 2 == 0) end(ObjectKind::kNotify, number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(History::live().size(), before + kThreads * kEach / 2);
  History::end_on(ObjectKind::kNotify, kNoDevice, "the test is over");
}

TEST_F(HistoryTest, ForkChildBeginsWithNone) {
  const uint64_t number = new_number();
  History::begin({ObjectKind::kPool, number});
  const pid_t child = fork();
  if (child == 0) {
    const bool is_empty = History::live().empty() && !History::explain(number);
    History::begin({ObjectKind::kPool, number});
    _exit(is_empty && History::live().size() == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(History::explain(number));
}

TEST_F(HistoryTest, NothingIsNotedWithoutAChosenCheck) {
  chosen_checks.store(0);
  const uint64_t number = new_number();
  History::begin({ObjectKind::kPool, number});
  EXPECT_FALSE(History::explain(number));
}

}  // namespace
}  // namespace understudy
