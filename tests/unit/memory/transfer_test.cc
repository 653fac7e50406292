// SPDX-License-Identifier: Apache-2.0
#include "memory/transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "platform/address_window.h"
#include "unit/memory/memory_rig.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

std::vector<uint8_t> pattern(uint64_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251 + 1);
  return bytes;
}

class TransferTest : public testing::Test {
 protected:
  Result<void> copy(VirtualAddress to, VirtualAddress from, uint64_t count) {
    return rig_.transfer.copy(to, from, count, 0);
  }
  Result<void> set(VirtualAddress to, uint8_t value, uint64_t count) {
    return rig_.transfer.set(to, value, count, 0);
  }

  MemoryRig rig_;
};

TEST_F(TransferTest, ColdMemoryReadsAsZerosAndStaysCold) {
  const VirtualAddress base = rig_.reserve(4 * kGranule);
  rig_.map_fresh(base, 4 * kGranule);
  const std::vector<uint8_t> bytes = rig_.read(base + 3, 3 * kGranule);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(rig_.host_bytes(), 0u);
  // Not even behind our back: a mere look through the alias of the backing file would make pages.
  HazardPin pin;
  PageEntry entry;
  const Mapping* const mapping = rig_.space.translation().pin(base, pin, entry);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(platform::bytes_behind(mapping->block->extent.backing->file()), 0u);
}

TEST_F(TransferTest, PoisonedMemoryReadsAsPoisonColdAndCommitted) {
  Settings settings = rig_settings();
  settings.poison = Poison::kOn;
  MemoryRig rig(settings);
  const VirtualAddress base = rig.reserve(2 * kGranule);
  rig.map_fresh(base, 2 * kGranule);
  EXPECT_EQ(rig.byte_at(base), BackingFile::kPoisonByte);
  EXPECT_EQ(rig.host_bytes(), 0u);
  ASSERT_TRUE(is_ok(rig.transfer.set(base + 1, 7, 1, 0)));
  EXPECT_EQ(rig.byte_at(base), BackingFile::kPoisonByte);
  EXPECT_EQ(rig.byte_at(base + 1), 7);
  EXPECT_EQ(rig.byte_at(base + kGranule), BackingFile::kPoisonByte);
}

TEST_F(TransferTest, WritesCommitTheGranulesTheyTouchAlone) {
  const VirtualAddress base = rig_.reserve(4 * kGranule);
  rig_.map_fresh(base, 4 * kGranule);
  ASSERT_TRUE(is_ok(set(base + 2 * kGranule - 1, 0x61, 2)));
  EXPECT_EQ(rig_.host_bytes(), 2 * kGranule);
  EXPECT_EQ(rig_.byte_at(base + 2 * kGranule - 2), 0);
  EXPECT_EQ(rig_.byte_at(base + 2 * kGranule - 1), 0x61);
  EXPECT_EQ(rig_.byte_at(base + 2 * kGranule), 0x61);
  EXPECT_EQ(rig_.byte_at(base + 2 * kGranule + 1), 0);
}

TEST_F(TransferTest, ReadsGoAcrossCommittedAndColdGranules) {
  const VirtualAddress base = rig_.reserve(5 * kGranule);
  rig_.map_fresh(base, 5 * kGranule);
  ASSERT_TRUE(is_ok(set(base + kGranule, 1, kGranule)));
  ASSERT_TRUE(is_ok(set(base + 3 * kGranule, 3, kGranule)));
  const std::vector<uint8_t> bytes = rig_.read(base + 9, 5 * kGranule - 9);
  for (uint64_t n = 0; n < 5; ++n) {
    const uint8_t expected = n % 2 == 1 ? static_cast<uint8_t>(n) : 0;
    EXPECT_EQ(bytes[n == 0 ? 0 : n * kGranule - 9], expected) << n;
    EXPECT_EQ(bytes[(n + 1) * kGranule - 10], expected) << n;
  }
  EXPECT_EQ(rig_.host_bytes(), 2 * kGranule);
}

