// SPDX-License-Identifier: Apache-2.0
//
// Mappings and the rights to them. What the CPU sees of them is in host_mapping_test.cc, what
// happens while a copy holds a mapping in retire_list_test.cc.
#include "memory/mapper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include "unit/memory/memory_rig.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

class MapperTest : public testing::Test {
 protected:
  MemoryRig rig_;
};

TEST_F(MapperTest, MappingIsFoundUntilItIsUnmapped) {
  const VirtualAddress base = rig_.reserve(8 * kGranule);
  rig_.map_fresh(base + 2 * kGranule, 3 * kGranule);
  EXPECT_FALSE(rig_.space.translation().find(base));
  const std::optional<MappingView> view = rig_.space.translation().find(base + 4 * kGranule + 5);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->range, (VirtualRange{base + 2 * kGranule, 3 * kGranule}));
  EXPECT_EQ(view->location, kDevice0);
  EXPECT_EQ(view->page_kind, PageKind::kHuge);
  EXPECT_FALSE(rig_.space.translation().find(base + 5 * kGranule));

  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base + 2 * kGranule)));
  EXPECT_FALSE(rig_.space.translation().find(base + 2 * kGranule));
  EXPECT_TRUE(rig_.space.reservations().contains(base));
  EXPECT_TRUE(is_ok(rig_.space.reservations().release(base)));
  EXPECT_FALSE(rig_.space.reservations().contains(base));
}

TEST_F(MapperTest, UnmapEndsABlockThatNobodyElseHas) {
  const VirtualAddress base = rig_.reserve(kGranule);
  const BlockHandle handle = rig_.create();
  ASSERT_TRUE(is_ok(rig_.map(base, kGranule, handle)));
  ASSERT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_EQ(rig_.charged(), kGranule);
  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base)));
  EXPECT_EQ(rig_.charged(), 0u);
  EXPECT_TRUE(fails_with(rig_.space.mapper().unmap(base), ErrorCode::kInvalidParam));
}

TEST_F(MapperTest, BlockMappedTwiceShowsTheSameBytes) {
  const VirtualAddress base = rig_.reserve(2 * kGranule);
  const BlockHandle handle = rig_.create();
  ASSERT_TRUE(is_ok(rig_.map(base, kGranule, handle)));
  ASSERT_TRUE(is_ok(rig_.map(base + kGranule, kGranule, handle)));
  ASSERT_TRUE(is_ok(rig_.transfer.set(base + 77, 0x5C, 1, 0)));
  EXPECT_EQ(rig_.byte_at(base + kGranule + 77), 0x5C);
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base)));
  EXPECT_EQ(rig_.byte_at(base + kGranule + 77), 0x5C);
}

TEST_F(MapperTest, MappingThatIsRefusedChangesNothing) {
  const VirtualAddress base = rig_.reserve(4 * kGranule);
  rig_.map_fresh(base + kGranule);
  const BlockHandle block = rig_.create();
  const BlockHandle large = rig_.create(8 * kGranule);
  const BlockHandle freed = rig_.create();
  ASSERT_TRUE(is_ok(rig_.physical.free(freed)));
  const uint64_t charged = rig_.charged();

  const auto refused = [&](VirtualRange range, BlockHandle handle, uint64_t offset = 0) {
    return fails_with(
        rig_.space.mapper().map({.range = range, .offset = offset, .handle = handle, .access = {}}),
        ErrorCode::kInvalidParam);
  };
  EXPECT_TRUE(refused({base, kGranule}, block, kGranule)) << "offset";
  EXPECT_TRUE(refused({base + kNormalPage, kGranule}, block)) << "alignment";
  EXPECT_TRUE(refused({base, 2 * kGranule}, block)) << "larger than the block";
  EXPECT_TRUE(refused({base, kNormalPage}, block)) << "smaller than the block";
  EXPECT_TRUE(refused({base, kGranule}, freed)) << "freed handle";
  EXPECT_TRUE(refused({base, kGranule}, 0)) << "no handle";
  EXPECT_TRUE(refused({base + kGranule, kGranule}, block)) << "occupied by a mapping";
  EXPECT_TRUE(refused({base, 8 * kGranule}, large)) << "past the end of the reservation";
  EXPECT_TRUE(refused({base + 4 * kGranule, kGranule}, block)) << "behind the reservation";
  EXPECT_TRUE(refused({kGranule, kGranule}, block)) << "no reservation at all";
  EXPECT_TRUE(refused({UINT64_MAX - kGranule + 1, kGranule}, block)) << "end of all addresses";

  EXPECT_EQ(rig_.charged(), charged);
  EXPECT_FALSE(rig_.space.translation().find(base));
  EXPECT_TRUE(rig_.space.translation().find(base + kGranule));
  // No reference stayed behind.
  EXPECT_TRUE(is_ok(rig_.physical.free(large)));
  EXPECT_TRUE(is_ok(rig_.map(base, kGranule, block)));
  EXPECT_TRUE(is_ok(rig_.physical.free(block)));
  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base)));
  EXPECT_EQ(rig_.charged(), kGranule);
}

