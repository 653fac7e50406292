// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpy: which bytes arrive where, between all kinds of memory, and that none arrive beyond a
// mapping.
// Covers: COPY-07, COPY-08, COPY-09, COPY-11, COPY-12, COPY-13.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using Memcpy = DeviceTest;

// Somewhere bytes can be.
struct Place {
  const char* name;
  void* address;
  bool cpu_reaches_it;
};

void store(const Place& place, const std::vector<uint8_t>& bytes) {
  if (place.cpu_reaches_it) {
    memcpy(place.address, bytes.data(), bytes.size());
  } else {
    copy_in(place.address, bytes);
  }
}

std::vector<uint8_t> load(const Place& place, size_t count) {
  if (!place.cpu_reaches_it) return copy_out(place.address, count);
  std::vector<uint8_t> bytes(count);
  memcpy(bytes.data(), place.address, count);
  return bytes;
}

void expect_bytes_arrive(const Place& to, const Place& from, aclrtMemcpyKind kind, size_t count,
                         uint8_t seed) {
  SCOPED_TRACE(testing::Message() << from.name << " to " << to.name << ", kind " << kind);
  store(from, pattern(count, seed));
  store(to, pattern(count, static_cast<uint8_t>(seed + 1)));
  EXPECT_SUCCESS(aclrtMemcpy(to.address, count, from.address, count, kind));
  EXPECT_TRUE(load(to, count) == pattern(count, seed));
  EXPECT_TRUE(load(from, count) == pattern(count, seed)) << "the source changed";
}

