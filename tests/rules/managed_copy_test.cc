// SPDX-License-Identifier: Apache-2.0
//
// Copies and sets of managed memory: it fits every direction, and work on streams keeps its order.
// Covers: ACOPY-09, ACOPY-11, ACOPY-15, BATCH-10, CMO-11, COPY-09, COPY-13, COPY2D-06, COPY2D-07,
// DESC-04, SET-08, SET-13.
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/managed_objects.h"

namespace understudy_test {
namespace {

constexpr aclrtMemcpyKind kKinds[] = {ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE,
                                      ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                      ACL_MEMCPY_DEFAULT};
constexpr auto kCaptured = ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE;
constexpr size_t kSize = Spots::kSize;

// Managed memory across the border of two granules, and memory of every other class.
class ManagedCopy : public HostMemoryTest {
 protected:
  void SetUp() override {
    HostMemoryTest::SetUp();
    block_.emplace(2 * kGranule);
    second_.emplace(kGranule);
    spots_.emplace();
    stream_.emplace();
  }
  void TearDown() override {
    stream_.reset();
    spots_.reset();
    second_.reset();
    block_.reset();
    HostMemoryTest::TearDown();
  }

  void* managed() const { return block_->at(kGranule - kSize / 2); }
  void put(const std::vector<uint8_t>& bytes) const { store(managed(), bytes); }
  bool has(const std::vector<uint8_t>& bytes) const { return holds(managed(), bytes); }
  std::vector<Spot> others() {
    std::vector<Spot> all = spots_->all();
    all.push_back({"other managed memory", Side::kHost, second_->data()});
    return all;
  }
  aclrtStream stream() const { return stream_->get(); }

