// SPDX-License-Identifier: Apache-2.0
//
// aclrtReserveMemAddress: what may be done with reserved and with mapped ranges by copy, set and
// the CPU.
// Covers: RESV-18, RESV-20.
#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using ReservedRange = DeviceTest;

// Copies in both directions and a set over a range that has a byte without memory. What else
// could have been written stays as it was.
void expect_untouchable(void* start, size_t size) {
  std::vector<uint8_t> host(size, 0x5A);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(start, size, host.data(), size, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(host.data(), size, start, size, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(start, size, host.data(), size, ACL_MEMCPY_DEFAULT));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(start, size, 0x77, size));
  EXPECT_TRUE(host == std::vector<uint8_t>(size, 0x5A));
}

TEST_F(ReservedRange, RESV_18_UnmappedRangeIsNeitherReadNorWritten) {
  const Range range(4 * kHugePage);
  for (const size_t offset : {size_t{0}, kHugePage + 17, 4 * kHugePage - 1}) {
    SCOPED_TRACE(offset);
    expect_untouchable(range.byte(offset), 1);
  }
  expect_untouchable(range.start(), 4 * kHugePage);
}

TEST_F(ReservedRange, RESV_18_OneUnmappedByteRefusesTheWholeCopy) {
  const Range range(3 * kHugePage);
  const Block block;
  const Mapping middle(range.byte(kHugePage), block);
  const std::vector<uint8_t> bytes = pattern(kHugePage, 2);
  copy_in(middle.start(), bytes);

  expect_untouchable(middle.start(), kHugePage + 1);
  expect_untouchable(range.byte(kHugePage - 1), kHugePage);
  expect_untouchable(range.byte(kHugePage - 1), kHugePage + 2);
  expect_untouchable(range.byte(2 * kHugePage - 1), 2);
  EXPECT_TRUE(copy_out(middle.start(), bytes.size()) == bytes);
}

TEST_F(ReservedRange, RESV_18_CopyWithinTheDeviceNeedsMemoryOnBothSides) {
  const MappedBlock mapped;
  const Range empty(kHugePage);
  const std::vector<uint8_t> bytes = pattern(4 * kKiB, 3);
  copy_in(mapped.start(), bytes);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(empty.start(), kKiB, mapped.start(), kKiB, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(mapped.start(), kKiB, empty.start(), kKiB, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_TRUE(copy_out(mapped.start(), bytes.size()) == bytes);
}

TEST_F(ReservedRange, RESV_18_RangeIsUntouchableAgainAfterUnmap) {
  const Block block;
  const Range range(kHugePage);
  {
    const Mapping mapping(range.start(), block);
    expect_usable(range.start());
  }
  expect_untouchable(range.start(), kKiB);
}

TEST_F(ReservedRange, RESV_18_HostBlocksMakeNoDifference) {
  const Block block(kHugePage, block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST));
  const Range range(2 * kHugePage);
  {
    const Mapping mapping(range.start(), block);
    expect_usable(range.start());
    expect_untouchable(range.byte(kHugePage - 1), 2);
  }
  expect_untouchable(range.start(), kKiB);
  EXPECT_FALSE(cpu_can_read(range.start()));
}

TEST_F(ReservedRange, RESV_18_CpuAccessFaults) {
  const Range range(kGiB);
  for (const size_t offset : {size_t{0}, kHugePage + 5, kGiB - 1}) {
    SCOPED_TRACE(offset);
    EXPECT_FALSE(cpu_can_read(range.byte(offset)));
    EXPECT_FALSE(cpu_can_write(range.byte(offset)));
  }
}

// A mapped block on each of two devices that may reach each other.
class TwoDevices {
 public:
  TwoDevices()
      : first_(kHugePage, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 0)),
        second_(kHugePage, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1)) {
    EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
    copy_in(first_.start(), first_bytes_);
    copy_in(second_.start(), second_bytes_);
  }
  TwoDevices(const TwoDevices&) = delete;
  TwoDevices& operator=(const TwoDevices&) = delete;
  ~TwoDevices() { EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(1)); }

  void* first() const { return first_.start(); }
  void* second() const { return second_.start(); }
  const std::vector<uint8_t>& first_bytes() const { return first_bytes_; }
  const std::vector<uint8_t>& second_bytes() const { return second_bytes_; }

 private:
  const std::vector<uint8_t> first_bytes_ = pattern(64 * kKiB, 11);
  const std::vector<uint8_t> second_bytes_ = pattern(64 * kKiB, 12);
  const MappedBlock first_;
  const MappedBlock second_;
};

constexpr std::array kDeviceCopyKinds = {ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_MEMCPY_DEFAULT};

TEST_F(ReservedRange, RESV_20_SynchronousCopyBetweenDevicesIsNotSupported) {
  const TwoDevices devices;
  const size_t size = devices.first_bytes().size();
  for (const aclrtMemcpyKind kind : kDeviceCopyKinds) {
    SCOPED_TRACE(kind);
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtMemcpy(devices.second(), size, devices.first(), size, kind));
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtMemcpy(devices.first(), size, devices.second(), size, kind));
  }
  EXPECT_TRUE(copy_out(devices.first(), size) == devices.first_bytes());
  EXPECT_TRUE(copy_out(devices.second(), size) == devices.second_bytes());
}

TEST_F(ReservedRange, RESV_20_SynchronousCopyWithinADeviceWorks) {
  const MappedBlock source;
  const MappedBlock destination;
  const std::vector<uint8_t> bytes = pattern(64 * kKiB, 13);
  copy_in(source.start(), bytes);
  for (const aclrtMemcpyKind kind : kDeviceCopyKinds) {
    SCOPED_TRACE(kind);
    EXPECT_SUCCESS(aclrtMemset(destination.start(), bytes.size(), 0, bytes.size()));
    EXPECT_SUCCESS(
        aclrtMemcpy(destination.start(), bytes.size(), source.start(), bytes.size(), kind));
    EXPECT_TRUE(copy_out(destination.start(), bytes.size()) == bytes);
  }
}

TEST(ReservedRangeAllow, RESV_20_SwitchAllowsSynchronousCopyBetweenDevices) {
  US_FRESH_PROCESS({"UNDERSTUDY_SYNC_D2D", "allow"});
  const DeviceBinding binding;
  const TwoDevices devices;
  const size_t size = devices.first_bytes().size();
  EXPECT_SUCCESS(
      aclrtMemcpy(devices.second(), size, devices.first(), size, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_TRUE(copy_out(devices.second(), size) == devices.first_bytes());
}

}  // namespace
}  // namespace understudy_test::vmm
