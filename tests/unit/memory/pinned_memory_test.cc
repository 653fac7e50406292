// SPDX-License-Identifier: Apache-2.0
#include "memory/pinned_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "unit/expect_result.h"
#include "unit/memory/memory_rig.h"
#include "unit/platform/planned_fault.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

class PinnedMemoryTest : public testing::Test {
 protected:
  ~PinnedMemoryTest() override { pinned_.trim(); }
  VirtualAddress allocate(uint64_t size) {
    return value_of(pinned_.allocate(size, DeviceAddress::kOwn));
  }
  uint64_t present() const { return pinned_.figures().locked + pinned_.figures().unlocked; }

  Settings settings_ = rig_settings();
  BackingPools pools_{settings_, rig_server()};
  PinnedMemory pinned_{settings_, pools_};
};

TEST_F(PinnedMemoryTest, BlocksAreReadableAndWritableToTheLastByte) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{5000}, kMiB, kMiB + 1, 5 * kMiB}) {
    const VirtualAddress block = allocate(size);
    memset(to_pointer(block), 0x5C, size);
    EXPECT_EQ(static_cast<const uint8_t*>(to_pointer(block))[size - 1], 0x5C);
    EXPECT_EQ(pinned_.find(block + size - 1)->range.base, block);
    EXPECT_EQ(pinned_.find(block)->range.size, size);
    EXPECT_FALSE(pinned_.find(block + size)) << size;
    EXPECT_TRUE(pinned_.free(block));
    EXPECT_FALSE(pinned_.find(block));
  }
}

TEST_F(PinnedMemoryTest, OnlyTheStartOfALiveBlockFreesIt) {
  for (const uint64_t size : {uint64_t{9000}, 5 * kMiB}) {
    const VirtualAddress block = allocate(size);
    EXPECT_FALSE(pinned_.free(block + 1));
    EXPECT_FALSE(pinned_.free(block + kNormalPage));
    EXPECT_TRUE(pinned_.free(block));
    EXPECT_FALSE(pinned_.free(block));
  }
  EXPECT_FALSE(pinned_.free(0));
  EXPECT_FALSE(pinned_.free(UINT64_MAX));
}

TEST_F(PinnedMemoryTest, FreedChunkServesTheNextRequestOfItsSize) {
  const VirtualAddress block = allocate(5 * kMiB);
  pinned_.free(block);
  EXPECT_EQ(pinned_.figures().cached, 6 * kMiB);
  EXPECT_EQ(allocate(6 * kMiB), block);
  EXPECT_EQ(pinned_.figures().cached, 0u);
}

TEST_F(PinnedMemoryTest, CachedChunkThatWouldWasteMuchIsNotUsed) {
  const VirtualAddress block = allocate(8 * kMiB);
  pinned_.free(block);
  EXPECT_NE(allocate(2 * kMiB), block);
  EXPECT_EQ(pinned_.figures().cached, 8 * kMiB);
}

TEST_F(PinnedMemoryTest, TrimGivesWhatIsCachedBack) {
  const VirtualAddress kept = allocate(3 * kMiB);
  pinned_.free(allocate(5 * kMiB));
  pinned_.free(allocate(100));
  pinned_.trim();
  EXPECT_EQ(present(), 4 * kMiB);
  EXPECT_EQ(pinned_.figures().cached, 0u);
  EXPECT_EQ(pools_.budget().taken(), 4 * kMiB);
  EXPECT_TRUE(pinned_.free(kept));
  pinned_.trim();
  EXPECT_EQ(pools_.budget().taken(), 0u);
  EXPECT_EQ(present(), 0u);
}

