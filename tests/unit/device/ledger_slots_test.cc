// SPDX-License-Identifier: Apache-2.0
//
// The slots that processes have in a ledger, which are taken again, and their tags, which are not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/ledger.h"
#include "platform/byte_lock.h"
#include "unit/platform/planned_fault.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

// Where the locks of the slots are in the file, as every version of the library must have them.
constexpr uint64_t kSlotBytes = (uint64_t{1} << 40) + 1;

class LedgerSlots : public testing::Test {
 protected:
  TestServer server_;
};

TEST_F(LedgerSlots, SlotOfAProcessThatDiedIsTakenAgainWithAnotherTag) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  std::vector<ProcessTag> tags;
  for (int i = 0; i < 3; ++i) {
    OtherProcess other(server_.member());
    tags.emplace_back(other.hear_word());
    EXPECT_EQ(tags.back().slot(), 1u);
    EXPECT_TRUE(ledger->is_alive(tags.back()));
    for (size_t earlier = 0; earlier + 1 < tags.size(); ++earlier) {
      EXPECT_NE(tags[earlier], tags.back());
      EXPECT_FALSE(ledger->is_alive(tags[earlier]));
    }
    other.kill();
  }
  ledger->reclaim_if_any();
  EXPECT_EQ(ledger->header().slots.load(), 1u);
}

// The same where others have later slots.
TEST_F(LedgerSlots, SlotBetweenOthersIsTakenAgainWhenItsProcessDied) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  OtherProcess first(server_.member());
  const ProcessTag dead(first.hear_word());
  OtherProcess last(server_.member());
  EXPECT_EQ(ProcessTag(last.hear_word()).slot(), 2u);
  first.kill();
  ledger->reclaim_if_any();
  EXPECT_EQ(ledger->header().slots.load(), 3u);
  OtherProcess next(server_.member());
  const ProcessTag tag(next.hear_word());
  EXPECT_EQ(tag.slot(), dead.slot());
  EXPECT_EQ(tag.generation(), dead.generation() + 1);
  EXPECT_FALSE(ledger->is_alive(dead));
  EXPECT_FALSE(ledger->is_alive(ShortProcessTag(dead)));
  EXPECT_TRUE(ledger->is_alive(tag));
  EXPECT_TRUE(ledger->is_alive(ShortProcessTag(tag)));
}

// The same where it was the first slot.
TEST_F(LedgerSlots, FirstSlotIsTakenAgainWhenItsProcessDied) {
  OtherProcess first(server_.member());
  first.hear_word();
  OtherProcess second(server_.member());
  second.hear_word();
  first.kill();
  const std::unique_ptr<Ledger> ledger = server_.join();
  EXPECT_EQ(ledger->own_slot(), 0u);
}

TEST_F(LedgerSlots, SlotsThatNobodyHasAtTheEndAreNotLookedAt) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  OtherProcess first(server_.member());
  first.hear_word();
  OtherProcess last(server_.member());
  const ProcessTag tag(last.hear_word());
  first.kill();
  ledger->reclaim_if_any();
  EXPECT_EQ(ledger->header().slots.load(), 3u);
  EXPECT_TRUE(ledger->is_alive(tag));
  last.kill();
  ledger->reclaim_if_any();
  EXPECT_EQ(ledger->header().slots.load(), 1u);
  EXPECT_FALSE(ledger->is_alive(tag));
  EXPECT_TRUE(ledger->is_alive(ledger->own_tag()));
}

TEST_F(LedgerSlots, ProcessThatOthersTookForDeadKnowsIt) {
  const std::unique_ptr<Ledger> ledger = server_.join();
  EXPECT_TRUE(ledger->has_own_slot());
  const LedgerLock lock = value_of(ledger->lock());
  ledger->own().taken.store(0);
  EXPECT_FALSE(ledger->has_own_slot());
  // Nor is the slot its own when the next one has it.
  ledger->own().taken.store(1);
  ledger->own().generation.fetch_add(1);
  EXPECT_FALSE(ledger->has_own_slot());
  EXPECT_FALSE(ledger->is_alive(ledger->own_tag()));
}

TEST_F(LedgerSlots, ServerWithAllSlotsTakenRefusesTheNext) {
  // One process may have the locks of many slots: to others that is the same.
  OtherProcess crowd([&](const Line& line) {
    const std::unique_ptr<Ledger> theirs = server_.join();
    const platform::UniqueFd file(open(server_.ledger_path().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(kSharesOffset)), 0);
    for (unsigned slot = 1; slot < kProcessSlots; ++slot) {
      ASSERT_TRUE(platform::try_lock_byte(file.get(), kSlotBytes + slot));
      theirs->slot(slot).taken.store(1);
    }
    theirs->header().slots.store(kProcessSlots);
    line.say();
    line.hear_word();
    platform::unlock_byte(file.get(), kSlotBytes + 100);
    line.say();
    line.hear();
  });
  crowd.hear_word();
  EXPECT_TRUE(fails_with(server_.try_join(), ErrorCode::kOutOfResources));
  crowd.say();
  crowd.hear_word();
  EXPECT_EQ(server_.join()->own_slot(), 100u);
}

TEST_F(LedgerSlots, SlotWhoseLockCannotBeTakenIsPassedOver) {
  const PlannedFault fault(SystemCall::kLockByte, 2, ENOLCK);  // the first is that of joining
  EXPECT_EQ(server_.join()->own_slot(), 1u);
}

TEST(ProcessTagTest, KeepsSlotAndGeneration) {
  EXPECT_TRUE(ProcessTag().is_nobody());
  for (const unsigned slot : {0u, 1u, kProcessSlots - 1}) {
    for (const uint64_t generation : {uint64_t{1}, uint64_t{1} << 19, uint64_t{1} << 40}) {
      const ProcessTag tag(slot, generation);
      EXPECT_FALSE(tag.is_nobody());
      EXPECT_EQ(tag.slot(), slot);
      EXPECT_EQ(tag.generation(), generation);
      EXPECT_NE(tag, ProcessTag(slot, generation + 1));
      EXPECT_EQ(ProcessTag(tag.word()), tag);
    }
  }
}

TEST(ShortProcessTagTest, TellsHalfAMillionGenerationsOfASlotApart) {
  constexpr uint64_t kGenerations = uint64_t{1} << (ShortProcessTag::kBits - 9);
  static_assert(kProcessSlots == 1U << 9);
  for (const unsigned slot : {0u, kProcessSlots - 1}) {
    const ShortProcessTag tag(ProcessTag(slot, 1));
    EXPECT_EQ(tag.slot(), slot);
    EXPECT_EQ(ShortProcessTag(tag.word()).word(), tag.word());
    EXPECT_NE(ShortProcessTag(ProcessTag(slot, kGenerations)).word(), tag.word());
    EXPECT_EQ(ShortProcessTag(ProcessTag(slot, kGenerations + 1)).word(), tag.word());
    EXPECT_LT(ShortProcessTag(ProcessTag(slot, UINT64_MAX >> 9)).word(),
              1U << ShortProcessTag::kBits);
  }
}

}  // namespace
}  // namespace understudy
