// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemManagedAdvise, aclrtMemManagedGetAttr and aclrtMemManagedGetAttrs: what is refused, what
// is remembered of each part of a range, and that no byte changes. Covers: MANAGED-06 to
// MANAGED-13, MANAGED-17, MANAGED-20, MANAGED-21.
// Covers: MANAGED-06, MANAGED-07, MANAGED-08, MANAGED-09, MANAGED-10, MANAGED-11, MANAGED-12,
// MANAGED-13, MANAGED-17, MANAGED-20, MANAGED-21.
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/managed_objects.h"

namespace understudy_test {
namespace {

constexpr aclError kOuter = ACL_ERROR_INVALID_PARAM;
constexpr aclError kInner = ACL_ERROR_RT_PARAM_INVALID;
constexpr auto kSetReadMostly = ACL_MEM_ADVISE_SET_READ_MOSTLY;
constexpr auto kUnsetReadMostly = ACL_MEM_ADVISE_UNSET_READ_MOSTLY;
constexpr auto kSetPreferred = ACL_MEM_ADVISE_SET_PREFERRED_LOCATION;
constexpr auto kUnsetPreferred = ACL_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
constexpr auto kSetAccessedBy = ACL_MEM_ADVISE_SET_ACCESSED_BY;
constexpr auto kUnsetAccessedBy = ACL_MEM_ADVISE_UNSET_ACCESSED_BY;
constexpr auto kReadMostly = ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
constexpr auto kAccessedBy = ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;

constexpr size_t kSize = 4 * kGranule;

// Eight devices by default, of which the last is 7.
constexpr int32_t kNoDevice = 8;

class ManagedAdvice : public HostMemoryTest {
 protected:
  void SetUp() override {
    HostMemoryTest::SetUp();
    block_.emplace(kSize);
    store(data(), pattern(kSize, 21));
  }
  void TearDown() override {
    EXPECT_TRUE(holds(data(), pattern(kSize, 21)));  // MANAGED-08
    block_.reset();
    HostMemoryTest::TearDown();
  }

  void* data() const { return block_->data(); }
  void* at(size_t offset) const { return block_->at(offset); }
  void advise(size_t first, size_t count, aclrtMemManagedAdviseType what,
              aclrtMemManagedLocation where = nowhere()) const {
    EXPECT_SUCCESS(aclrtMemManagedAdvise(at(first * kGranule), count * kGranule, what, where));
  }