TEST_F(PinnedMemoryTest, CachedMemoryThatNobodyWantsIsGivenBack) {
  const VirtualAddress kept = allocate(3 * kMiB);
  memset(to_pointer(kept), 0x21, 3 * kMiB);
  pinned_.free(allocate(5 * kMiB));
  pinned_.free(allocate(100));
  while (pinned_.give_back_idle()) {
  }
  EXPECT_EQ(present(), 4 * kMiB);
  EXPECT_EQ(pinned_.figures().cached, 0u);
  EXPECT_EQ(pools_.budget().taken(), 4 * kMiB);
  EXPECT_EQ(static_cast<const uint8_t*>(to_pointer(kept))[3 * kMiB - 1], 0x21);
  EXPECT_TRUE(pinned_.free(kept));
}

TEST_F(PinnedMemoryTest, CachedMemoryGoesBackWithoutACall) {
  pinned_.free(allocate(5 * kMiB));
  pinned_.free(allocate(100));
  while (pools_.budget().taken() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(present(), 0u);
}

TEST_F(PinnedMemoryTest, BudgetIsKeptAndCachedMemoryGivesWay) {
  const VirtualAddress all = allocate(kRigBudget);
  for (const uint64_t size : {uint64_t{1}, 2 * kMiB, UINT64_MAX, UINT64_MAX - kGranule}) {
    EXPECT_TRUE(fails_with(pinned_.allocate(size, DeviceAddress::kOwn), ErrorCode::kOutOfMemory));
  }
  EXPECT_TRUE(pinned_.free(all));
  const VirtualAddress other = allocate(kRigBudget / 2);
  EXPECT_LE(pools_.budget().taken(), kRigBudget);
  EXPECT_TRUE(pinned_.free(other));
}

TEST_F(PinnedMemoryTest, NumberOfCachedChunksIsBounded) {
  settings_.host_lock = HostLock::kBestEffort;
  BackingPools pools{[] {
                       Settings settings = rig_settings();
                       settings.host_budget = kGiB;
                       return settings;
                     }(),
                     rig_server()};
  PinnedMemory pinned(settings_, pools);
  std::vector<VirtualAddress> blocks;
  for (int i = 0; i < 70; ++i) {
    blocks.push_back(value_of(pinned.allocate(2 * kMiB, DeviceAddress::kOwn)));
  }
  for (const VirtualAddress block : blocks) EXPECT_TRUE(pinned.free(block));
  EXPECT_EQ(pinned.figures().cached, 64 * 2 * kMiB);
  EXPECT_EQ(pools.budget().taken(), 64 * 2 * kMiB);
  pinned.trim();
  EXPECT_EQ(pools.budget().taken(), 0u);
}

TEST_F(PinnedMemoryTest, LockThatFailsOnceIsTriedAgain) {
  const PlannedFault fault(SystemCall::kLock, 1, EAGAIN);
  const VirtualAddress block = allocate(3 * kMiB);
  EXPECT_TRUE(fault.happened());
  EXPECT_TRUE(pinned_.free(block));
}

TEST_F(PinnedMemoryTest, FailureToMapOrToGetPagesTakesNothing) {
  for (const SystemCall call : {SystemCall::kMapFile, SystemCall::kCommit}) {
    for (const uint64_t size : {uint64_t{100}, 3 * kMiB}) {
      {
        const PlannedFault fault(call, 1, ENOMEM);
        const Result<VirtualAddress> block = pinned_.allocate(size, DeviceAddress::kOwn);
        EXPECT_TRUE(fault.happened());
        if (block.ok()) {
          EXPECT_TRUE(pinned_.free(block.value()));  // the second try
        }
      }
      pinned_.trim();
      EXPECT_EQ(pools_.budget().taken(), 0u);
      EXPECT_EQ(present(), 0u);
    }
  }
}

TEST_F(PinnedMemoryTest, BlockRemembersWhoseAddressItHas) {
  for (const uint64_t size : {uint64_t{100}, 3 * kMiB}) {
    const VirtualAddress block = value_of(pinned_.allocate(size, DeviceAddress::kSame));
    EXPECT_EQ(pinned_.find(block)->address, DeviceAddress::kSame);
    EXPECT_TRUE(pinned_.free(block));
  }
}

}  // namespace
}  // namespace understudy
