// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpyBatch and aclrtMemcpyBatchV2: where the elements are and where the attributes say they
// are, elements that leave their allocation, and read-only targets.
// Covers: BATCH-06, BATCH-10, BATCH-11, BATCH-13, COPY-13, GEN-09, POLICY-26.
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/batch_objects.h"

namespace understudy_test {
namespace {

class BatchLocations : public BatchTest {};
INSTANTIATE_TEST_SUITE_P(, BatchLocations, each_batch_form(), name_of_batch_form);

constexpr aclrtMemLocation kAtNumaNode = {5, ACL_MEM_LOCATION_TYPE_HOST_NUMA};

TEST_P(BatchLocations, BATCH_10_ElementOnTheWrongSideIsBlamedAndNothingMoves) {
  BatchSides sides;
  for (size_t wrong = 0; wrong < sides.slots(); ++wrong) {
    SCOPED_TRACE(wrong);
    std::vector<uint8_t> elsewhere = pattern(BatchSides::kSlot, 9);
    Batch target_on_host = sides.to_device_batch();
    target_on_host.targets[wrong] = elsewhere.data();
    Batch source_on_device = sides.to_device_batch();
    source_on_device.sources[wrong] = sides.on_device(wrong == 0 ? 1 : 0);
    Batch target_on_device = sides.to_host_batch();
    target_on_device.targets[wrong] = sides.on_device(wrong == 0 ? 1 : 0);
    Batch source_on_host = sides.to_host_batch();
    source_on_host.sources[wrong] = elsewhere.data();

    expect_inner_refusal(target_on_host.arguments(), wrong);
    expect_inner_refusal(source_on_device.arguments(), wrong);
    expect_inner_refusal(target_on_device.arguments(), wrong);
    expect_inner_refusal(source_on_host.arguments(), wrong);
    EXPECT_EQ(elsewhere, pattern(BatchSides::kSlot, 9));
    sides.expect_bytes();
  }
}

TEST_P(BatchLocations, BATCH_10_ElementThatRunsTheOtherWayIsBlamed) {
  BatchSides sides;
  Batch to_device_as_host = sides.to_device_batch();
  to_device_as_host.attributes[0] = to_host();
  Batch to_host_as_device = sides.to_host_batch();
  to_host_as_device.attributes[0] = to_device();
  expect_inner_refusal(to_device_as_host.arguments(), 0);
  expect_inner_refusal(to_host_as_device.arguments(), 0);
  sides.expect_bytes();
}

TEST_P(BatchLocations, BATCH_10_WrongDeviceIsBlamed) {
  BatchSides sides;
  for (const uint32_t id : {1u, 7u, 1000u, UINT32_MAX}) {
    SCOPED_TRACE(id);
    Batch in = sides.to_device_batch();
    in.attributes[0] = to_device(id);
    Batch out = sides.to_host_batch();
    out.attributes[0] = to_host(id);
    expect_inner_refusal(in.arguments(), 0);
    expect_inner_refusal(out.arguments(), 0);
  }
  sides.expect_bytes();
}

TEST_P(BatchLocations, BATCH_10_AttributeOfTheElementDecides) {
  BatchSides sides;
  for (size_t start = 1; start < sides.slots(); ++start) {
    SCOPED_TRACE(start);
    Batch until_the_end = sides.to_device_batch();
    until_the_end.from_element(start, to_device(1));
    expect_inner_refusal(until_the_end.arguments(), start);
    if (start + 1 == sides.slots()) continue;
    Batch for_one = sides.to_device_batch();
    for_one.from_element(start, to_host());
    for_one.from_element(start + 1, to_device());
    expect_inner_refusal(for_one.arguments(), start);
  }
  sides.expect_bytes();
}

TEST_P(BatchLocations, BATCH_10_TypesThatAreNeitherHostNorDeviceAreBlamed) {
  BatchSides sides;
  for (const int64_t type :
       {int64_t{ACL_MEM_LOCATION_TYPE_MANAGED}, int64_t{5}, int64_t{99}, int64_t{-1}}) {
    SCOPED_TRACE(type);
    const aclrtMemLocation nowhere = {0, enum_value<aclrtMemLocationType>(type)};
    for (const aclrtMemcpyBatchAttr& attribute :
         {batch_attribute(nowhere, kAtHost), batch_attribute(at_device(), nowhere)}) {
      Batch batch = sides.to_device_batch();
      batch.attributes[0] = attribute;
      expect_inner_refusal(batch.arguments(), 0);
    }
  }
  sides.expect_bytes();
}

TEST_P(BatchLocations, BATCH_10_CopyWithinTheHostIsBlamed) {
  std::vector<uint8_t> from = pattern(BatchSides::kSlot, 1);
  std::vector<uint8_t> to = pattern(BatchSides::kSlot, 2);
  const HostBlock locked(BatchSides::kSlot);
  store(locked.data(), pattern(BatchSides::kSlot, 3));
  for (void* const source : {static_cast<void*>(from.data()), locked.data()}) {
    Batch batch;
    batch.add(to.data(), source, BatchSides::kSlot);
    batch.from_element(0, batch_attribute(kAtHost, kAtHost));
    expect_inner_refusal(batch.arguments(), 0);
    batch.attributes[0] = batch_attribute(kAtHost, kAtNumaNode);
    expect_inner_refusal(batch.arguments(), 0);
  }
  EXPECT_EQ(to, pattern(BatchSides::kSlot, 2));
}

TEST_P(BatchLocations, BATCH_10_CopyWithinTheDeviceIsBlamed) {
  BatchSides sides;
  const DeviceBlock other(BatchSides::kSlot);
  copy_in(other.data(), pattern(BatchSides::kSlot, 4));
  Batch batch = sides.to_device_batch();
  batch.from_element(2, batch_attribute(at_device(), at_device()));
  batch.from_element(3, to_device());
  batch.sources[2] = other.data();
  expect_inner_refusal(batch.arguments(), 2);
  sides.expect_bytes();
}

TEST_P(BatchLocations, BATCH_10_GEN_09_NullAndFreedTargetsAreNoDeviceMemory) {
  BatchSides sides;
  DeviceBlock block(BatchSides::kSlot);
  void* const freed = block.data();
  block.free();
  for (void* const target : {static_cast<void*>(nullptr), freed}) {
    SCOPED_TRACE(target);
    Batch batch = sides.to_device_batch();
    batch.targets[3] = target;
    expect_inner_refusal(batch.arguments(), 3);
  }
  sides.expect_bytes();
}

TEST_P(BatchLocations, BATCH_10_MemoryOfAnotherDeviceNeedsItsNumber) {
  {
    const DeviceSession far(1);
    BatchSides sides;
    Batch named_right = sides.to_device_batch();
    named_right.attributes[0] = to_device(1);
    Batch named_wrong = sides.to_device_batch();
    expect_inner_refusal(named_wrong.arguments(), 0);
    sides.expect_bytes();
    expect_copied(named_right.arguments());
    for (size_t i = 0; i < sides.slots(); ++i) sides.expect_moved_to_device(i);
    sides.expect_bytes();
  }
  EXPECT_SUCCESS(aclrtSetDevice(0));
}

TEST_P(BatchLocations, BATCH_11_OrdinaryPageLockedAndRegisteredMemoryAreTheHost) {
  constexpr size_t kSize = BatchSides::kSlot;
  const DeviceBlock device(3 * kSize);
  std::vector<uint8_t> ordinary(kSize);
  const HostBlock locked(kSize);
  const OwnMemory registered(kPage);
  void* registered_at_device = nullptr;
  ASSERT_SUCCESS(
      aclrtHostRegister(registered.data(), kPage, ACL_HOST_REGISTER_MAPPED, &registered_at_device));
  void* const hosts[] = {ordinary.data(), locked.data(), registered.data()};

  for (const aclrtMemLocation host : {kAtHost, kAtNumaNode}) {
    SCOPED_TRACE(host.type);
    Batch in;
    Batch out;
    for (size_t i = 0; i < 3; ++i) {
      store(hosts[i], pattern(kSize, static_cast<uint8_t>(i + 1)));
      in.add(device.at(i * kSize), hosts[i], kSize);
      out.add(hosts[i], device.at(i * kSize), kSize);
    }
    in.from_element(0, batch_attribute(at_device(), host));
    out.from_element(0, batch_attribute(host, at_device()));
    expect_copied(in.arguments());
    for (void* const memory : hosts) memset(memory, 0, kSize);
    expect_copied(out.arguments());
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(holds(hosts[i], pattern(kSize, static_cast<uint8_t>(i + 1)))) << i;
    }
  }
  EXPECT_SUCCESS(aclrtHostUnregister(registered.data()));
}

TEST_P(BatchLocations, BATCH_11_NumbersOfHostLocationsAreNotCompared) {
  for (const uint32_t id : {0u, 1u, 77u, UINT32_MAX}) {
    for (const aclrtMemLocationType type :
         {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
      SCOPED_TRACE(testing::Message() << "type " << type << ", id " << id);
      BatchSides sides;
      Batch batch = sides.to_device_batch();
      batch.attributes[0] = batch_attribute(at_device(), {id, type});
      expect_copied(batch.arguments());
      for (size_t i = 0; i < sides.slots(); ++i) sides.expect_moved_to_device(i);
      sides.expect_bytes();
    }
  }
}

TEST_P(BatchLocations, BATCH_13_MappedMemoryIsDeviceMemoryToo) {
  const LiveMapping mapping;
  const std::vector<uint8_t> bytes = pattern(kPage, 5);
  std::vector<uint8_t> source = bytes;
  std::vector<uint8_t> target(kPage);
  Batch in;
  in.add(mapping.at(kGranule - kPage), source.data(), kPage);
  in.from_element(0, to_device());
  Batch out;
  out.add(target.data(), mapping.at(kGranule - kPage), kPage);
  out.from_element(0, to_host());
  expect_copied(in.arguments());
  expect_copied(out.arguments());
  EXPECT_TRUE(target == bytes);
}

// Offsets and sizes that end behind a block of kEscapeSize bytes, which has no padding.
struct Escape {
  size_t offset;
  size_t count;
};
constexpr size_t kEscapeSize = kNormalPage;
constexpr Escape kEscapes[] = {{0, kEscapeSize + 1}, {kEscapeSize - 1, 2}, {64, kEscapeSize}};

TEST_P(BatchLocations, BATCH_06_COPY_13_ElementThatLeavesItsAllocationIsBlamed) {
  const DeviceBlock block(kEscapeSize, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
  copy_in(block.data(), pattern(kEscapeSize, 6));
  std::vector<uint8_t> host = pattern(2 * kEscapeSize, 7);
  for (const Escape& escape : kEscapes) {
    for (size_t wrong = 0; wrong < 4; ++wrong) {
      SCOPED_TRACE(testing::Message() << escape.count << " bytes at offset " << escape.offset
                                      << ", element " << wrong);
      BatchSides sides;
      Batch in = sides.to_device_batch();
      Batch out = sides.to_host_batch();
      in.targets[wrong] = out.sources[wrong] = block.at(escape.offset);
      in.sources[wrong] = out.targets[wrong] = host.data();
      in.sizes[wrong] = out.sizes[wrong] = escape.count;
      in.rooms[wrong] = out.rooms[wrong] = escape.count;
      expect_inner_refusal(in.arguments(), wrong);
      expect_inner_refusal(out.arguments(), wrong);
      EXPECT_TRUE(copy_out(block.data(), kEscapeSize) == pattern(kEscapeSize, 6));
      EXPECT_TRUE(host == pattern(2 * kEscapeSize, 7));
    }
  }
}

TEST_P(BatchLocations, BATCH_06_COPY_13_ElementWhoseEndOverflowsIsBlamed) {
  const DeviceBlock block(kEscapeSize);
  copy_in(block.data(), pattern(kEscapeSize, 8));
  std::vector<uint8_t> host = pattern(64, 9);
  for (const size_t size : {SIZE_MAX, size_t{0} - number(block.data())}) {
    SCOPED_TRACE(size);
    Batch batch;
    batch.add(block.data(), host.data(), size);
    batch.from_element(0, to_device());
    expect_inner_refusal(batch.arguments(), 0);
    batch.targets[0] = host.data();
    batch.sources[0] = block.data();
    batch.attributes[0] = to_host();
    expect_inner_refusal(batch.arguments(), 0);
    EXPECT_TRUE(copy_out(block.data(), kEscapeSize) == pattern(kEscapeSize, 8));
  }
  EXPECT_EQ(host, pattern(64, 9));
}

TEST_P(BatchLocations, BATCH_06_POLICY_26_ReadonlyTargetIsBlamedAndKeepsItsBytes) {
  const DeviceBlock readonly(BatchSides::kSlot, ACL_MEM_ACCESS_USER_SPACE_READONLY);
  const std::vector<uint8_t> bytes = copy_out(readonly.data(), readonly.size());
  for (size_t wrong = 0; wrong < 4; ++wrong) {
    SCOPED_TRACE(wrong);
    BatchSides sides;
    Batch batch = sides.to_device_batch();
    batch.targets[wrong] = readonly.data();
    expect_batch_refused(GetParam(), ACL_ERROR_RT_NO_PERMISSION, batch.arguments(), wrong);
    EXPECT_EQ(copy_out(readonly.data(), readonly.size()), bytes);
  }
}

TEST_P(BatchLocations, BATCH_13_POLICY_26_ReadonlyBlockCanBeASource) {
  const DeviceBlock readonly(BatchSides::kSlot, ACL_MEM_ACCESS_USER_SPACE_READONLY);
  const std::vector<uint8_t> bytes = copy_out(readonly.data(), readonly.size());
  std::vector<uint8_t> target = pattern(readonly.size(), 10);
  Batch batch;
  batch.add(target.data(), readonly.data(), readonly.size());
  batch.from_element(0, to_host());
  expect_copied(batch.arguments());
  EXPECT_EQ(target, bytes);
}

}  // namespace
}  // namespace understudy_test