TEST_F(MapperTest, OnlyTheStartOfAMappingCanBeUnmapped) {
  const VirtualAddress base = rig_.reserve(4 * kGranule);
  rig_.map_fresh(base, 2 * kGranule);
  for (const VirtualAddress address :
       {base + 1, base + kGranule, base + 2 * kGranule, base + 4 * kGranule, VirtualAddress{0}}) {
    EXPECT_TRUE(fails_with(rig_.space.mapper().unmap(address), ErrorCode::kInvalidParam));
  }
  EXPECT_TRUE(rig_.space.translation().find(base));
}

TEST_F(MapperTest, GiantBlocksNeedGiantAlignment) {
  const VirtualAddress base = rig_.reserve(2 * kGiB);
  EXPECT_TRUE(is_aligned(base, kGiB));
  const BlockHandle giant =
      value_of(rig_.physical.create({kGiB, BlockAttribute::kGiant, kDevice0}));
  EXPECT_TRUE(fails_with(rig_.map(base + kGranule, kGiB, giant), ErrorCode::kInvalidParam));
  ASSERT_TRUE(is_ok(rig_.map(base + kGiB, kGiB, giant)));
  ASSERT_TRUE(is_ok(rig_.transfer.set(base + 2 * kGiB - 3, 0x33, 3, 0)));
  EXPECT_EQ(rig_.byte_at(base + 2 * kGiB - 1), 0x33);
  EXPECT_EQ(rig_.host_bytes(), kPartBytes);
  EXPECT_EQ(rig_.space.translation().find(base + kGiB)->page_kind, PageKind::kGiant);
  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base + kGiB)));
}

TEST_F(MapperTest, ReservationMayBelongToOneDeviceWhileItHasMappings) {
  Settings settings = rig_settings();
  settings.device_binding = DeviceBinding::kWhileMapped;
  MemoryRig rig(settings);
  const VirtualAddress base = rig.reserve(2 * kGranule);
  const BlockHandle other = rig.create(kGranule, kDevice1);
  rig.map_fresh(base, kGranule, kDevice0);
  EXPECT_TRUE(fails_with(rig.map(base + kGranule, kGranule, other), ErrorCode::kInvalidParam));
  ASSERT_TRUE(is_ok(rig.space.mapper().unmap(base)));
  EXPECT_TRUE(is_ok(rig.map(base + kGranule, kGranule, other)));
}

TEST_F(MapperTest, ReservationBelongsToOneDeviceForLife) {
  const VirtualAddress base = rig_.reserve(kGranule);
  rig_.map_fresh(base, kGranule, kDevice0);
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base)));
  EXPECT_TRUE(fails_with(rig_.map(base, kGranule, rig_.create(kGranule, kDevice1)),
                         ErrorCode::kInvalidParam));
  EXPECT_TRUE(is_ok(rig_.map(base, kGranule, rig_.create(kGranule, kDevice0))));
}

TEST_F(MapperTest, UncachedReservationTakesTheBlocksOfAllDevicesAndOfTheHost) {
  const VirtualAddress base =
      value_of(rig_.space.reservations().reserve_uncached(kGiB, kTiB * 200));
  rig_.map_fresh(base, kGranule, kDevice0);
  rig_.map_fresh(base + kGranule, kGranule, kDevice1);
  const BlockHandle on_host =
      value_of(rig_.physical.create({kGranule, BlockAttribute::kHuge, {LocationKind::kHost, 0}}));
  // The CPU of most hosts cannot look there.
  EXPECT_TRUE(is_ok(rig_.map(base + 2 * kGranule, kGranule, on_host, InitialAccess::kNone)));
}