 private:
  std::optional<ManagedBlock> block_;
};

TEST_F(ManagedAdvice, MANAGED_06_BadArgumentsAreRefusedAndChangeNothing) {
  const Remembered before = remembered(data(), kSize);
  const auto refuse_outer = [&] {
    EXPECT_FAILS(kOuter, aclrtMemManagedAdvise(nullptr, kSize, kSetReadMostly, nowhere()));
    EXPECT_FAILS(kOuter, aclrtMemManagedAdvise(data(), 0, kSetReadMostly, nowhere()));
  };
  refuse_outer();
  on_bare_thread(refuse_outer);
  for (const int64_t advice : {int64_t{6}, int64_t{7}, int64_t{99}, int64_t{INT32_MAX}}) {
    EXPECT_FAILS(kInner,
                 aclrtMemManagedAdvise(data(), kSize, enum_value<aclrtMemManagedAdviseType>(advice),
                                       on_device(0)));
  }
  for (const auto advice : {kSetPreferred, kUnsetPreferred, kSetAccessedBy, kUnsetAccessedBy}) {
    for (const int32_t id : {kNoDevice, -1, 99, INT32_MAX, INT32_MIN}) {
      EXPECT_FAILS(kInner, aclrtMemManagedAdvise(data(), kSize, advice, on_device(id)));
    }
    for (const int64_t type : {5, 6, 99, -1}) {
      EXPECT_FAILS(kInner,
                   aclrtMemManagedAdvise(data(), kSize, advice,
                                         location(enum_value<aclrtMemManagedLocationType>(type))));
    }
  }
  EXPECT_EQ(remembered(data(), kSize), before);
}

TEST_F(ManagedAdvice, MANAGED_07_OnlyWholeGranulesOfManagedMemoryAreAdvised) {
  const Remembered before = remembered(data(), kSize);
  for (const size_t size : {size_t{1}, kPage, kGranule - 1, kGranule + 1, kSize - kPage}) {
    EXPECT_FAILS(kInner, aclrtMemManagedAdvise(data(), size, kSetReadMostly, nowhere()));
  }
  EXPECT_FAILS(kInner, aclrtMemManagedAdvise(data(), kSize + kGranule, kSetReadMostly, nowhere()));
  EXPECT_FAILS(kInner, aclrtMemManagedAdvise(at(kGranule), kSize, kSetReadMostly, nowhere()));
  EXPECT_FAILS(kInner, aclrtMemManagedAdvise(data(), SIZE_MAX / kGranule * kGranule, kSetReadMostly,
                                             nowhere()));
  const DeviceBlock device(kGranule);
  const HostBlock locked(kGranule);
  std::vector<uint8_t> heap(kGranule);
  void* const reserved = reserve(kGranule);
  for (void* const wrong : {device.data(), locked.data(), static_cast<void*>(heap.data()), reserved,
                            address(kGranule), address(UINT64_MAX)}) {
    EXPECT_FAILS(kInner, aclrtMemManagedAdvise(wrong, kGranule, kSetReadMostly, nowhere()));
    int32_t value = 77;
    EXPECT_FAILS(kInner,
                 aclrtMemManagedGetAttr(kReadMostly, wrong, kGranule, &value, sizeof value));
    EXPECT_EQ(value, 77);
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
  EXPECT_EQ(remembered(data(), kSize), before);
}

TEST_F(ManagedAdvice, MANAGED_08_NoContextIsNeededAndNoByteChanges) {
  on_bare_thread([&] {
    advise(0, 4, kSetReadMostly);
    advise(1, 2, kSetPreferred, on_device(3));
    advise(2, 1, kSetAccessedBy, on_host());
    EXPECT_EQ(read_mostly(data(), kSize), 1);
  });
  EXPECT_TRUE(holds(data(), pattern(kSize, 21)));
}

TEST_F(ManagedAdvice, MANAGED_09_BadQuestionsAreRefusedAndWriteNothing) {
  int32_t value = 77;
  auto attribute = kReadMostly;
  void* values[] = {&value};
  size_t size = sizeof value;
  const auto refuse_outer = [&] {
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttr(attribute, nullptr, kSize, &value, 4));
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttr(attribute, data(), 0, &value, 4));
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttr(attribute, data(), kSize, nullptr, 4));
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttrs(nullptr, 1, data(), kSize, values, &size));
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttrs(&attribute, 0, data(), kSize, values, &size));
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttrs(&attribute, 1, nullptr, kSize, values, &size));
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttrs(&attribute, 1, data(), 0, values, &size));
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttrs(&attribute, 1, data(), kSize, nullptr, &size));
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttrs(&attribute, 1, data(), kSize, values, nullptr));
    void* none[] = {nullptr};
    EXPECT_FAILS(kOuter, aclrtMemManagedGetAttrs(&attribute, 1, data(), kSize, none, &size));
  };
  refuse_outer();
  on_bare_thread(refuse_outer);
  for (const int64_t number : {0, 9, 10, 99}) {
    EXPECT_FAILS(kInner, aclrtMemManagedGetAttr(enum_value<aclrtMemManagedRangeAttribute>(number),
                                                data(), kSize, &value, 4));
  }
  for (int64_t number = 1; number <= 8; ++number) {
    const auto each = enum_value<aclrtMemManagedRangeAttribute>(number);
    for (const size_t wrong : {size_t{0}, size_t{1}, size_t{3}, size_t{5}, SIZE_MAX}) {
      EXPECT_FAILS(kInner, aclrtMemManagedGetAttr(each, data(), kSize, &value, wrong));
    }
    if (each == kAccessedBy) continue;
    EXPECT_FAILS(kInner, aclrtMemManagedGetAttr(each, data(), kSize, &value, 8));
  }
  // One bad question among good ones: none is answered.
  int32_t other = 78;
  aclrtMemManagedRangeAttribute both[] = {kReadMostly, kReadMostly};
  void* places[] = {&value, &other};
  size_t sizes[] = {4, 8};
  EXPECT_FAILS(kInner, aclrtMemManagedGetAttrs(both, 2, data(), kSize, places, sizes));
  EXPECT_EQ(value, 77);
  EXPECT_EQ(other, 78);
}

