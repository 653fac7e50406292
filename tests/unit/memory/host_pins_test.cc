// SPDX-License-Identifier: Apache-2.0
//
// What a pin keeps of page-locked host memory: the block, or the registration, as long as it holds.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "memory/hazard_pointers.h"
#include "memory/host_memory.h"
#include "platform/host_memory.h"
#include "unit/expect_result.h"
#include "unit/memory/memory_rig.h"

namespace understudy {
namespace {

constexpr uint64_t kSlotBlock = 9000;       // a slot of a slab
constexpr uint64_t kChunkBlock = 3 * kMiB;  // a chunk of its own

class HostPinsTest : public testing::Test {
 protected:
  HostMemory& host() { return rig_.host_memory; }
  VirtualAddress allocate(uint64_t size) {
    return value_of(host().allocate(size, DeviceAddress::kOwn, 0));
  }
  bool can_pin(VirtualAddress base, uint64_t size) {
    HazardPin pin;
    return host().pin({base, size}, pin);
  }
  // Gives all memory back that nobody has.
  void trim() { rig_.pools.relieve_pressure(); }
  uint64_t present() const {
    const PinnedFigures figures = rig_.host_memory.figures();
    return figures.locked + figures.unlocked;
  }

  MemoryRig rig_;
};

// Both kinds of blocks.
class HostBlockPinsTest : public HostPinsTest, public testing::WithParamInterface<uint64_t> {
 protected:
  const uint64_t size_ = GetParam();
};

INSTANTIATE_TEST_SUITE_P(SlotAndChunk, HostBlockPinsTest, testing::Values(kSlotBlock, kChunkBlock));

TEST_P(HostBlockPinsTest, AnyRangeInsideABlockCanBePinned) {
  const VirtualAddress block = allocate(size_);
  EXPECT_TRUE(can_pin(block, size_));
  EXPECT_TRUE(can_pin(block, 1));
  EXPECT_TRUE(can_pin(block + size_ - 1, 1));
  EXPECT_TRUE(can_pin(block + 5000, size_ - 5000));
  EXPECT_TRUE(is_ok(host().free(block)));
}

TEST_P(HostBlockPinsTest, RangeThatLeavesTheBlockCannot) {
  const VirtualAddress block = allocate(size_);
  const VirtualAddress neighbour = allocate(size_);
  EXPECT_FALSE(can_pin(block, size_ + 1));
  EXPECT_FALSE(can_pin(block + size_ - 1, 2));
  EXPECT_FALSE(can_pin(block + size_, 1));
  EXPECT_FALSE(can_pin(block - 1, 2));
  EXPECT_FALSE(can_pin(block + 1, UINT64_MAX - 1));
  EXPECT_TRUE(is_ok(host().free(block)));
  EXPECT_TRUE(is_ok(host().free(neighbour)));
}

TEST_P(HostBlockPinsTest, FreedBlockCannotBePinned) {
  const VirtualAddress block = allocate(size_);
  EXPECT_TRUE(is_ok(host().free(block)));
  EXPECT_FALSE(can_pin(block, size_));
  trim();
  EXPECT_FALSE(can_pin(block, size_));
}

TEST_P(HostBlockPinsTest, FreedBlockServesNobodyElseWhileItIsPinned) {
  const VirtualAddress block = allocate(size_);
  std::vector<VirtualAddress> others;
  {
    HazardPin pin;
    ASSERT_TRUE(host().pin({block, size_}, pin));
    EXPECT_TRUE(is_ok(host().free(block)));
    for (int i = 0; i < 5; ++i) {
      others.push_back(allocate(size_));
      EXPECT_NE(others.back(), block);
    }
  }
  for (const VirtualAddress other : others) EXPECT_TRUE(is_ok(host().free(other)));
}

TEST_P(HostBlockPinsTest, FreedBlockIsUsedAgainAfterThePin) {
  const VirtualAddress block = allocate(size_);
  {
    HazardPin pin;
    ASSERT_TRUE(host().pin({block, size_}, pin));
    EXPECT_TRUE(is_ok(host().free(block)));
  }
  EXPECT_EQ(allocate(size_), block);
  EXPECT_TRUE(is_ok(host().free(block)));
}

TEST_P(HostBlockPinsTest, FreedBlockStaysMappedWhileItIsPinnedWhateverRunsShort) {
  const VirtualAddress block = allocate(size_);
  {
    HazardPin pin;
    ASSERT_TRUE(host().pin({block, size_}, pin));
    EXPECT_TRUE(is_ok(host().free(block)));
    trim();
    trim();
    memset(to_pointer(block), 0x5C, size_);
    EXPECT_GT(present(), 0u);
  }
  trim();
  EXPECT_EQ(present(), 0u);
  EXPECT_EQ(rig_.host_bytes(), 0u);
}

TEST_P(HostBlockPinsTest, EveryPinCounts) {
  const VirtualAddress block = allocate(size_);
  HazardPin first;
  ASSERT_TRUE(host().pin({block, 1}, first));
  {
    HazardPin second;
    ASSERT_TRUE(host().pin({block + size_ - 1, 1}, second));
    EXPECT_TRUE(is_ok(host().free(block)));
  }
  trim();
  EXPECT_GT(present(), 0u);
  first.clear();
  trim();
  EXPECT_EQ(present(), 0u);
}

TEST_F(HostPinsTest, MemoryThatIsNotPageLockedCannotBePinned) {
  uint64_t own = 0;
  EXPECT_FALSE(can_pin(to_address(&own), sizeof own));
  EXPECT_FALSE(can_pin(0, 1));
  EXPECT_FALSE(can_pin(UINT64_MAX, 1));
}

TEST_F(HostPinsTest, PinOfOneSlotDoesNotKeepItsNeighbour) {
  const VirtualAddress pinned = allocate(kSlotBlock);
  const VirtualAddress neighbour = allocate(kSlotBlock);
  HazardPin pin;
  ASSERT_TRUE(host().pin({pinned, kSlotBlock}, pin));
  EXPECT_TRUE(is_ok(host().free(neighbour)));
  EXPECT_EQ(allocate(kSlotBlock), neighbour);
  EXPECT_TRUE(is_ok(host().free(neighbour)));
  EXPECT_TRUE(is_ok(host().free(pinned)));
}

// Memory of the program that is registered.
class RegistrationPinsTest : public HostPinsTest {
 protected:
  RegistrationPinsTest()
      : own_(value_of(platform::map_host_memory(kGranule, platform::HostPages::kSmall))) {
    EXPECT_TRUE(is_ok(host().add_registration(registered(), {.mapped = true})));
  }
  ~RegistrationPinsTest() override { platform::unmap_host_memory(own_); }
  VirtualRange registered() const { return {own_.base + kNormalPage, 4 * kNormalPage}; }

