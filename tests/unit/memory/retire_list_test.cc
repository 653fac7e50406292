// SPDX-License-Identifier: Apache-2.0
//
// A mapping that ends while a copy holds it: its capacity is free at once, its bytes stay.
#include <gtest/gtest.h>

#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include "memory/address_space.h"
#include "unit/memory/memory_rig.h"

namespace understudy {
namespace {

class RetireListTest : public testing::Test {
 protected:
  RetireListTest() : base_(rig_.reserve(2 * kGranule)) {
    rig_.map_fresh(base_);
    EXPECT_TRUE(is_ok(rig_.transfer.set(base_, 0x99, kGranule, 0)));
  }

  MemoryRig rig_;
  const VirtualAddress base_;
};

TEST_F(RetireListTest, PinnedBytesStayWhileTheCapacityIsFree) {
  HazardPin pin;
  PageEntry entry;
  ASSERT_NE(rig_.space.translation().pin(base_, pin, entry), nullptr);
  const auto* const bytes = static_cast<const uint8_t*>(to_pointer(entry.host()));
  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  EXPECT_EQ(rig_.charged(), 0u);
  EXPECT_FALSE(rig_.space.translation().find(base_));

  // Neither pressure nor a new block of the same size takes the bytes.
  EXPECT_EQ(rig_.host_bytes_in_use(), kGranule);
  rig_.map_fresh(base_);
  EXPECT_TRUE(is_ok(rig_.transfer.set(base_, 0x11, kGranule, 0)));
  EXPECT_EQ(bytes[0], 0x99);
  EXPECT_EQ(bytes[kGranule - 1], 0x99);

  pin.clear();
  rig_.space.retired().reclaim();
  EXPECT_EQ(rig_.host_bytes_in_use(), kGranule);  // that of the new block
  EXPECT_EQ(rig_.byte_at(base_), 0x11);
}

TEST_F(RetireListTest, DrainingEndsWhatIsNoLongerPinnedAndNothingElse) {
  {
    HazardPin pin;
    PageEntry entry;
    ASSERT_NE(rig_.space.translation().pin(base_, pin, entry), nullptr);
    ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
    rig_.space.retired().reclaim();
    EXPECT_EQ(rig_.host_bytes_in_use(), kGranule);
  }
  rig_.space.retired().reclaim();
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
  rig_.space.retired().reclaim();
}

TEST_F(RetireListTest, PressureEndsWhatIsNoLongerPinned) {
  {
    HazardPin pin;
    PageEntry entry;
    ASSERT_NE(rig_.space.translation().pin(base_, pin, entry), nullptr);
    ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  }
  // All of the budget, also the part that is still on the retire list.
  const VirtualAddress large = rig_.reserve(kRigBudget);
  rig_.map_fresh(large, kRigBudget, kDevice1);
  EXPECT_TRUE(is_ok(rig_.transfer.set(large, 1, kRigBudget, 1)));
  EXPECT_EQ(rig_.host_bytes(), kRigBudget);
}

TEST_F(RetireListTest, BytesThatArePinnedAreNotTakenUnderPressure) {
  HazardPin pin;
  PageEntry entry;
  ASSERT_NE(rig_.space.translation().pin(base_, pin, entry), nullptr);
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  const VirtualAddress large = rig_.reserve(kRigBudget);
  rig_.map_fresh(large, kRigBudget, kDevice1);
  EXPECT_TRUE(fails_with(rig_.transfer.set(large, 1, kRigBudget, 1), ErrorCode::kOutOfMemory));
  EXPECT_EQ(static_cast<const uint8_t*>(to_pointer(entry.host()))[0], 0x99);
}

// While another thread might read, no mapping ends at once; memory must not run out for that.
TEST_F(RetireListTest, ManyMappingsMayComeAndGoBesideAReader) {
  std::latch pinned(1);
  std::latch done(1);
  std::thread reader([&] {
    HazardPin pin;
    PageEntry entry;
    EXPECT_NE(rig_.space.translation().pin(base_, pin, entry), nullptr);
    pinned.count_down();
    done.wait();
  });
  pinned.wait();
  for (int i = 0; i < 100; ++i) {
    rig_.map_fresh(base_ + kGranule);
    ASSERT_TRUE(is_ok(rig_.transfer.set(base_ + kGranule, 1, 8, 0)));
    ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_ + kGranule)));
  }
  EXPECT_EQ(rig_.charged(), kGranule);
  rig_.space.retired().reclaim();
  EXPECT_EQ(rig_.host_bytes_in_use(), kGranule);
  done.count_down();
  reader.join();
}