TEST_F(ManagedAdvice, MANAGED_10_MANAGED_20_ReadMostlyIsSetForTheWholeRangeOrNot) {
  EXPECT_EQ(read_mostly(data(), kSize), 0);
  // The location does not matter, not even one that does not exist.
  advise(1, 2, kSetReadMostly, on_device(99));
  EXPECT_EQ(read_mostly(data(), kSize), 0);
  EXPECT_EQ(read_mostly(at(kGranule), 2 * kGranule), 1);
  EXPECT_EQ(read_mostly(at(kGranule + 1), 2 * kGranule - 2), 1);
  EXPECT_EQ(read_mostly(at(kGranule), 2 * kGranule + 1), 0);
  EXPECT_EQ(read_mostly(at(kGranule - 1), 2), 0);
  advise(0, 1, kSetReadMostly);
  advise(3, 1, kSetReadMostly);
  EXPECT_EQ(read_mostly(data(), kSize), 1);
  advise(2, 1, kUnsetReadMostly);
  EXPECT_EQ(read_mostly(data(), kSize), 0);
  EXPECT_EQ(read_mostly(data(), 2 * kGranule), 1);
}

TEST_F(ManagedAdvice, MANAGED_11_MANAGED_13_MANAGED_21_PreferredLocationsAreNamedWhereAllAgree) {
  EXPECT_EQ(preferred(data(), kSize), kNoId);
  EXPECT_EQ(preferred_type(data(), kSize), ACL_MEM_LOCATIONTYPE_INVALID);
  advise(0, 4, kSetPreferred, on_device(7));
  EXPECT_EQ(preferred(data(), kSize), 7);
  EXPECT_EQ(preferred_type(data(), kSize), ACL_MEM_LOCATIONTYPE_DEVICE);
  EXPECT_EQ(preferred_id(data(), kSize), 7);
  advise(1, 1, kSetPreferred, on_host());
  EXPECT_EQ(preferred(data(), kSize), kNoId);
  EXPECT_EQ(preferred_type(data(), kSize), ACL_MEM_LOCATIONTYPE_INVALID);
  EXPECT_EQ(preferred(at(kGranule), kGranule), kHostId);
  EXPECT_EQ(preferred_type(at(kGranule), kGranule), ACL_MEM_LOCATIONTYPE_HOST);
  EXPECT_EQ(preferred(data(), kGranule), 7);
  EXPECT_EQ(preferred(at(2 * kGranule), 2 * kGranule), 7);
  advise(0, 4, kUnsetPreferred);
  EXPECT_EQ(preferred(data(), kSize), kNoId);
}

TEST_F(ManagedAdvice, MANAGED_11_NodesAreNamedByTheirNumber_C6) {
  advise(0, 4, kSetPreferred, on_node(0));
  EXPECT_EQ(preferred(data(), kSize), 0);
  EXPECT_EQ(preferred_type(data(), kSize), ACL_MEM_LOCATIONTYPE_HOST_NUMA);
  EXPECT_EQ(preferred_id(data(), kSize), 0);
  // Node 0 is not device 0.
  advise(0, 2, kSetPreferred, on_device(0));
  EXPECT_EQ(preferred(data(), kSize), kNoId);
  EXPECT_EQ(preferred_type(data(), kSize), ACL_MEM_LOCATIONTYPE_INVALID);
}

TEST_F(ManagedAdvice, MANAGED_12_TheListNamesWhoeverIsAdvisedForAllOfTheRange) {
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(accessed_by(data(), kSize, 2), (Ids{kNoId, kNoId}));
  advise(0, 4, kSetAccessedBy, on_device(5));
  advise(0, 4, kSetAccessedBy, on_device(1));
  advise(0, 2, kSetAccessedBy, on_device(2));
  advise(0, 4, kSetAccessedBy, on_host());
  EXPECT_EQ(accessed_by(data(), kSize, 5), (Ids{1, 5, kHostId, kNoId, kNoId}));
  EXPECT_EQ(accessed_by(data(), 2 * kGranule, 4), (Ids{1, 2, 5, kHostId}));
  // With too little room some of them.
  EXPECT_EQ(accessed_by(data(), kSize, 1), (Ids{1}));
  advise(0, 4, kUnsetAccessedBy, on_device(5));
  advise(0, 4, kUnsetAccessedBy, on_host());
  advise(0, 4, kUnsetAccessedBy, on_device(6));  // was never named
  EXPECT_EQ(accessed_by(data(), kSize, 2), (Ids{1, kNoId}));
  advise(0, 4, kSetAccessedBy, nowhere());
  EXPECT_EQ(accessed_by(data(), kSize, 2), (Ids{1, kNoId}));
}

