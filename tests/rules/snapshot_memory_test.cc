// SPDX-License-Identifier: Apache-2.0
//
// Snapshot of a process: what a backup gives back, and what a restore brings again.
// Covers: SNAP-05, SNAP-16, SNAP-17, SNAP-18, SNAP-20, SNAP-21, SNAP-22, SNAP-23, SNAP-24.
#include <array>
#include <cstring>

#include "rules/snapshot_objects.h"

namespace understudy_test {
namespace {

using SnapshotMemory = SnapshotTest;

constexpr std::array kKinds = {ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_HUGE};

// Free bytes of the two pools of the current device.
std::array<size_t, 2> free_by_kind() { return {free_bytes(kKinds[0]), free_bytes(kKinds[1])}; }

TEST_F(SnapshotMemory, SNAP_05_RefusedCallsMayBeRepeated) {
  const DeviceBlock block(kMiB);
  const MemoryFigures held = memory_figures();
  EXPECT_SUCCESS(lock_process());
  for (int i = 0; i < 3; ++i) {
    expect_refused(kLockRefused, lock_process);
    expect_refused(kRestoreRefused, restore_process);
  }
  EXPECT_EQ(memory_figures(), held);
  EXPECT_SUCCESS(back_up_process());
  EXPECT_SUCCESS(unlock_process());
}

TEST_F(SnapshotMemory, SNAP_16_BackupWaitsForTheStreamsOfAllContexts) {
  const OtherContext other;
  const DeviceBlock block(kMiB);
  const TestStream stream;
  Gate gate(stream.get());
  EXPECT_SUCCESS(aclrtMemsetAsync(block.data(), kMiB, 9, kMiB, stream.get()));
  EXPECT_SUCCESS(lock_process());
  std::future<aclError> backed_up = std::async(std::launch::async, back_up_process);
  EXPECT_NE(backed_up.wait_for(std::chrono::milliseconds(1)), std::future_status::ready);
  gate.open();
  EXPECT_SUCCESS(backed_up.get());
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
  EXPECT_SUCCESS(unlock_process());
  EXPECT_EQ(copy_out(block.data(), kMiB), std::vector<uint8_t>(kMiB, 9));
}

TEST_F(SnapshotMemory, SNAP_16_AStreamThatEndsInAnErrorLetsBackupFail) {
  const DeviceBlock source(64);
  DeviceBlock target(64);
  const TestStream stream;
  Gate gate(stream.get());
  EXPECT_SUCCESS(aclrtMemcpyAsync(target.data(), 64, source.data(), 64, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                  stream.get()));
  target.free();
  EXPECT_SUCCESS(lock_process());
  const MemoryFigures held = memory_figures();
  gate.open();
  expect_refused(kBackupRefused, back_up_process);
  EXPECT_EQ(memory_figures(), held);
  expect_state(ProcessState::kLocked);
  // The error is still there for the thread that synchronises.
  EXPECT_EQ(finish(stream.get()), ACL_ERROR_RT_SYS_DMA);
  EXPECT_SUCCESS(back_up_process());
  EXPECT_SUCCESS(unlock_process());
}

// A function on a stream that waits for the lock keeps the stream, and with it the backup, from
// coming to an end: it is refused instead.
TEST_F(SnapshotMemory, SNAP_16_AHostFunctionThatIsHeldLetsBackupFail) {
  static std::promise<void> may_go_on;
  may_go_on = {};
  static aclError code = -1;
  const TestStream stream;
  EXPECT_SUCCESS(aclrtLaunchHostFunc(
      stream.get(),
      [](void*) {
        may_go_on.get_future().wait();
        code = aclrtSetDevice(0);
      },
      nullptr));
  EXPECT_SUCCESS(lock_process());
  may_go_on.set_value();
  HeldCall::wait_for(1);
  expect_refused(kBackupRefused, back_up_process);
  expect_state(ProcessState::kLocked);
  EXPECT_SUCCESS(unlock_process());
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_SUCCESS(code);
  EXPECT_SUCCESS(aclrtResetDevice(0));
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(back_up_process());
  EXPECT_SUCCESS(unlock_process());
}

// One of each kind of memory that a backup covers, and of what it leaves alone.
class Holdings {
 public:
  static constexpr size_t kNormal = 3 * kNormalPage + 64 * kKiB + kMiB;
  static constexpr size_t kHuge = 12 * kMiB;