TEST_F(MapperTest, PageFlagOfAReservationCountsWhereTheSettingsSaySo) {
  Settings settings = rig_settings();
  settings.reserve_flag = ReserveFlag::kMatch;
  MemoryRig rig(settings);
  const VirtualAddress huge =
      value_of(rig.space.reservations().reserve(kGranule, ReservedPages::kHuge, {}));
  const VirtualAddress common =
      value_of(rig.space.reservations().reserve(kGranule, ReservedPages::kCommon, {}));
  const BlockHandle huge_block = rig.create();
  const BlockHandle normal_block =
      value_of(rig.physical.create({kGranule, BlockAttribute::kNormal, kDevice0}));
  EXPECT_TRUE(fails_with(rig.map(common, kGranule, huge_block), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(rig.map(huge, kGranule, normal_block), ErrorCode::kInvalidParam));
  EXPECT_TRUE(is_ok(rig.map(huge, kGranule, huge_block)));
  EXPECT_TRUE(is_ok(rig.map(common, kGranule, normal_block)));
}

TEST_F(MapperTest, RetainGivesTheHandleBehindAMapping) {
  const VirtualAddress base = rig_.reserve(2 * kGranule);
  const BlockHandle handle = rig_.create(2 * kGranule);
  ASSERT_TRUE(is_ok(rig_.map(base, 2 * kGranule, handle)));
  EXPECT_EQ(value_of(rig_.space.mapper().retain(base)), handle);
  EXPECT_TRUE(fails_with(rig_.space.mapper().retain(base + kGranule), ErrorCode::kInvalidParam));
  EXPECT_TRUE(
      fails_with(rig_.space.mapper().retain(base + 2 * kGranule), ErrorCode::kInvalidParam));
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base)));
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_FALSE(rig_.physical.free(handle).ok());
}

TEST_F(MapperTest, OwnerHasAccessFromTheStartOrOnceGranted) {
  const VirtualAddress base = rig_.reserve(2 * kGranule);
  rig_.map_fresh(base);
  EXPECT_TRUE(value_of(rig_.space.mapper().has_access(base, kDevice0)));
  EXPECT_FALSE(value_of(rig_.space.mapper().has_access(base, kDevice1)));
  EXPECT_FALSE(value_of(rig_.space.mapper().has_access(base, kHostLocation)));

  const VirtualRange closed{base + kGranule, kGranule};
  ASSERT_TRUE(is_ok(rig_.map(closed.base, kGranule, rig_.create(), InitialAccess::kNone)));
  EXPECT_FALSE(value_of(rig_.space.mapper().has_access(closed.base, kDevice0)));
  EXPECT_FALSE(rig_.space.translation().look_up(closed.base).owner_access());
  const Location owner[] = {kDevice0};
  EXPECT_TRUE(is_ok(rig_.space.mapper().grant(closed, owner)));
  EXPECT_TRUE(value_of(rig_.space.mapper().has_access(closed.base, kDevice0)));
  EXPECT_TRUE(rig_.space.translation().look_up(closed.base).owner_access());
  EXPECT_TRUE(is_ok(rig_.transfer.set(closed.base, 1, 8, 0)));
}

TEST_F(MapperTest, GrantWantsExactlyOneMapping) {
  const VirtualAddress base = rig_.reserve(4 * kGranule);
  rig_.map_fresh(base, 2 * kGranule);
  rig_.map_fresh(base + 2 * kGranule);
  const Location peer[] = {kDevice1};
  for (const VirtualRange range :
       {VirtualRange{base, kGranule}, VirtualRange{base, 3 * kGranule},
        VirtualRange{base + kGranule, kGranule}, VirtualRange{base + 3 * kGranule, kGranule},
        VirtualRange{kGranule, kGranule}}) {
    EXPECT_TRUE(fails_with(rig_.space.mapper().grant(range, peer), ErrorCode::kInvalidParam));
  }
  EXPECT_FALSE(value_of(rig_.space.mapper().has_access(base, kDevice1)));
  EXPECT_TRUE(is_ok(rig_.space.mapper().grant({base, 2 * kGranule}, peer)));
  EXPECT_TRUE(value_of(rig_.space.mapper().has_access(base, kDevice1)));
  EXPECT_FALSE(value_of(rig_.space.mapper().has_access(base + 2 * kGranule, kDevice1)));
  EXPECT_TRUE(fails_with(rig_.space.mapper().has_access(base + kGranule, kDevice0),
                         ErrorCode::kInvalidParam));
}

