// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemGetAddressRange: from any byte of a mapping to the mapping.
// Covers: RANGE-01, RANGE-02, RANGE-03, RANGE-06, RANGE-07, RANGE-08, RANGE-09.
#include <cstddef>
#include <memory>
#include <vector>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class AddressRange : public VirtualMemoryTest {};

constexpr size_t kSizeSentinel = 0xABABAB;
void* const kBaseSentinel = address(0xABABAB);

struct Range {
  void* base = kBaseSentinel;
  size_t size = kSizeSentinel;
};

void expect_range(void* byte, void* base, size_t size) {
  SCOPED_TRACE(byte);
  Range found;
  EXPECT_SUCCESS(aclrtMemGetAddressRange(byte, &found.base, &found.size));
  EXPECT_EQ(found.base, base);
  EXPECT_EQ(found.size, size);
}

// RANGE-09: the base becomes NULL, the size stays.
void expect_no_range(void* byte) {
  SCOPED_TRACE(byte);
  Range found;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemGetAddressRange(byte, &found.base, &found.size));
  EXPECT_EQ(found.base, nullptr);
  EXPECT_EQ(found.size, kSizeSentinel);
}

TEST_F(AddressRange, RANGE_01_NullAddressIsRefused) {
  Range found;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemGetAddressRange(nullptr, &found.base, &found.size));
  EXPECT_EQ(found.base, kBaseSentinel);
  EXPECT_EQ(found.size, kSizeSentinel);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemGetAddressRange(nullptr, nullptr, nullptr));
}

TEST_F(AddressRange, RANGE_02_AtLeastOneOutputIsNeeded) {
  MappedBlock scene;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemGetAddressRange(scene.start(), nullptr, nullptr));
}

TEST_F(AddressRange, RANGE_03_OneOutputIsEnough) {
  MappedBlock scene(2 * kGranule);
  Range found;
  EXPECT_SUCCESS(aclrtMemGetAddressRange(scene.at(5), &found.base, nullptr));
  EXPECT_EQ(found.base, scene.start());
  EXPECT_EQ(found.size, kSizeSentinel);

  found = Range();
  EXPECT_SUCCESS(aclrtMemGetAddressRange(scene.at(5), nullptr, &found.size));
  EXPECT_EQ(found.size, scene.size());
  EXPECT_EQ(found.base, kBaseSentinel);
}

class AddressRangeEitherMap : public MapCallTest {};
INSTANTIATE_TEST_SUITE_P(, AddressRangeEitherMap, both_map_calls(), name_of);

TEST_P(AddressRangeEitherMap, RANGE_06_AnyByteLeadsToItsMappingNotToTheReservation) {
  for (const aclrtPhysicalMemProp& property : {block_property(), host_property()}) {
    SCOPED_TRACE(property.location.type);
    Reservation range(8 * kGranule);
    Block block(3 * kGranule, property);
    Mapping mapping(range.at(2 * kGranule), block, GetParam().call);
    for (const size_t offset :
         {size_t{0}, size_t{1}, kGranule - 1, kGranule, 2 * kGranule + 77, 3 * kGranule - 1}) {
      expect_range(at(mapping.start(), offset), mapping.start(), block.size());
    }
  }
}

TEST_F(AddressRange, RANGE_06_NeighboursAreDifferentMappings) {
  BlockRow row({kGranule, 2 * kGranule, kGranule});
  expect_range(row.at(kGranule - 1), row.start(), kGranule);
  expect_range(row.at(kGranule), row.at(kGranule), 2 * kGranule);
  expect_range(row.at(3 * kGranule - 1), row.at(kGranule), 2 * kGranule);
  expect_range(row.at(3 * kGranule), row.at(3 * kGranule), kGranule);
}

TEST_F(AddressRange, RANGE_06_EachPlaceOfABlockIsAMappingOfItsOwn) {
  MappedBlock scene;
  Reservation elsewhere(2 * kGranule);
  Mapping alias(elsewhere.at(kGranule), scene.block);
  expect_range(scene.at(10), scene.start(), kGranule);
  expect_range(at(alias.start(), 10), alias.start(), kGranule);
}

TEST_F(AddressRange, RANGE_06_GiantPagesToo) {
  MappedBlock scene(2 * kGiB, block_property(ACL_HBM_MEM_HUGE1G));
  expect_range(scene.at(kGiB + 12345), scene.start(), 2 * kGiB);
  expect_range(scene.at(2 * kGiB - 1), scene.start(), 2 * kGiB);
}

TEST_F(AddressRange, RANGE_06_ADestroyedHandleDoesNotEndTheMapping) {
  MappedBlock scene;
  scene.block.free();
  expect_range(scene.at(1), scene.start(), kGranule);
}

TEST_F(AddressRange, RANGE_07_RANGE_09_ReservedButUnmappedBytesHaveNoRange) {
  Reservation range(4 * kGranule);
  Block block;
  Mapping mapping(range.at(kGranule), block);
  for (const size_t offset :
       {size_t{0}, kGranule - 1, 2 * kGranule, 2 * kGranule + 1, 4 * kGranule - 1}) {
    expect_no_range(range.at(offset));
  }
  mapping.unmap();
  expect_no_range(mapping.start());
}

TEST_F(AddressRange, RANGE_08_RANGE_09_UnknownAddressesHaveNoRange) {
  int on_the_stack = 0;
  auto on_the_heap = std::make_unique<int>(0);
  void* released = reserve(kGranule);
  ASSERT_SUCCESS(aclrtReleaseMemAddress(released));
  const std::vector<void*> unknown = {&on_the_stack, on_the_heap.get(), released, address(1),
                                      address(~uint64_t{0})};
  for (void* byte : unknown) expect_no_range(byte);
}

TEST_F(AddressRange, RANGE_09_EachOutputAloneOnFailure) {
  Reservation range(kGranule);
  Range found;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemGetAddressRange(range.start(), &found.base, nullptr));
  EXPECT_EQ(found.base, nullptr);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemGetAddressRange(range.start(), nullptr, &found.size));
  EXPECT_EQ(found.size, kSizeSentinel);
}

}  // namespace
}  // namespace understudy_test::mapping