TEST_F(TransferTest, RangesMaySpanMappingsOfOneReservation) {
  const VirtualAddress base = rig_.reserve(4 * kGranule);
  // Not in the order of the addresses, so that the bytes do not lie together on the host.
  rig_.map_fresh(base + 3 * kGranule);
  rig_.map_fresh(base + kGranule, 2 * kGranule);
  rig_.map_fresh(base);
  const std::vector<uint8_t> bytes = pattern(4 * kGranule - 20);
  rig_.write(base + 11, bytes);
  EXPECT_TRUE(rig_.read(base + 11, bytes.size()) == bytes);
  EXPECT_EQ(rig_.byte_at(base + 10), 0);
  EXPECT_EQ(rig_.byte_at(base + 11 + bytes.size()), 0);
  ASSERT_TRUE(is_ok(set(base + kGranule - 5, 0xAB, 2 * kGranule + 10)));
  EXPECT_EQ(rig_.byte_at(base + kGranule - 6), bytes[kGranule - 6 - 11]);
  EXPECT_EQ(rig_.byte_at(base + kGranule - 5), 0xAB);
  EXPECT_EQ(rig_.byte_at(base + 3 * kGranule + 4), 0xAB);
  EXPECT_EQ(rig_.byte_at(base + 3 * kGranule + 5), bytes[3 * kGranule + 5 - 11]);
}

TEST_F(TransferTest, CopyBetweenDeviceRangesWithDifferentBorders) {
  const VirtualAddress source = rig_.reserve(2 * kGranule);
  const VirtualAddress target = rig_.reserve(3 * kGranule);
  rig_.map_fresh(source);
  rig_.map_fresh(source + kGranule);
  rig_.map_fresh(target, 2 * kGranule);
  rig_.map_fresh(target + 2 * kGranule);
  const std::vector<uint8_t> bytes = pattern(2 * kGranule);
  rig_.write(source, bytes);
  ASSERT_TRUE(is_ok(copy(target + kGranule / 2 + 1, source, 2 * kGranule)));
  EXPECT_TRUE(rig_.read(target + kGranule / 2 + 1, 2 * kGranule) == bytes);
}

TEST_F(TransferTest, RangeThatGoesOnInAnotherReservationIsRefused) {
  // Two reservations side by side; the pools are filled first, so that the host takes no memory
  // between the look for a place and its use.
  ASSERT_TRUE(is_ok(rig_.space.reservations().release(rig_.reserve(kGranule))));
  const VirtualRange place = value_of(platform::occupy_anywhere(2 * kGiB, kGiB));
  platform::vacate(place);
  const VirtualAddress first =
      value_of(rig_.space.reservations().reserve_uncached(kGiB, place.base));
  const VirtualAddress second =
      value_of(rig_.space.reservations().reserve_uncached(kGiB, place.base + kGiB));
  rig_.map_fresh(second - kGranule);
  rig_.map_fresh(second);
  ASSERT_TRUE(is_ok(set(second - kGranule, 1, kGranule)));
  ASSERT_TRUE(is_ok(set(second, 2, kGranule)));

  std::vector<uint8_t> bytes(16, 0xEE);
  EXPECT_TRUE(fails_with(copy(to_address(bytes.data()), second - 8, 16), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(copy(second - 8, to_address(bytes.data()), 16), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(set(second - 8, 9, 16), ErrorCode::kInvalidParam));
  EXPECT_EQ(bytes, std::vector<uint8_t>(16, 0xEE));
  EXPECT_EQ(rig_.byte_at(second - 8), 1);
  EXPECT_EQ(rig_.byte_at(second), 2);

  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(second - kGranule)));
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(second)));
  ASSERT_TRUE(is_ok(rig_.space.reservations().release(first)));
  ASSERT_TRUE(is_ok(rig_.space.reservations().release(second)));
}

