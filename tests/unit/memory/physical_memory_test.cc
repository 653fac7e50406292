// SPDX-License-Identifier: Apache-2.0
#include "memory/physical_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <set>

#include "unit/memory/memory_rig.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

class PhysicalMemoryTest : public testing::Test {
 protected:
  Result<BlockHandle> create(const BlockRequest& request) { return rig_.physical.create(request); }
  // The block of a handle, as long as the caller keeps it alive.
  Block& block_of(BlockHandle handle) {
    Block* const block = value_of(rig_.physical.add_internal_ref(handle));
    rig_.physical.drop_internal_ref(*block);
    return *block;
  }

  MemoryRig rig_;
};

TEST_F(PhysicalMemoryTest, BlockHasTheTraitsItWasAskedForWith) {
  const BlockHandle handle = value_of(create({4 * kMiB, BlockAttribute::kHbmNormal, kDevice1}));
  const BlockProperties properties = value_of(rig_.physical.properties(handle));
  EXPECT_EQ(properties.size, 4 * kMiB);
  EXPECT_EQ(properties.attribute, BlockAttribute::kHbmNormal);
  EXPECT_EQ(properties.location, kDevice1);
  EXPECT_EQ(rig_.charged(1), 4 * kMiB);
  EXPECT_EQ(rig_.charged(0), 0u);
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_EQ(rig_.charged(1), 0u);
}

TEST_F(PhysicalMemoryTest, EachAttributeIsChargedToThePoolOfItsPages) {
  struct Case {
    BlockAttribute attribute;
    uint64_t size;
    uint64_t normal;
    uint64_t huge;
  };
  for (const Case& each : {Case{BlockAttribute::kNormal, kGranule, kGranule, 0},
                           Case{BlockAttribute::kPeerNormal, kGranule, kGranule, 0},
                           Case{BlockAttribute::kHuge, kGranule, 0, kGranule},
                           Case{BlockAttribute::kHbmNormal, kGranule, 0, kGranule},
                           Case{BlockAttribute::kGiant, kGiB, 0, kGiB},
                           Case{BlockAttribute::kHbmGiant, kGiB, 0, kGiB}}) {
    const BlockHandle handle = value_of(create({each.size, each.attribute, kDevice0}));
    EXPECT_EQ(rig_.charged(0, PageKind::kNormal), each.normal);
    EXPECT_EQ(rig_.charged(0, PageKind::kHuge), each.huge);
    EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
  }
}

TEST_F(PhysicalMemoryTest, BlocksOnTheHostAreNotChargedToADevice) {
  const BlockHandle handle = value_of(create({kGranule, BlockAttribute::kDdrHuge, kHostLocation}));
  EXPECT_EQ(rig_.charged(0), 0u);
  EXPECT_EQ(rig_.charged(1), 0u);
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
}

TEST_F(PhysicalMemoryTest, NewBlocksAreColdUnlessCommitIsEager) {
  rig_.create(8 * kMiB);
  EXPECT_EQ(rig_.host_bytes(), 0u);
  Settings settings = rig_settings();
  settings.commit = Commit::kEager;
  MemoryRig eager(settings);
  eager.create(8 * kMiB);
  EXPECT_EQ(eager.host_bytes(), 8 * kMiB);
}