TEST_F(ManagedAdvice, MANAGED_09_MANAGED_13_SeveralAttributesAreAnsweredAtOnce) {
  advise(0, 4, kSetReadMostly);
  advise(0, 4, kSetPreferred, on_device(4));
  advise(0, 4, kSetAccessedBy, on_device(3));
  aclrtMemManagedRangeAttribute attributes[8];
  int32_t values[8][2];
  void* places[8];
  size_t sizes[8];
  for (int i = 0; i < 8; ++i) {
    attributes[i] = enum_value<aclrtMemManagedRangeAttribute>(i + 1);
    places[i] = values[i];
    sizes[i] = attributes[i] == kAccessedBy ? 8 : 4;
  }
  EXPECT_SUCCESS(aclrtMemManagedGetAttrs(attributes, 8, data(), kSize, places, sizes));
  EXPECT_EQ(values[0][0], 1);
  EXPECT_EQ(values[1][0], 4);
  EXPECT_EQ(values[2][0], 3);
  EXPECT_EQ(values[2][1], kNoId);
  EXPECT_EQ(values[3][0], ACL_MEM_LOCATIONTYPE_DEVICE);
  EXPECT_EQ(values[4][0], 4);
  EXPECT_EQ(values[5][0], kNoId);
  EXPECT_EQ(values[6][0], ACL_MEM_LOCATIONTYPE_INVALID);
  // At an address that no number has to have.
  uint8_t bytes[5] = {};
  EXPECT_SUCCESS(aclrtMemManagedGetAttr(kReadMostly, data(), kSize, bytes + 1, 4));
  int32_t value = 0;
  memcpy(&value, bytes + 1, sizeof value);
  EXPECT_EQ(value, 1);
}

TEST_F(ManagedAdvice, MANAGED_17_IdsThatMeanNothingAreIgnored) {
  advise(0, 4, kSetPreferred, location(ACL_MEM_LOCATIONTYPE_HOST, 99));
  EXPECT_EQ(preferred(data(), kSize), kHostId);
  advise(0, 4, kSetPreferred, location(ACL_MEM_LOCATIONTYPE_INVALID, -99));
  EXPECT_EQ(preferred(data(), kSize), kNoId);
  EXPECT_EQ(preferred_type(data(), kSize), ACL_MEM_LOCATIONTYPE_INVALID);

  advise(0, 4, kSetPreferred, location(ACL_MEM_LOCATIONTYPE_HOST_NUMA_CURRENT, 99));
  EXPECT_EQ(preferred_type(data(), kSize), ACL_MEM_LOCATIONTYPE_HOST_NUMA);
  const int32_t node = preferred_id(data(), kSize);
  EXPECT_GE(node, 0);
  advise(0, 4, kSetPreferred, on_node(node));  // it exists
  for (const int32_t id : {-1, 1023, INT32_MAX, INT32_MIN}) {
    EXPECT_FAILS(kInner, aclrtMemManagedAdvise(data(), kSize, kSetPreferred, on_node(id)));
  }
  EXPECT_EQ(preferred(data(), kSize), node);
}

TEST_F(ManagedAdvice, MANAGED_10_ManyPartsAreKeptApartAndComeTogetherAgain) {
  constexpr size_t kGranules = 64;
  const ManagedBlock large(kGranules * kGranule);
  const auto advise_one = [&](size_t granule, aclrtMemManagedAdviseType what) {
    EXPECT_SUCCESS(aclrtMemManagedAdvise(large.at(granule * kGranule), kGranule, what, nowhere()));
  };
  for (size_t i = 0; i < kGranules; i += 2) advise_one(i, kSetReadMostly);
  for (size_t i = 0; i < kGranules; ++i) {
    EXPECT_EQ(read_mostly(large.at(i * kGranule), kGranule), i % 2 == 0 ? 1 : 0);
  }
  EXPECT_EQ(read_mostly(large.data(), kGranules * kGranule), 0);
  for (size_t i = 1; i < kGranules; i += 2) advise_one(i, kSetReadMostly);
  EXPECT_EQ(read_mostly(large.data(), kGranules * kGranule), 1);
}

}  // namespace
}  // namespace understudy_test