TEST_F(TransferTest, WholeRangeIsCheckedBeforeTheFirstByteMoves) {
  const VirtualAddress base = rig_.reserve(2 * kGranule);
  rig_.map_fresh(base);
  std::vector<uint8_t> bytes(kGranule + 1, 0x77);
  EXPECT_TRUE(
      fails_with(copy(base, to_address(bytes.data()), kGranule + 1), ErrorCode::kInvalidParam));
  EXPECT_TRUE(
      fails_with(copy(to_address(bytes.data()), base, kGranule + 1), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(set(base, 1, kGranule + 1), ErrorCode::kInvalidParam));
  EXPECT_EQ(rig_.host_bytes(), 0u);
  EXPECT_EQ(rig_.byte_at(base), 0);
  EXPECT_EQ(bytes, std::vector<uint8_t>(kGranule + 1, 0x77));
}

TEST_F(TransferTest, ReservedAndStaleAddressesAreRefused) {
  uint8_t byte = 0x77;
  const VirtualAddress base = rig_.reserve(kGranule);
  const auto expect_refused = [&](const char* why) {
    EXPECT_TRUE(fails_with(copy(to_address(&byte), base, 1), ErrorCode::kInvalidParam)) << why;
    EXPECT_TRUE(fails_with(copy(base, to_address(&byte), 1), ErrorCode::kInvalidParam)) << why;
    EXPECT_TRUE(fails_with(set(base, 0, 1), ErrorCode::kInvalidParam)) << why;
    EXPECT_EQ(byte, 0x77) << why;
  };
  expect_refused("never mapped");
  rig_.map_fresh(base);
  ASSERT_TRUE(is_ok(set(base, 1, 1)));
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base)));
  expect_refused("unmapped");
  ASSERT_TRUE(is_ok(rig_.space.reservations().release(base)));
  expect_refused("released");
}