  const VirtualRange own_;
};

TEST_F(RegistrationPinsTest, RangesInsideCanBePinnedAndOthersNot) {
  const auto [base, size] = registered();
  EXPECT_TRUE(can_pin(base, size));
  EXPECT_TRUE(can_pin(base + size - 1, 1));
  EXPECT_FALSE(can_pin(base, size + 1));
  EXPECT_FALSE(can_pin(base - 1, 2));
  EXPECT_FALSE(can_pin(base + size, 1));
  EXPECT_TRUE(is_ok(host().remove_registration(base)));
  EXPECT_FALSE(can_pin(base, size));
}

TEST_F(RegistrationPinsTest, UnregisteringWaitsForThePin) {
  const VirtualAddress base = registered().base;
  std::atomic<bool> removed{false};
  std::thread remover;
  {
    HazardPin pin;
    ASSERT_TRUE(host().pin({base + 100, 10}, pin));
    remover = std::thread([&] {
      EXPECT_TRUE(is_ok(host().remove_registration(base)));
      removed.store(true);
    });
    // From here on it only waits.
    while (host().find(base)) std::this_thread::yield();
    EXPECT_FALSE(removed.load());
    EXPECT_FALSE(can_pin(base, 1));
  }
  remover.join();
}

TEST_F(RegistrationPinsTest, UnregisteringDoesNotWaitForPinsOfOthers) {
  const VirtualAddress block = allocate(kSlotBlock);
  HazardPin pin;
  ASSERT_TRUE(host().pin({block, 1}, pin));
  EXPECT_TRUE(is_ok(host().remove_registration(registered().base)));
  EXPECT_TRUE(is_ok(host().free(block)));
}

}  // namespace
}  // namespace understudy