 private:
  std::optional<ManagedBlock> block_;
  std::optional<ManagedBlock> second_;
  std::optional<Spots> spots_;
  std::optional<TestStream> stream_;
};

TEST_F(ManagedCopy, COPY_09_ItIsCopiedToAndFromEverything) {
  uint8_t seed = 1;
  for (const Spot& other : others()) {
    SCOPED_TRACE(other.name);
    for (const aclrtMemcpyKind kind : kKinds) {
      put(pattern(kSize, ++seed));
      EXPECT_SUCCESS(aclrtMemcpy(other.start, kSize, managed(), kSize, kind));
      EXPECT_TRUE(other.has(pattern(kSize, seed)));
      other.put(pattern(kSize, ++seed));
      EXPECT_SUCCESS(aclrtMemcpy(managed(), kSize, other.start, kSize, kind));
      EXPECT_TRUE(has(pattern(kSize, seed)));
    }
  }
}

TEST_F(ManagedCopy, ACOPY_09_ACOPY_15_EveryKindFitsAndTheCopyKeepsItsPlaceInTheStream) {
  uint8_t seed = 1;
  for (const Spot& other : others()) {
    SCOPED_TRACE(other.name);
    const bool at_once = other.side == Side::kUnregistered;  // ACOPY-07
    for (const aclrtMemcpyKind kind : kKinds) {
      SCOPED_TRACE(kind);
      for (const bool out : {true, false}) {
        const std::vector<uint8_t> before = pattern(kSize, ++seed);
        const std::vector<uint8_t> moved = pattern(kSize, ++seed);
        void* const to = out ? other.start : managed();
        const void* const from = out ? managed() : other.start;
        out ? other.put(before) : put(before);
        out ? put(before) : other.put(before);
        Gate gate(stream());
        const auto copy = [&] { return aclrtMemcpyAsync(to, kSize, from, kSize, kind, stream()); };
        if (at_once) {
          out ? put(moved) : other.put(moved);
          EXPECT_SUCCESS(while_opening(gate, copy));
        } else {
          EXPECT_SUCCESS(while_held(gate, copy));
          EXPECT_TRUE(out ? other.has(before) : has(before));
          // What is there when its turn comes.
          out ? put(moved) : other.put(moved);
          gate.open();
          EXPECT_SUCCESS(finish(stream()));
        }
        EXPECT_TRUE(out ? other.has(moved) : has(moved));
      }
    }
  }
}

TEST_F(ManagedCopy, ACOPY_11_ItIsHostEnoughToBeCapturedAndDeviceEnoughToBeATarget) {
  const DeviceBlock device(kSize);
  std::vector<uint8_t> heap = pattern(kSize, 1);
  put(pattern(kSize, 2));
  {
    Gate gate(stream());
    EXPECT_SUCCESS(while_held(gate, [&] {
      return aclrtMemcpyAsync(device.data(), kSize, managed(), kSize, kCaptured, stream());
    }));
    EXPECT_SUCCESS(while_held(gate, [&] {
      return aclrtMemcpyAsync(managed(), kSize, heap.data(), kSize, kCaptured, stream());
    }));
    put(pattern(kSize, 3));
    heap.assign(kSize, 0);
  }
  EXPECT_SUCCESS(finish(stream()));
  EXPECT_TRUE(copy_out(device.data(), kSize) == pattern(kSize, 2));
  EXPECT_TRUE(has(pattern(kSize, 1)));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpyAsync(managed(), kSize, device.data(), kSize, kCaptured, stream()));
}

TEST_F(ManagedCopy, COPY_13_ARangeThatLeavesItIsRefused) {
  const ManagedBlock block;
  std::vector<uint8_t> heap(2 * kPage, 1);
  block.bytes()[kGranule - 1] = 9;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(block.at(kGranule - kPage), 2 * kPage, heap.data(), 2 * kPage,
                           ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_EQ(block.bytes()[kGranule - 1], 9);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(heap.data(), 2 * kPage, block.at(kGranule - kPage), 2 * kPage,
                           ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_TRUE(heap == std::vector<uint8_t>(2 * kPage, 1));
}

TEST_F(ManagedCopy, SET_08_SET_13_SetsKeepTheirPlaceInTheStream) {
  put(pattern(kSize, 1));
  {
    Gate gate(stream());
    EXPECT_SUCCESS(
        while_held(gate, [&] { return aclrtMemsetAsync(managed(), kSize, 4, kSize, stream()); }));
    EXPECT_SUCCESS(while_held(
        gate, [&] { return aclrtMemsetD32Async(managed(), 8, 0x05050505, 2, stream()); }));
    EXPECT_TRUE(has(pattern(kSize, 1)));
  }
  EXPECT_SUCCESS(finish(stream()));
  std::vector<uint8_t> expected(kSize, 4);
  std::fill_n(expected.begin(), 8, uint8_t{5});
  EXPECT_TRUE(has(expected));
  EXPECT_SUCCESS(aclrtMemset(managed(), kSize, 6, kSize));
  EXPECT_SUCCESS(aclrtMemsetD32(managed(), 4, 0x07070707, 1));
  expected.assign(kSize, 6);
  std::fill_n(expected.begin(), 4, uint8_t{7});
  EXPECT_TRUE(has(expected));
}

TEST_F(ManagedCopy, COPY2D_06_COPY2D_07_RowsGoBothWays) {
  const DeviceBlock device(kSize);
  std::vector<uint8_t> heap = pattern(kSize, 1);
  copy_in(device.data(), pattern(kSize, 2));
  const auto rows_of = [](const std::vector<uint8_t>& from, std::vector<uint8_t> to) {
    for (size_t row = 0; row < 8; ++row) memcpy(&to[row * 64], &from[row * 32], 16);
    return to;
  };
  const std::vector<uint8_t> before = pattern(kSize, 3);
  for (const void* const source :
       {static_cast<const void*>(heap.data()), static_cast<const void*>(device.data())}) {
    const std::vector<uint8_t> bytes = source == heap.data() ? heap : pattern(kSize, 2);
    put(before);
    EXPECT_SUCCESS(aclrtMemcpy2d(managed(), 64, source, 32, 16, 8, ACL_MEMCPY_DEFAULT));
    EXPECT_TRUE(has(rows_of(bytes, before)));
    put(before);
    EXPECT_SUCCESS(
        aclrtMemcpy2dAsync(managed(), 64, source, 32, 16, 8, ACL_MEMCPY_DEFAULT, stream()));
    EXPECT_SUCCESS(finish(stream()));
    EXPECT_TRUE(has(rows_of(bytes, before)));
  }
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemcpy2d(managed(), 64, device.data(), 32, 16, 8, ACL_MEMCPY_DEVICE_TO_DEVICE));
}

TEST_F(ManagedCopy, BATCH_10_ItIsWhereverAnAttributeSays) {
  const DeviceBlock device(kSize);
  std::vector<uint8_t> heap = pattern(kSize, 1);
  const aclrtMemLocation host = {0, ACL_MEM_LOCATION_TYPE_HOST};
  const aclrtMemLocation on_zero = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  const aclrtMemLocation named = {0, ACL_MEM_LOCATION_TYPE_MANAGED};
  const auto copy = [&](void* to, aclrtMemLocation to_where, void* from,
                        aclrtMemLocation from_where, bool on_stream) {
    aclrtMemcpyBatchAttr attribute{};
    attribute.dstLoc = to_where;
    attribute.srcLoc = from_where;
    size_t size = kSize;
    size_t first = 0;
    size_t failed = 0;
    if (!on_stream) {
      return aclrtMemcpyBatch(&to, &size, &from, &size, 1, &attribute, &first, 1, &failed);
    }
    const aclError code = aclrtMemcpyBatchAsync(&to, &size, &from, &size, 1, &attribute, &first, 1,
                                                &failed, stream());
    return code != ACL_SUCCESS ? code : finish(stream());
  };
  for (const bool on_stream : {false, true}) {
    for (const aclrtMemLocation& as : {on_zero, named}) {
      put(pattern(kSize, 9));
      EXPECT_SUCCESS(copy(managed(), as, heap.data(), host, on_stream));
      EXPECT_TRUE(has(heap));
    }
    for (const aclrtMemLocation& as : {host, named}) {
      put(pattern(kSize, 5));
      EXPECT_SUCCESS(copy(device.data(), on_zero, managed(), as, on_stream));
      EXPECT_TRUE(copy_out(device.data(), kSize) == pattern(kSize, 5));
    }
    EXPECT_EQ(copy(managed(), host, heap.data(), host, on_stream), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(copy(device.data(), named, heap.data(), host, on_stream), ACL_ERROR_RT_PARAM_INVALID);
  }
}

TEST_F(ManagedCopy, CMO_11_DESC_04_ItIsMemoryOfEveryDevice) {
  constexpr auto kInner = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;
  EXPECT_SUCCESS(aclrtCmoAsync(managed(), kSize, ACL_RT_CMO_TYPE_PREFETCH, stream()));
  const DeviceBlock device(kSize);
  const ManagedBlock description;
  copy_in(device.data(), pattern(kSize, 6));
  EXPECT_SUCCESS(
      aclrtSetMemcpyDesc(description.data(), kInner, device.data(), managed(), kSize, nullptr));
  EXPECT_SUCCESS(aclrtMemcpyAsyncWithDesc(description.data(), kInner, stream()));
  EXPECT_SUCCESS(finish(stream()));
  EXPECT_TRUE(has(pattern(kSize, 6)));
}

}  // namespace
}  // namespace understudy_test
