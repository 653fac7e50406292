// SPDX-License-Identifier: Apache-2.0
#include "sharing/release_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "unit/run_on_threads.h"
#include "unit/share_rig.h"

namespace understudy {
namespace {

class ReleaseQueueTest : public testing::Test {
 protected:
  // Memory that this process has exported, as the block of that index.
  ShareToken add(uint32_t block) {
    const ShareToken token = own_.add();
    queue_.enter_export(token.number(),
                        ExportedMemory::of_block(block).exported_as(ShareKind::kNumber, true));
    return token;
  }
  bool end_export(ShareToken token) { return queue_.end_need(token.number(), HoldUser::kExporter); }
  bool end_import(ShareToken token) { return queue_.end_need(token.number(), HoldUser::kImporter); }
  std::vector<ReleasedHold> release() {
    std::array<ReleasedHold, ReleaseQueue::kBatch> room;
    const std::optional<size_t> count = queue_.release_some(room);
    EXPECT_TRUE(count);
    return {room.begin(), room.begin() + static_cast<ptrdiff_t>(count.value_or(0))};
  }

  // A process that holds a share until it is told to let go.
  auto holder(ShareToken token) {
    return [this, token](const Line& line) {
      ShareRig theirs(server_);
      EXPECT_TRUE(theirs.hold(token));
      line.say();
      line.hear_word();
      theirs.drop(token);
      line.say();
      line.hear();
    };
  }

  TestServer server_;
  ShareRig own_{server_};
  ReleaseQueue queue_{own_.shares};
};

TEST_F(ReleaseQueueTest, ExportThatIsNeededNoMoreIsGivenUpWithWhatWasExported) {
  const ShareToken token = add(7);
  EXPECT_TRUE(queue_.is_empty());
  EXPECT_EQ(queue_.exported(token.number()).block(), 7u);
  EXPECT_TRUE(end_export(token));
  EXPECT_FALSE(queue_.is_empty());
  EXPECT_EQ(own_.used(), kShareBytes);
  const std::vector<ReleasedHold> released = release();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].number, token.number());
  EXPECT_EQ(released[0].after, AfterDrop::kOwnAgain);
  EXPECT_TRUE(released[0].is_export);
  EXPECT_EQ(released[0].exported.block(), 7u);
  EXPECT_FALSE(queue_.exported(token.number()).exists());
  EXPECT_TRUE(queue_.is_empty());
  EXPECT_TRUE(release().empty());
  EXPECT_EQ(own_.used(), 0u);
}

TEST_F(ReleaseQueueTest, HoldIsGivenUpWhenNoSideNeedsIt) {
  const ShareToken token = add(1);
  EXPECT_FALSE(queue_.need_for_import(token.number()));
  EXPECT_FALSE(end_export(token));
  EXPECT_TRUE(queue_.is_empty());
  EXPECT_TRUE(end_import(token));
  ASSERT_EQ(release().size(), 1u);
}

TEST_F(ReleaseQueueTest, HoldThatWasNeverTakenIsNotGivenUp) {
  EXPECT_FALSE(queue_.need_for_import(5));
  EXPECT_FALSE(queue_.end_need(5, HoldUser::kImporter));
  EXPECT_TRUE(queue_.is_empty());
}

TEST_F(ReleaseQueueTest, ImportThatIsNeededAgainStaysAndCanBeGivenUpLater) {
  const ShareToken token = own_.add();  // as if it were another process's
  EXPECT_FALSE(queue_.need_for_import(token.number()));
  queue_.note_held(token.number());
  const ShareToken other = add(2);
  EXPECT_TRUE(end_import(token));
  EXPECT_TRUE(end_export(other));
  EXPECT_TRUE(queue_.need_for_import(token.number()));
  const std::vector<ReleasedHold> released = release();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].number, other.number());
  EXPECT_TRUE(own_.shares.token_of(token.number()));
  EXPECT_TRUE(end_import(token));
  EXPECT_TRUE(queue_.need_for_import(token.number()));
  EXPECT_TRUE(end_import(token));  // still queued, once
  const std::vector<ReleasedHold> last = release();
  ASSERT_EQ(last.size(), 1u);
  EXPECT_FALSE(last[0].is_export);
  EXPECT_TRUE(queue_.is_empty());
}

// The importer has looked up a share that ended since, and whose number is that of an export now.
TEST_F(ReleaseQueueTest, ExportOnTheQueueIsNoImportToGoOnWith) {
  const ShareToken token = add(3);
  EXPECT_TRUE(end_export(token));
  EXPECT_FALSE(queue_.need_for_import(token.number()));
  EXPECT_TRUE(release().empty()) << "not while the importer is at it";
  EXPECT_TRUE(end_import(token));
  const std::vector<ReleasedHold> released = release();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_TRUE(released[0].is_export);
  EXPECT_EQ(released[0].exported.block(), 3u);
}