TEST_F(RetireListTest, MappingWithoutAPinEndsAtOnce) {
  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
}

TEST_F(RetireListTest, PinOfAnotherMappingDoesNotHoldThisOne) {
  rig_.map_fresh(base_ + kGranule);
  HazardPin pin;
  PageEntry entry;
  ASSERT_NE(rig_.space.translation().pin(base_ + kGranule, pin, entry), nullptr);
  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  rig_.space.retired().reclaim();
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
}

TEST_F(RetireListTest, BlockThatIsMappedElsewhereSurvivesTheRetireList) {
  const BlockHandle handle = value_of(rig_.space.mapper().retain(base_));
  ASSERT_TRUE(is_ok(rig_.map(base_ + kGranule, kGranule, handle)));
  ASSERT_TRUE(is_ok(rig_.physical.free(handle)));
  {
    HazardPin pin;
    PageEntry entry;
    ASSERT_NE(rig_.space.translation().pin(base_, pin, entry), nullptr);
    ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
    EXPECT_EQ(rig_.charged(), kGranule);
  }
  rig_.space.retired().reclaim();
  EXPECT_EQ(rig_.host_bytes_in_use(), kGranule);
  EXPECT_EQ(rig_.byte_at(base_ + kGranule), 0x99);
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_ + kGranule)));
  EXPECT_EQ(rig_.charged(), 0u);
  rig_.space.retired().reclaim();
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
}

TEST_F(RetireListTest, PinFindsNothingWhereNothingIsMapped) {
  HazardPin pin;
  PageEntry entry;
  EXPECT_EQ(rig_.space.translation().pin(base_ + kGranule, pin, entry), nullptr);
  EXPECT_EQ(rig_.space.translation().pin(UINT64_MAX, pin, entry), nullptr);
}

TEST_F(RetireListTest, ReservationCanBeReleasedWhileItsMappingIsRetired) {
  HazardPin pin;
  PageEntry entry;
  ASSERT_NE(rig_.space.translation().pin(base_, pin, entry), nullptr);
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  EXPECT_TRUE(is_ok(rig_.space.reservations().release(base_)));
  EXPECT_EQ(static_cast<const uint8_t*>(to_pointer(entry.host()))[0], 0x99);
  pin.clear();
  rig_.space.retired().reclaim();
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
}

// A reader in another thread sees either the bytes of the mapping or an error, never others.
TEST_F(RetireListTest, CopyRacesWithUnmapAndReuse) {
  std::thread reader([&] {
    std::vector<uint8_t> bytes(4096);
    for (int i = 0; i < 300; ++i) {
      const Result<void> copied =
          rig_.transfer.copy(to_address(bytes.data()), base_ + 5, bytes.size(), 0);
      if (!copied.ok()) continue;
      EXPECT_TRUE(bytes.front() == 0x99 || bytes.front() == 0) << int{bytes.front()};
    }
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
    // A block for someone else, which gets the bytes of the first one as soon as they are free.
    const BlockHandle other = rig_.create();
    ASSERT_TRUE(is_ok(rig_.map(base_ + kGranule, kGranule, other)));
    ASSERT_TRUE(is_ok(rig_.transfer.set(base_ + kGranule, 0x99, 4200, 0)));
    ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_ + kGranule)));
    ASSERT_TRUE(is_ok(rig_.physical.free(other)));
    rig_.map_fresh(base_);
  }
  reader.join();
  EXPECT_EQ(rig_.charged(), kGranule);
}

}  // namespace
}  // namespace understudy