TEST_F(PhysicalMemoryTest, FreedHandleIsRefusedByEveryCall) {
  const BlockHandle handle = rig_.create();
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_TRUE(fails_with(rig_.physical.free(handle), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(rig_.physical.properties(handle), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(rig_.physical.add_internal_ref(handle), ErrorCode::kInvalidParam));
  EXPECT_EQ(rig_.charged(), 0u);
}

TEST_F(PhysicalMemoryTest, StaleHandleDoesNotReachTheNextBlockInItsSlot) {
  std::set<BlockHandle> seen;
  BlockHandle stale = 0;
  for (int round = 0; round < 20; ++round) {
    const BlockHandle handle = rig_.create();
    EXPECT_TRUE(seen.insert(handle).second);
    if (stale != 0) {
      ASSERT_EQ(HandleParts::split(handle).index, HandleParts::split(stale).index);
      EXPECT_FALSE(rig_.physical.free(stale).ok());
      EXPECT_FALSE(rig_.physical.properties(stale).ok());
    }
    EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
    stale = handle;
  }
}

TEST_F(PhysicalMemoryTest, InventedHandlesAreRefused) {
  const BlockHandle handle = rig_.create();
  const HandleParts parts = HandleParts::split(handle);
  for (const BlockHandle invented :
       {BlockHandle{0}, BlockHandle{1}, BlockHandle{UINT64_MAX}, to_address(&handle),
        HandleParts{HandleTag::kContext, parts.generation, parts.index}.pack(),
        HandleParts{HandleTag::kBlock, parts.generation + 1, parts.index}.pack(),
        HandleParts{HandleTag::kBlock, 0, parts.index + 1}.pack(),
        HandleParts{HandleTag::kBlock, 0, UINT32_MAX}.pack()}) {
    EXPECT_TRUE(fails_with(rig_.physical.free(invented), ErrorCode::kInvalidParam)) << invented;
    EXPECT_TRUE(fails_with(rig_.physical.properties(invented), ErrorCode::kInvalidParam))
        << invented;
  }
  EXPECT_TRUE(is_ok(rig_.physical.properties(handle)));
}

TEST_F(PhysicalMemoryTest, MappedBlockOutlivesItsHandle) {
  const BlockHandle handle = rig_.create();
  Block* const block = value_of(rig_.physical.add_internal_ref(handle));
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_EQ(rig_.charged(), kGranule);
  EXPECT_TRUE(fails_with(rig_.physical.free(handle), ErrorCode::kInvalidParam));
  // Nobody owns it any more, so nobody may map it by its handle.
  EXPECT_TRUE(fails_with(rig_.physical.add_internal_ref(handle), ErrorCode::kInvalidParam));
  EXPECT_TRUE(is_ok(rig_.physical.add_internal_ref_to_mapped(*block)));
  rig_.physical.drop_internal_ref(*block);
  EXPECT_EQ(rig_.charged(), kGranule);
  rig_.physical.drop_internal_ref(*block);
  EXPECT_EQ(rig_.charged(), 0u);
}

TEST_F(PhysicalMemoryTest, RetainedHandleIsTheSameNumberAndNeedsItsOwnFree) {
  const BlockHandle handle = rig_.create();
  Block* const block = value_of(rig_.physical.add_internal_ref(handle));
  EXPECT_EQ(value_of(rig_.physical.retain(*block)), handle);
  rig_.physical.drop_internal_ref(*block);
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_TRUE(is_ok(rig_.physical.properties(handle)));
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_FALSE(rig_.physical.properties(handle).ok());
  EXPECT_EQ(rig_.charged(), 0u);
}

TEST_F(PhysicalMemoryTest, RetainGivesAHandleToABlockThatIsOnlyMapped) {
  const BlockHandle handle = rig_.create();
  Block* const block = value_of(rig_.physical.add_internal_ref(handle));
  ASSERT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_EQ(value_of(rig_.physical.retain(*block)), handle);
  EXPECT_TRUE(is_ok(rig_.physical.add_internal_ref(handle)));
}

TEST_F(PhysicalMemoryTest, HeldStorageKeepsTheBytesWhileTheCapacityIsFreeAtOnce) {
  const BlockHandle handle = rig_.create();
  Block& block = block_of(handle);
  const uint64_t offset = block.extent.offset;
  rig_.physical.hold_extent(block);
  ASSERT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_EQ(rig_.charged(), 0u);
  // The next block of that size would get the extent if it were free.
  const BlockHandle second = rig_.create();
  EXPECT_NE(block_of(second).extent.offset, offset);
  EXPECT_NE(&block_of(second), &block);
  rig_.physical.drop_extent(block);
  EXPECT_EQ(block_of(rig_.create()).extent.offset, offset);
}

TEST_F(PhysicalMemoryTest, SizeThatIsNoMultipleIsRefusedOrRoundedUp) {
  for (const uint64_t size : {uint64_t{1}, kGranule - 1, kGranule + kNormalPage}) {
    EXPECT_TRUE(
        fails_with(create({size, BlockAttribute::kHuge, kDevice0}), ErrorCode::kInvalidParam));
  }
  EXPECT_TRUE(fails_with(create({kGiB + kGranule, BlockAttribute::kGiant, kDevice0}),
                         ErrorCode::kInvalidParam));
  EXPECT_EQ(rig_.charged(), 0u);

  Settings settings = rig_settings();
  settings.size_alignment = SizeAlignment::kRoundUp;
  MemoryRig rounding(settings);
  const BlockHandle handle = rounding.create(kGranule + 1);
  EXPECT_EQ(value_of(rounding.physical.properties(handle)).size, 2 * kGranule);
  EXPECT_EQ(rounding.charged(), 2 * kGranule);
  EXPECT_FALSE(rounding.physical.create({UINT64_MAX, BlockAttribute::kHuge, kDevice0}).ok());
}

TEST_F(PhysicalMemoryTest, BlockBeyondTheCapacityTakesNothing) {
  rig_.create(kRigHugeMemory - kGranule);
  EXPECT_TRUE(
      fails_with(create({2 * kGranule, BlockAttribute::kHuge, kDevice0}), ErrorCode::kOutOfMemory));
  EXPECT_EQ(rig_.charged(), kRigHugeMemory - kGranule);
  EXPECT_TRUE(is_ok(create({kGranule, BlockAttribute::kHuge, kDevice0})));
  EXPECT_TRUE(is_ok(create({2 * kGranule, BlockAttribute::kHuge, kDevice1})));
}

TEST_F(PhysicalMemoryTest, FailedStoreOrCommitTakesNothing) {
  Settings settings = rig_settings();
  settings.commit = Commit::kEager;
  settings.memory = 0;  // backing files of exactly the size that is needed
  MemoryRig rig(settings);
  const BlockRequest request{kGranule, BlockAttribute::kHuge, kDevice0};
  {
    // What fails is tried a second time.
    const PlannedFault first(SystemCall::kCreateFile, 1, EMFILE);
    const PlannedFault second(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_TRUE(fails_with(rig.physical.create(request), ErrorCode::kOutOfMemory));
  }
  EXPECT_TRUE(
      fails_with(rig.physical.create({kRigBudget + kGranule, BlockAttribute::kHuge, kDevice0}),
                 ErrorCode::kOutOfMemory));
  EXPECT_EQ(rig.charged(), 0u);
  EXPECT_EQ(rig.host_bytes_in_use(), 0u);
  EXPECT_TRUE(is_ok(rig.physical.create(request)));
}

TEST_F(PhysicalMemoryTest, PlaceOfABlockThatGotNoMemoryIsUsedAgain) {
  Settings settings = rig_settings();
  settings.commit = Commit::kEager;
  settings.memory = 0;
  settings.host_budget = 2 * kGranule;
  MemoryRig rig(settings);
  const BlockRequest small{kGranule, BlockAttribute::kHuge, kDevice0};
  const BlockHandle large = rig.create(2 * kGranule);
  ASSERT_TRUE(fails_with(rig.physical.create(small), ErrorCode::kOutOfMemory));
  ASSERT_TRUE(is_ok(rig.physical.free(large)));
  const PlannedFault fault(SystemCall::kCreateFile, 1, EMFILE);
  EXPECT_TRUE(is_ok(rig.physical.create(small)));
  EXPECT_FALSE(fault.happened()) << "a new backing was made although there is a free place";
}

TEST_F(PhysicalMemoryTest, AttributesThatTheProductLacksAreNotSupported) {
  MemoryRig inference(rig_settings("inf"));
  for (const BlockAttribute attribute : {BlockAttribute::kGiant, BlockAttribute::kHbmGiant}) {
    EXPECT_TRUE(fails_with(inference.physical.create({kGiB, attribute, kDevice0}),
                           ErrorCode::kNotInProduct));
    EXPECT_TRUE(
        fails_with(inference.physical.granularity(attribute, kDevice0), ErrorCode::kNotInProduct));
  }
  MemoryRig modern(rig_settings("950"));
  EXPECT_TRUE(fails_with(modern.physical.create({kGiB, BlockAttribute::kGiant, kDevice0}),
                         ErrorCode::kNotInProduct));
  EXPECT_TRUE(is_ok(modern.physical.create({kGiB, BlockAttribute::kHbmGiant, kDevice0})));
  EXPECT_TRUE(
      fails_with(create({kGiB, BlockAttribute::kPeerGiant, kDevice0}), ErrorCode::kNotInProduct));
}

TEST_F(PhysicalMemoryTest, LocationsThatDoNotExistAreRefused) {
  EXPECT_TRUE(
      fails_with(create({kGiB, BlockAttribute::kGiant, kHostLocation}), ErrorCode::kNotSupported));
  EXPECT_TRUE(fails_with(create({kGranule, BlockAttribute::kHuge, {LocationKind::kHost, 1}}),
                         ErrorCode::kNotSupported));
  EXPECT_TRUE(
      fails_with(create({kGranule, BlockAttribute::kHuge, {LocationKind::kHostNuma, 100'000}}),
                 ErrorCode::kInvalidParam));
}

TEST_F(PhysicalMemoryTest, GranularityIsTwoMebibytesOrAWholeGiantPage) {
  EXPECT_EQ(value_of(rig_.physical.granularity(BlockAttribute::kNormal, kDevice0)), 2 * kMiB);
  EXPECT_EQ(value_of(rig_.physical.granularity(BlockAttribute::kHuge, kDevice0)), 2 * kMiB);
  EXPECT_EQ(value_of(rig_.physical.granularity(BlockAttribute::kGiant, kDevice0)), kGiB);
  EXPECT_EQ(value_of(rig_.physical.granularity(BlockAttribute::kHuge, {LocationKind::kHost, 7})),
            2 * kMiB);
}

TEST_F(PhysicalMemoryTest, OneOfManyThreadsFrees) {
  for (int round = 0; round < 20; ++round) {
    const BlockHandle handle = rig_.create();
    std::atomic<int> freed{0};
    run_on_threads(4, [&](int) { freed += rig_.physical.free(handle).ok() ? 1 : 0; });
    EXPECT_EQ(freed, 1);
  }
  EXPECT_EQ(rig_.charged(), 0u);
}

TEST_F(PhysicalMemoryTest, ThreadsThatCreateAndFreeLeaveNothingCharged) {
  run_on_threads(4, [&](int index) {
    for (int round = 0; round < 100; ++round) {
      const BlockHandle handle = rig_.create((1 + static_cast<uint64_t>(round) % 3) * kGranule);
      Block* const block = value_of(rig_.physical.add_internal_ref(handle));
      // Either reference may be the last one.
      if (index % 2 == 0) {
        EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
        rig_.physical.drop_internal_ref(*block);
      } else {
        rig_.physical.drop_internal_ref(*block);
        EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
      }
    }
  });
  EXPECT_EQ(rig_.charged(), 0u);
}

// Counts that would take very long to reach are put there by hand.
TEST_F(PhysicalMemoryTest, CountsThatAreFullRefuseAndStayAsTheyAre) {
  const BlockHandle handle = rig_.create();
  Block& block = block_of(handle);
  const uint64_t before = block.state.load();
  const uint64_t full = BlockState(HandleParts::split(handle).generation, BlockState::kMaxHandles,
                                   BlockState::kMaxInternalRefs)
                            .word();
  block.state.store(full);
  EXPECT_TRUE(fails_with(rig_.physical.add_internal_ref(handle), ErrorCode::kOutOfResources));
  EXPECT_TRUE(
      fails_with(rig_.physical.add_internal_ref_to_mapped(block), ErrorCode::kOutOfResources));
  EXPECT_TRUE(fails_with(rig_.physical.properties(handle), ErrorCode::kOutOfResources));
  EXPECT_TRUE(fails_with(rig_.physical.retain(block), ErrorCode::kOutOfResources));
  EXPECT_EQ(block.state.load(), full);
  block.state.store(before);
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
}

TEST_F(PhysicalMemoryTest, SlotWhoseGenerationsAreUsedUpIsNotUsedAgain) {
  constexpr uint32_t kLast = (1U << BlockState::kGenerationBits) - 1;
  const BlockHandle first = rig_.create();
  const uint32_t index = HandleParts::split(first).index;
  block_of(first).state.store(BlockState(kLast, 1, 0).word());
  const BlockHandle last = HandleParts{HandleTag::kBlock, kLast, index}.pack();
  EXPECT_TRUE(is_ok(rig_.physical.free(last)));
  EXPECT_EQ(rig_.charged(), 0u);
  EXPECT_NE(HandleParts::split(rig_.create()).index, index);
  EXPECT_FALSE(rig_.physical.properties(HandleParts{HandleTag::kBlock, 0, index}.pack()).ok());
}

TEST(BlockState, PartsComeBackAsTheyWereAndDoNotOverlap) {
  struct Parts {
    uint32_t generation;
    uint32_t handles;
    uint32_t internal_refs;
  };
  constexpr Parts kLargest{(1U << BlockState::kGenerationBits) - 1, BlockState::kMaxHandles,
                           BlockState::kMaxInternalRefs};
  EXPECT_EQ(BlockState(kLargest.generation, kLargest.handles, kLargest.internal_refs).word(),
            UINT64_MAX);
  for (const Parts& parts :
       {Parts{}, Parts{kLargest.generation, 0, 0}, Parts{0, kLargest.handles, 0},
        Parts{0, 0, kLargest.internal_refs}, Parts{5, 6, 7}}) {
    const BlockState state(parts.generation, parts.handles, parts.internal_refs);
    EXPECT_EQ(state.generation(), parts.generation);
    EXPECT_EQ(state.handles(), parts.handles);
    EXPECT_EQ(state.internal_refs(), parts.internal_refs);
    EXPECT_EQ(state.alive(), parts.handles != 0 || parts.internal_refs != 0);
  }
}

TEST(BlockState, CountsOnePartAndLeavesTheOthers) {
  BlockState state(5, 6, 7);
  state.add_handle();
  state.drop_internal_ref();
  EXPECT_EQ(state.word(), BlockState(5, 7, 6).word());
  state.drop_handle();
  state.add_internal_ref();
  EXPECT_EQ(state.word(), BlockState(5, 6, 7).word());
}

TEST(BlockState, BehindTheLastGenerationComesTheFirst) {
  BlockState state((1U << BlockState::kGenerationBits) - 1, 0, 0);
  state.begin_generation();
  EXPECT_EQ(state.word(), 0u);
}

}  // namespace
}  // namespace understudy