TEST_F(Memcpy, COPY_07_CopyIsCompleteOnReturn) {
  const LiveMapping block(4 * kMiB);
  std::vector<uint8_t> host = pattern(block.size(), 21);
  copy_in(block.data(), host);
  std::fill(host.begin(), host.end(), uint8_t{0});
  EXPECT_TRUE(copy_out(block.data(), block.size()) == pattern(block.size(), 21));

  EXPECT_SUCCESS(
      aclrtMemcpy(host.data(), host.size(), block.data(), block.size(), ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_SUCCESS(aclrtMemset(block.data(), block.size(), 0, block.size()));
  EXPECT_TRUE(host == pattern(block.size(), 21));
}

TEST_F(Memcpy, COPY_08_AddressesDecideTheDirectionWhateverTheKind) {
  const LiveMapping first;
  const LiveMapping second;
  std::vector<uint8_t> one(kPage);
  std::vector<uint8_t> two(kPage);
  const std::vector<Place> places = {{"device", first.data(), false},
                                     {"other device block", second.data(), false},
                                     {"host", one.data(), true},
                                     {"other host buffer", two.data(), true}};
  uint8_t seed = 1;
  for (int kind = 0; kind <= 5; ++kind) {
    for (const Place& from : places) {
      for (const Place& to : places) {
        if (from.address == to.address) continue;
        expect_bytes_arrive(to, from, enum_value<aclrtMemcpyKind>(kind), kPage, seed++);
      }
    }
  }
}

TEST_F(Memcpy, COPY_09_AllKindsOfMemoryMayBeCombined) {
  const LiveMapping device_blocks[2];
  const LiveMapping host_blocks[2] = {LiveMapping(kGranule, host_property()),
                                      LiveMapping(kGranule, host_property())};
  std::vector<uint8_t> buffers[2] = {std::vector<uint8_t>(kPage), std::vector<uint8_t>(kPage)};
  const std::vector<Place> places = {
      {"device", device_blocks[0].data(), false}, {"device 2", device_blocks[1].data(), false},
      {"pinned", host_blocks[0].data(), true},    {"pinned 2", host_blocks[1].data(), true},
      {"ordinary", buffers[0].data(), true},      {"ordinary 2", buffers[1].data(), true},
  };
  uint8_t seed = 1;
  for (const Place& from : places) {
    for (const Place& to : places) {
      if (from.address == to.address) continue;
      expect_bytes_arrive(to, from, ACL_MEMCPY_DEFAULT, kPage, seed++);
    }
  }
}

TEST_F(Memcpy, COPY_11_AnyByteAddressAndLengthIsValidOnBothSides) {
  constexpr size_t kFrame = 4 * kPage;
  const LiveMapping device_source;
  const LiveMapping device_target;
  std::vector<uint8_t> host_source(kFrame);
  std::vector<uint8_t> host_target(kFrame);
  const Place sources[] = {{"device", device_source.at(kMiB), false},
                           {"host", host_source.data(), true}};
  const Place targets[] = {{"device", device_target.at(kMiB), false},
                           {"host", host_target.data(), true}};
  struct Piece {
    size_t to, from, count;
  };
  const Piece pieces[] = {{0, 1, 1},        {1, 0, 1},        {3, 5, 7},
                          {63, 62, 65},     {4095, 4093, 2},  {4093, 1, 4099},
                          {8191, 4097, 33}, {17, 8190, 8193}, {kFrame - 1, kFrame - 1, 1}};
  for (const Place& source : sources) {
    for (const Place& target : targets) {
      for (const Piece& piece : pieces) {
        SCOPED_TRACE(testing::Message()
                     << source.name << " + " << piece.from << " to " << target.name << " + "
                     << piece.to << ", " << piece.count << " bytes");
        const std::vector<uint8_t> from = pattern(kFrame, 31);
        std::vector<uint8_t> expected = pattern(kFrame, 77);
        store(source, from);
        store(target, expected);
        EXPECT_SUCCESS(aclrtMemcpy(at(target.address, piece.to), piece.count,
                                   at(source.address, piece.from), piece.count,
                                   ACL_MEMCPY_DEFAULT));
        std::copy_n(from.begin() + static_cast<ptrdiff_t>(piece.from), piece.count,
                    expected.begin() + static_cast<ptrdiff_t>(piece.to));
        EXPECT_TRUE(load(target, kFrame) == expected);
        EXPECT_TRUE(load(source, kFrame) == from) << "the source changed";
      }
    }
  }
}

void copy_from_device_0_to_device_1() {
  const LiveMapping near(kGranule, block_property(ACL_MEM_P2P_HUGE));
  const LiveMapping far(kGranule,
                        block_property(ACL_MEM_P2P_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  copy_in(near.data(), pattern(kPage, 41));
  EXPECT_SUCCESS(aclrtMemcpy(far.data(), kPage, near.data(), kPage, ACL_MEMCPY_DEVICE_TO_DEVICE));
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_TRUE(copy_out(far.data(), kPage) == pattern(kPage, 41));
}

TEST(MemcpyBetweenDevices, COPY_12_BytesArriveOncePeerAccessIsEnabled) {
  US_FRESH_PROCESS({"UNDERSTUDY_SYNC_D2D", "allow"});
  const DeviceSession first(0);
  ASSERT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  const DeviceSession second(1);
  ASSERT_SUCCESS(aclrtDeviceEnablePeerAccess(0, 0));
  copy_from_device_0_to_device_1();
}

TEST(MemcpyBetweenDevices, COPY_12_A3NeedsNoPeerAccess) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"}, {"UNDERSTUDY_SYNC_D2D", "allow"});
  const DeviceSession first(0);
  const DeviceSession second(1);
  copy_from_device_0_to_device_1();
}

// A copy of `count` bytes with one side in `device` must be refused and move nothing.
void expect_copies_refused(void* device, size_t count) {
  const std::vector<uint8_t> source = pattern(count, 51);
  std::vector<uint8_t> target = pattern(count, 52);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(device, count, source.data(), count, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(target.data(), count, device, count, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_TRUE(target == pattern(count, 52)) << "a refused copy wrote to the host";
}

TEST_F(Memcpy, COPY_13_RangeLeavingTheMappingIsRefusedAndMovesNothing) {
  const Bystander bystander;
  const LiveMapping& mapping = bystander.mapping();
  const struct {
    size_t offset, count;
  } ranges[] = {{0, mapping.size() + 1},
                {mapping.size() - 1, 2},
                {mapping.size() - kPage, kPage + 1},
                {mapping.size(), 1}};
  for (const auto& range : ranges) {
    SCOPED_TRACE(testing::Message() << range.count << " bytes at offset " << range.offset);
    expect_copies_refused(mapping.at(range.offset), range.count);
    bystander.expect_unchanged();
  }
}

TEST_F(Memcpy, COPY_13_RangeStartingBeforeTheMappingIsRefused) {
  void* const range = reserve(2 * kGranule);
  const aclrtDrvMemHandle block = create_block(kGranule);
  void* const mapped = at(range, kGranule);
  ASSERT_SUCCESS(aclrtMapMem(mapped, kGranule, 0, block, 0));
  copy_in(mapped, pattern(kPage, 55));

  expect_copies_refused(at(range, kGranule - 1), 2);
  EXPECT_TRUE(copy_out(mapped, kPage) == pattern(kPage, 55));

  EXPECT_SUCCESS(aclrtUnmapMem(mapped));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_F(Memcpy, COPY_13_RangeWhoseEndOverflowsIsRefused) {
  const Bystander bystander;
  void* const device = bystander.mapping().at(kPage);
  std::vector<uint8_t> host = pattern(kPage, 56);
  for (const size_t count :
       {SIZE_MAX, SIZE_MAX - kPage, size_t{0} - number(device), size_t{0} - number(device) + 1}) {
    SCOPED_TRACE(count);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(device, SIZE_MAX, host.data(), count, ACL_MEMCPY_HOST_TO_DEVICE));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(host.data(), SIZE_MAX, device, count, ACL_MEMCPY_DEVICE_TO_HOST));
  }
  EXPECT_TRUE(host == pattern(kPage, 56));
  bystander.expect_unchanged();
}

// Two reservations of one granule that touch each other, or nulls.
std::pair<void*, void*> touching_reservations() {
  for (uint64_t base = 16 * kTiB; base < 24 * kTiB; base += 64 * kGiB) {
    void* first = nullptr;
    void* second = nullptr;
    if (aclrtReserveMemAddress(&first, kGranule, 0, address(base), 0) != ACL_SUCCESS) continue;
    if (aclrtReserveMemAddress(&second, kGranule, 0, address(base + kGranule), 0) == ACL_SUCCESS) {
      return {first, second};
    }
    EXPECT_SUCCESS(aclrtReleaseMemAddress(first));
  }
  return {nullptr, nullptr};
}

TEST_F(Memcpy, COPY_13_RangeDoesNotRunOnIntoAnotherReservation) {
  const auto [first, second] = touching_reservations();
  ASSERT_NE(first, nullptr);
  const aclrtDrvMemHandle blocks[] = {create_block(kGranule), create_block(kGranule)};
  ASSERT_SUCCESS(aclrtMapMem(first, kGranule, 0, blocks[0], 0));
  ASSERT_SUCCESS(aclrtMapMem(second, kGranule, 0, blocks[1], 0));
  void* const tail = at(first, kGranule - kPage);
  copy_in(tail, pattern(kPage, 61));
  copy_in(second, pattern(kPage, 62));

  expect_copies_refused(at(first, kGranule - 8), 16);

  EXPECT_TRUE(copy_out(tail, kPage) == pattern(kPage, 61));
  EXPECT_TRUE(copy_out(second, kPage) == pattern(kPage, 62));
  for (void* const range : {first, second}) {
    EXPECT_SUCCESS(aclrtUnmapMem(range));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  }
  for (const aclrtDrvMemHandle block : blocks) EXPECT_SUCCESS(aclrtFreePhysical(block));
}

}  // namespace
}  // namespace understudy_test