TEST_F(TransferTest, AddressesThatNoMemoryCanHaveAreRefused) {
  uint8_t byte = 0x77;
  const VirtualAddress host = to_address(&byte);
  for (const VirtualAddress address :
       {VirtualAddress{1}, VirtualAddress{4096}, 200 * kTiB, VirtualAddress{1} << 60}) {
    EXPECT_TRUE(fails_with(copy(host, address, 1), ErrorCode::kInvalidParam))
        << std::hex << address;
    EXPECT_TRUE(fails_with(copy(address, host, 1), ErrorCode::kInvalidParam))
        << std::hex << address;
    EXPECT_TRUE(fails_with(set(address, 0, 1), ErrorCode::kInvalidParam)) << std::hex << address;
  }
  EXPECT_TRUE(fails_with(copy(host, UINT64_MAX - 3, 8), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(copy(host, host, UINT64_MAX), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(set(host, 0, UINT64_MAX), ErrorCode::kInvalidParam));
  EXPECT_EQ(byte, 0x77);
}

TEST_F(TransferTest, HostMemoryIsCopiedToHostMemory) {
  const std::vector<uint8_t> from = pattern(10000);
  std::vector<uint8_t> to(10000, 0);
  ASSERT_TRUE(is_ok(copy(to_address(to.data()), to_address(from.data()), to.size())));
  EXPECT_EQ(to, from);
  ASSERT_TRUE(is_ok(set(to_address(to.data()), 0x12, 100)));
  EXPECT_EQ(to[99], 0x12);
  EXPECT_EQ(to[100], from[100]);
}

TEST_F(TransferTest, OverlappingCopyWithinAMappingIsAMove) {
  const VirtualAddress base = rig_.reserve(2 * kGranule);
  rig_.map_fresh(base, 2 * kGranule);
  // Around the border of the granules, so that most of it is in neither.
  const VirtualAddress part = base + kGranule - 1000;
  std::vector<uint8_t> expected = pattern(2000);
  rig_.write(part, expected);
  struct Move {
    uint64_t to;
    uint64_t from;
    uint64_t count;
  };
  for (const Move& move : {Move{0, 100, 900}, Move{100, 0, 900}, Move{500, 507, 1000},
                           Move{507, 500, 1000}, Move{1, 0, 1999}, Move{13, 13, 1000}}) {
    memmove(expected.data() + move.to, expected.data() + move.from, move.count);
    ASSERT_TRUE(is_ok(copy(part + move.to, part + move.from, move.count)));
    EXPECT_TRUE(rig_.read(part, expected.size()) == expected)
        << move.count << " from " << move.from << " to " << move.to;
  }
}

TEST_F(TransferTest, MemoryWithoutAccessIsRefused) {
  const VirtualAddress base = rig_.reserve(3 * kGranule);
  ASSERT_TRUE(is_ok(rig_.map(base, 2 * kGranule, rig_.create(2 * kGranule), InitialAccess::kNone)));
  rig_.map_fresh(base + 2 * kGranule);
  uint8_t byte = 0x77;
  EXPECT_TRUE(fails_with(copy(to_address(&byte), base, 1), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(set(base + kGranule, 1, 2 * kGranule), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(set(base, 1, kGranule + 1), ErrorCode::kInvalidParam));
  EXPECT_EQ(rig_.host_bytes(), 0u);
  EXPECT_EQ(byte, 0x77);
  const Location owner[] = {kDevice0};
  ASSERT_TRUE(is_ok(rig_.space.mapper().grant({base, 2 * kGranule}, owner)));
  EXPECT_TRUE(is_ok(set(base, 1, 3 * kGranule)));
}

TEST_F(TransferTest, MemoryGrantedToAPeerAloneIsOpenForThatPeer) {
  const VirtualAddress base = rig_.reserve(kGranule);
  ASSERT_TRUE(is_ok(rig_.map(base, kGranule, rig_.create(), InitialAccess::kNone)));
  const Location peer[] = {kDevice1};
  ASSERT_TRUE(is_ok(rig_.space.mapper().grant({base, kGranule}, peer)));
  EXPECT_TRUE(fails_with(rig_.transfer.set(base, 1, 8, 0), ErrorCode::kInvalidParam));
  EXPECT_TRUE(is_ok(rig_.transfer.set(base, 1, 8, 1)));
}

TEST_F(TransferTest, MappedMemoryOfTwoDevicesIsCopiedWhereTheSettingsAllow) {
  Settings settings = rig_settings();
  for (const SyncDeviceCopy rule : {SyncDeviceCopy::kReject, SyncDeviceCopy::kAllow}) {
    settings.sync_device_copy = rule;
    MemoryRig rig(settings);
    const VirtualAddress first = rig.reserve(kGranule);
    const VirtualAddress second = rig.reserve(kGranule);
    const VirtualAddress host = rig.reserve(kGranule);
    rig.map_fresh(first, kGranule, kDevice0);
    rig.map_fresh(second, kGranule, kDevice1);
    rig.map_fresh(host, kGranule, kHostLocation);
    ASSERT_TRUE(is_ok(rig.transfer.set(first, 0x66, 8, 0)));
    if (rule == SyncDeviceCopy::kAllow) {
      EXPECT_TRUE(is_ok(rig.transfer.copy(second, first, 8, 0)));
      EXPECT_EQ(rig.byte_at(second + 7), 0x66);
    } else {
      EXPECT_TRUE(fails_with(rig.transfer.copy(second, first, 8, 0), ErrorCode::kNotSupported));
      EXPECT_EQ(rig.byte_at(second + 7), 0);
    }
    // Mapped host memory is on no device.
    EXPECT_TRUE(is_ok(rig.transfer.copy(host, first, 8, 0)));
    EXPECT_TRUE(is_ok(rig.transfer.copy(second, host, 8, 0)));
    EXPECT_EQ(rig.byte_at(second + 7), 0x66);
    ASSERT_TRUE(is_ok(rig.space.mapper().unmap(host)));
    ASSERT_TRUE(is_ok(rig.space.reservations().release(host)));
  }
}

TEST_F(TransferTest, NoHostMemoryIsAnErrorAndThereWillBeSomeLater) {
  const VirtualAddress base = rig_.reserve(kRigBudget + kGranule);
  rig_.map_fresh(base, kRigBudget + kGranule);
  EXPECT_TRUE(fails_with(set(base, 1, kRigBudget + kGranule), ErrorCode::kOutOfMemory));
  EXPECT_LE(rig_.host_bytes(), kRigBudget);
  EXPECT_EQ(rig_.byte_at(base + kRigBudget), 0);
  // What is there serves others, also if the host refuses for a moment.
  const VirtualAddress small = rig_.reserve(kGranule);
  rig_.map_fresh(small, kGranule, kDevice1);
  const PlannedFault fault(SystemCall::kCommit, 1, ENOSPC);
  EXPECT_TRUE(is_ok(set(small, 1, 8)));
  EXPECT_TRUE(fault.happened());
  EXPECT_EQ(rig_.byte_at(small), 1);
}

TEST_F(TransferTest, GiantPageIsRememberedAsCommittedOnlyAsAWhole) {
  const VirtualAddress base = rig_.reserve(kGiB);
  const BlockHandle giant =
      value_of(rig_.physical.create({kGiB, BlockAttribute::kGiant, kDevice0}));
  ASSERT_TRUE(is_ok(rig_.map(base, kGiB, giant)));
  ASSERT_TRUE(is_ok(set(base + 5 * kGranule, 1, kGranule)));
  EXPECT_FALSE(rig_.space.translation().look_up(base + 5 * kGranule).commit());
  EXPECT_EQ(rig_.byte_at(base), 0);
  EXPECT_EQ(rig_.byte_at(base + 5 * kGranule), 1);
  EXPECT_EQ(rig_.host_bytes(), kGranule);
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base)));
}

TEST_F(TransferTest, TableRemembersWhatIsCommitted) {
  const VirtualAddress base = rig_.reserve(2 * kGranule);
  rig_.map_fresh(base, 2 * kGranule);
  EXPECT_FALSE(rig_.space.translation().look_up(base).commit());
  ASSERT_TRUE(is_ok(set(base, 1, kGranule)));
  EXPECT_TRUE(rig_.space.translation().look_up(base).commit());
  EXPECT_FALSE(rig_.space.translation().look_up(base + kGranule).commit());
}

TEST_F(TransferTest, GranuleOfWhichPartsAreCommittedReadsAsWrittenAndFreshElsewhere) {
  const VirtualAddress base = rig_.reserve(2 * kGranule);
  rig_.map_fresh(base, 2 * kGranule);
  ASSERT_TRUE(is_ok(set(base + 3 * kPartBytes - 4, 0x44, 8)));
  EXPECT_EQ(rig_.host_bytes(), 2 * kPartBytes);
  EXPECT_FALSE(rig_.space.translation().look_up(base).commit());
  EXPECT_EQ(rig_.byte_at(base + 3 * kPartBytes - 5), 0);
  EXPECT_EQ(rig_.byte_at(base + 3 * kPartBytes - 4), 0x44);
  EXPECT_EQ(rig_.byte_at(base + 3 * kPartBytes + 3), 0x44);
  EXPECT_EQ(rig_.byte_at(base + 3 * kPartBytes + 4), 0);
  EXPECT_EQ(rig_.byte_at(base), 0);
  // Looks commit nothing.
  EXPECT_EQ(rig_.host_bytes(), 2 * kPartBytes);
  // The bytes are there still when the whole granule is.
  ASSERT_TRUE(is_ok(set(base + kGranule / 2, 0x55, kGranule / 2)));
  EXPECT_TRUE(rig_.space.translation().look_up(base).commit());
  EXPECT_EQ(rig_.byte_at(base + 3 * kPartBytes), 0x44);
  EXPECT_EQ(rig_.byte_at(base + kGranule - 1), 0x55);
  EXPECT_EQ(rig_.host_bytes(), kGranule);
}

TEST_F(TransferTest, PartsThatAreReadAgainAndAgainAreWorthTheGranule) {
  const VirtualAddress base = rig_.reserve(2 * kGranule);
  rig_.map_fresh(base, 2 * kGranule);
  ASSERT_TRUE(is_ok(set(base + 100, 0x44, 8)));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(rig_.byte_at(base + 100), 0x44);
  EXPECT_TRUE(rig_.space.translation().look_up(base).commit());
  EXPECT_EQ(rig_.host_bytes(), kGranule);
  // Reading what is cold commits nothing, however often.
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(rig_.byte_at(base + kGranule), 0);
  EXPECT_EQ(rig_.host_bytes(), kGranule);
}

}  // namespace
}  // namespace understudy