TEST_F(MapperTest, PeerOfAProductWithoutPeerAccessIsNotGranted) {
  MemoryRig rig(rig_settings("200i"));
  const VirtualAddress base = rig.reserve(kGranule);
  rig.map_fresh(base);
  const Location both[] = {kDevice0, kDevice1};
  EXPECT_TRUE(
      fails_with(rig.space.mapper().grant({base, kGranule}, both), ErrorCode::kNotSupported));
  EXPECT_TRUE(value_of(rig.space.mapper().has_access(base, kDevice0)));
  EXPECT_FALSE(value_of(rig.space.mapper().has_access(base, kDevice1)));
}

TEST_F(MapperTest, BlocksBehindARangeGetAnAliasElsewhere) {
  const VirtualAddress source = rig_.reserve(3 * kGranule);
  const VirtualAddress target = rig_.reserve(3 * kGranule);
  rig_.map_fresh(source, 2 * kGranule);
  rig_.map_fresh(source + 2 * kGranule);
  ASSERT_TRUE(is_ok(rig_.transfer.set(source + kGranule, 0x21, kGranule + 1, 0)));
  EXPECT_TRUE(is_ok(rig_.space.mapper().map_alias({target, 3 * kGranule}, source)));
  EXPECT_EQ(rig_.byte_at(target), 0);
  EXPECT_EQ(rig_.byte_at(target + kGranule), 0x21);
  EXPECT_EQ(rig_.byte_at(target + 2 * kGranule), 0x21);
  EXPECT_EQ(rig_.space.translation().find(target)->range.size, 2 * kGranule);
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(source)));
  EXPECT_EQ(rig_.byte_at(target + kGranule), 0x21);
  EXPECT_EQ(rig_.charged(), 3 * kGranule);
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(target)));
  EXPECT_EQ(rig_.charged(), kGranule);
}

TEST_F(MapperTest, AliasIsRefusedForWhatIsNoWholeSourceOrTarget) {
  const VirtualAddress source = rig_.reserve(4 * kGranule);
  const VirtualAddress target = rig_.reserve(4 * kGranule);
  rig_.map_fresh(source, 2 * kGranule);
  const auto refused = [&](VirtualRange destination, VirtualAddress from) {
    return fails_with(rig_.space.mapper().map_alias(destination, from), ErrorCode::kInvalidParam);
  };
  EXPECT_TRUE(refused({target + kGranule, 2 * kGranule}, source)) << "inside a reservation";
  EXPECT_TRUE(refused({target, kGranule}, source)) << "ends inside a block";
  EXPECT_TRUE(refused({target, 2 * kGranule}, source + kGranule)) << "begins inside a block";
  EXPECT_TRUE(refused({target, 2 * kGranule}, source + 2 * kGranule)) << "nothing there";
  EXPECT_FALSE(rig_.space.translation().find(target));
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(source)));
  EXPECT_EQ(rig_.charged(), 0u);
}

TEST_F(MapperTest, AliasThatFailsHalfwayKeepsTheBlocksBefore) {
  const VirtualAddress source = rig_.reserve(2 * kGranule);
  const VirtualAddress target = rig_.reserve(2 * kGranule);
  rig_.map_fresh(source);
  EXPECT_TRUE(fails_with(rig_.space.mapper().map_alias({target, 2 * kGranule}, source),
                         ErrorCode::kInvalidParam));
  EXPECT_TRUE(rig_.space.translation().find(target));
  EXPECT_FALSE(rig_.space.translation().find(target + kGranule));
}

TEST_F(MapperTest, OneOfManyThreadsMapsAndOneUnmaps) {
  const VirtualAddress base = rig_.reserve(kGranule);
  const BlockHandle handle = rig_.create();
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> mapped{0};
    run_on_threads(3, [&](int) { mapped += rig_.map(base, kGranule, handle).ok() ? 1 : 0; });
    EXPECT_EQ(mapped, 1);
    std::atomic<int> unmapped{0};
    run_on_threads(3, [&](int) { unmapped += rig_.space.mapper().unmap(base).ok() ? 1 : 0; });
    EXPECT_EQ(unmapped, 1);
  }
  EXPECT_TRUE(is_ok(rig_.physical.free(handle)));
  EXPECT_EQ(rig_.charged(), 0u);
}

}  // namespace
}  // namespace understudy