TEST_F(ReleaseQueueTest, ManyAreGivenUpInBatchesInTheirOrder) {
  std::vector<ShareToken> tokens;
  for (uint32_t i = 0; i < 2 * ReleaseQueue::kBatch + 3; ++i) {
    ShareDescription little = ShareRig::description();
    little.charged = little.size = kNormalPage;
    tokens.push_back(own_.add(little));
    queue_.enter_export(tokens.back().number(),
                        ExportedMemory::of_block(i).exported_as(ShareKind::kNumber, true));
  }
  for (const ShareToken token : tokens) EXPECT_TRUE(end_export(token));
  uint32_t next = 0;
  while (!queue_.is_empty()) {
    for (const ReleasedHold& each : release()) EXPECT_EQ(each.exported.block(), next++);
  }
  EXPECT_EQ(next, tokens.size());
}

TEST_F(ReleaseQueueTest, WhatOthersHoldIsTakenWhenTheyGiveItBack) {
  const ShareToken token = add(9);
  OtherProcess other(holder(token));
  other.hear_word();
  EXPECT_TRUE(end_export(token));
  const std::vector<ReleasedHold> released = release();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].after, AfterDrop::kHeld);
  EXPECT_TRUE(released[0].is_export);
  EXPECT_FALSE(released[0].exported.exists());
  std::array<ExportedMemory, 4> returned;
  EXPECT_EQ(queue_.take_returned(returned), 0u);
  other.say();
  other.hear_word();
  EXPECT_EQ(queue_.take_returned({}), 0u);
  ASSERT_EQ(queue_.take_returned(returned), 1u);
  EXPECT_EQ(returned[0].block(), 9u);
  EXPECT_FALSE(queue_.exported(token.number()).exists());
}

TEST_F(ReleaseQueueTest, LedgerThatIsLockedIsNotWaitedForAndNothingIsLost) {
  const ShareToken first = add(1);
  const ShareToken second = add(2);
  OtherProcess other([this](const Line& line) {
    const std::unique_ptr<Server> joined = server_.join();
    const LedgerLock lock(joined->slots().mutex(), kNever);
    line.say();
    line.hear();
  });
  other.hear_word();
  EXPECT_TRUE(end_export(first));
  EXPECT_TRUE(end_export(second));
  std::array<ReleasedHold, 4> room;
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_FALSE(queue_.release_some(room));
    EXPECT_FALSE(queue_.is_empty());
  }
  other.kill();
  const std::vector<ReleasedHold> released = release();
  ASSERT_EQ(released.size(), 2u);
  EXPECT_EQ(released[0].exported.block(), 1u);
  EXPECT_EQ(released[1].exported.block(), 2u);
}

TEST_F(ReleaseQueueTest, ThreadsMayAddAndReleaseAtTheSameTime) {
  std::array<std::atomic<int>, 4> released{};
  run_on_threads(4, [&](int thread) {
    std::array<ReleasedHold, ReleaseQueue::kBatch> room;
    for (int round = 0; round < 200; ++round) {
      end_export(add(static_cast<uint32_t>(thread) + 1));
      const std::optional<size_t> count = queue_.release_some(room);
      for (size_t i = 0; i < count.value_or(0); ++i) ++released[room[i].exported.block() - 1];
    }
  });
  while (!queue_.is_empty()) {
    for (const ReleasedHold& each : release()) ++released[each.exported.block() - 1];
  }
  for (const std::atomic<int>& each : released) EXPECT_EQ(each, 200);
  EXPECT_EQ(own_.used(), 0u);
}

TEST(ExportedMemoryTest, TellsBlocksFromSlotsAndHowTheyAreExported) {
  EXPECT_FALSE(ExportedMemory().exists());
  const ExportedMemory block =
      ExportedMemory::of_block(0).exported_as(ShareKind::kNumber, false).in_backing_file(0);
  EXPECT_TRUE(block.exists());
  EXPECT_FALSE(block.is_slot());
  EXPECT_EQ(block.block(), 0u);
  EXPECT_FALSE(block.open_to_all());
  constexpr VirtualAddress kAddress = (uint64_t{1} << 55) + 3 * kNormalPage;
  const ExportedMemory slot = ExportedMemory::of_slot(kAddress)
                                  .in_backing_file(UINT16_MAX)
                                  .exported_as(ShareKind::kKey, true);
  EXPECT_TRUE(slot.is_slot());
  EXPECT_EQ(slot.slot(), kAddress);
  EXPECT_EQ(slot.backing_file(), UINT16_MAX);
  EXPECT_TRUE(slot.open_to_all());
  EXPECT_EQ(slot.kind(), ShareKind::kKey);
  const ExportedMemory again = slot.exported_as(ShareKind::kFabric, false);
  EXPECT_EQ(again.kind(), ShareKind::kFabric);
  EXPECT_FALSE(again.open_to_all());
  EXPECT_EQ(again.slot(), kAddress);
}

}  // namespace
}  // namespace understudy