  Holdings() {
    for (size_t i = 0; i < places().size(); ++i) {
      copy_in(places()[i], pattern(4096, static_cast<uint8_t>(i + 1)));
    }
    store(host_.data(), pattern(4096, 100));
  }
  void expect_intact() const {
    for (size_t i = 0; i < places().size(); ++i) {
      EXPECT_EQ(copy_out(places()[i], 4096), pattern(4096, static_cast<uint8_t>(i + 1))) << i;
    }
    EXPECT_TRUE(holds(host_.data(), pattern(4096, 100)));
  }

 private:
  std::vector<void*> places() const {
    return {small_.data(),  medium_.data(), large_.data(),
            cached_.data(), mapped_.data(), normal_mapped_.data()};
  }

  DeviceBlock small_{100 * kKiB / 10, ACL_MEM_MALLOC_NORMAL_ONLY};
  DeviceBlock medium_{kMiB, ACL_MEM_MALLOC_HUGE_FIRST};
  DeviceBlock large_{5 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY};
  DeviceBlock cached_{kMiB, ACL_MEM_MALLOC_HUGE_ONLY, kMallocCached};
  LiveMapping mapped_{2 * kMiB};
  LiveMapping normal_mapped_{2 * kMiB, block_property(ACL_HBM_MEM_NORMAL)};
  vmm::Block unmapped_{4 * kMiB};
  HostBlock host_{4096};
  LiveMapping host_mapped_{2 * kMiB, host_property()};
};

TEST_F(SnapshotMemory, SNAP_17_SNAP_18_SNAP_23_EverythingIsGivenBackAndComesAgain) {
  const std::array<size_t, 2> empty = free_by_kind();
  const Holdings holdings;
  const std::array<size_t, 2> held = free_by_kind();
  EXPECT_LT(held[0], empty[0]);
  EXPECT_LT(held[1], empty[1]);
  const size_t locked_before = locked_bytes();
  EXPECT_SUCCESS(lock_process());
  EXPECT_EQ(free_by_kind(), held);
  EXPECT_SUCCESS(back_up_process());
  EXPECT_EQ(free_by_kind(), empty);
  EXPECT_EQ(locked_bytes(), locked_before);
  EXPECT_SUCCESS(restore_process());
  EXPECT_EQ(free_by_kind(), held);
  EXPECT_SUCCESS(unlock_process());
  holdings.expect_intact();
}

TEST_F(SnapshotMemory, SNAP_17_OnEachDevice) {
  const size_t empty = free_bytes();
  const DeviceBlock here(20 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  {
    const DeviceBlock there(30 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
    copy_in(there.data(), pattern(kMiB, 8));
    const size_t held = free_bytes();
    EXPECT_SUCCESS(lock_process());
    EXPECT_SUCCESS(back_up_process());
    EXPECT_EQ(free_bytes(), empty);
    EXPECT_SUCCESS(unlock_process());
    EXPECT_EQ(free_bytes(), held);
    EXPECT_EQ(copy_out(there.data(), kMiB), pattern(kMiB, 8));
  }
  ASSERT_SUCCESS(aclrtResetDevice(1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  ASSERT_SUCCESS(aclrtResetDevice(0));
}

// The modules of a program keep what they have: it is theirs, wherever it is.
TEST_F(SnapshotMemory, SNAP_17_TheUsageOfModulesStays) {
  const DeviceBlock block(20 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
  const auto usage = [] {
    std::array<aclrtMemUsageInfo, 8> modules{};
    size_t count = 0;
    EXPECT_SUCCESS(aclrtGetMemUsageInfo(0, modules.data(), modules.size(), &count));
    return modules[0].curMemSize;
  };
  const uint64_t held = usage();
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(back_up_process());
  EXPECT_EQ(usage(), held);
  EXPECT_SUCCESS(unlock_process());
  EXPECT_EQ(usage(), held);
}

TEST(SnapshotStorage, SNAP_20_HostStorageTooShort) {
  US_FRESH_PROCESS({"UNDERSTUDY_BACKUP_MEMORY", "8M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  {
    const DeviceBlock large(10 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
    copy_in(large.data(), pattern(4096));
    const MemoryFigures held = memory_figures();
    EXPECT_SUCCESS(lock_process());
    expect_refused(kBackupRefused, back_up_process);
    EXPECT_EQ(memory_figures(), held);
    expect_state(ProcessState::kLocked);
    EXPECT_SUCCESS(unlock_process());
    EXPECT_EQ(copy_out(large.data(), 4096), pattern(4096));
  }
  const DeviceBlock small(8 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY, kMallocAlign32);
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(back_up_process());
  EXPECT_SUCCESS(unlock_process());
}

TEST_F(SnapshotMemory, SNAP_21_BackupsInTurn) {
  const DeviceBlock block(6 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
  const MemoryFigures held = memory_figures();
  for (uint8_t round = 1; round <= 3; ++round) {
    copy_in(block.data(), pattern(kMiB, round));
    EXPECT_SUCCESS(lock_process());
    EXPECT_SUCCESS(back_up_process());
    EXPECT_SUCCESS(restore_process());
    EXPECT_SUCCESS(back_up_process());
    EXPECT_SUCCESS(restore_process());
    EXPECT_EQ(memory_figures(), held);
    EXPECT_SUCCESS(unlock_process());
    EXPECT_EQ(copy_out(block.data(), kMiB), pattern(kMiB, round));
  }
}

// What the CPU may see of device memory is outside the contract meanwhile, and stays what it was.
TEST_F(SnapshotMemory, SNAP_22_MemoryGrantedToTheHostComesAgain) {
  const LiveMapping mapping;
  aclrtMemAccessDesc grant;
  memset(&grant, 0, sizeof grant);
  grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  grant.location = {0, ACL_MEM_LOCATION_TYPE_HOST};
  EXPECT_SUCCESS(aclrtMemSetAccess(mapping.data(), kHugePage, &grant, 1));
  memset(mapping.data(), 0x5A, 4096);
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(back_up_process());
  EXPECT_SUCCESS(restore_process());
  EXPECT_SUCCESS(unlock_process());
  EXPECT_EQ(static_cast<const uint8_t*>(mapping.data())[4095], 0x5A);
  EXPECT_EQ(copy_out(mapping.data(), 4096), std::vector<uint8_t>(4096, 0x5A));
}

TEST_F(SnapshotMemory, SNAP_23_HandlesMappingsAndRightsAreAsBefore) {
  vmm::Range range(4 * kHugePage);
  const vmm::Block block(kHugePage);
  const vmm::Mapping mapping(range.byte(0), block);
  const DeviceBlock constant(
      64, joined({ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_ACCESS_USER_SPACE_READONLY}));
  copy_in(range.byte(0), pattern(4096, 3));
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(back_up_process());
  EXPECT_SUCCESS(restore_process());
  EXPECT_SUCCESS(unlock_process());
  EXPECT_EQ(copy_out(range.byte(0), 4096), pattern(4096, 3));
  EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION, aclrtMemset(constant.data(), 64, 1, 64));
  aclrtPhysicalMemProp property{};
  EXPECT_SUCCESS(aclrtMemGetAllocationPropertiesFromHandle(block.handle(), &property));
  EXPECT_EQ(property.memAttr, ACL_HBM_MEM_HUGE);
  const vmm::Mapping again(range.byte(kHugePage), block);
  EXPECT_EQ(copy_out(range.byte(kHugePage), 4096), pattern(4096, 3));
}

TEST_F(SnapshotMemory, SNAP_24_ContextsStreamsAndEventsStayUsable) {
  aclrtContext context = nullptr;
  EXPECT_SUCCESS(aclrtGetCurrentContext(&context));
  const TestStream stream;
  const TestEvent event;
  const TestEvent later;
  const DeviceBlock block(kMiB);
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  int32_t id = 0;
  EXPECT_SUCCESS(aclrtStreamGetId(stream.get(), &id));
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(back_up_process());
  EXPECT_SUCCESS(restore_process());
  EXPECT_SUCCESS(unlock_process());
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  EXPECT_SUCCESS(aclrtQueryEventStatus(event.get(), &status));
  EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  int32_t id_after = -1;
  EXPECT_SUCCESS(aclrtStreamGetId(stream.get(), &id_after));
  EXPECT_EQ(id_after, id);
  EXPECT_SUCCESS(aclrtSetCurrentContext(context));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(stream.get(), event.get()));
  EXPECT_SUCCESS(aclrtMemsetAsync(block.data(), kMiB, 1, kMiB, stream.get()));
  EXPECT_SUCCESS(aclrtRecordEvent(later.get(), stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(copy_out(block.data(), kMiB), std::vector<uint8_t>(kMiB, 1));
}

}  // namespace
}  // namespace understudy_test
