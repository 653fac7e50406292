// SPDX-License-Identifier: Apache-2.0
//
// Copies within a device that device memory describes: their checks, when the description is read,
// and what becomes of one that is wrong by then.
// Covers: DESC-01, DESC-02, DESC-03, DESC-04, DESC-05, DESC-06, DESC-07, DESC-08, DESC-09, DESC-10,
// GEN-09.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

constexpr auto kInner = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;
constexpr size_t kDescription = 32;
constexpr size_t kBytes = 4 * kKiB;
constexpr size_t kMost = 4 * kGiB;
constexpr size_t kLargestOffset = 0xFFFFFFFFFFFF;

// Room for a description, and two blocks to copy between.
class DescribedCopies : public HostMemoryTest {
 protected:
  void SetUp() override {
    HostMemoryTest::SetUp();
    desc_.emplace(kDescription);
    source_.emplace(kBytes);
    target_.emplace(kBytes);
    copy_in(desc_->data(), pattern(kDescription, 40));
    copy_in(source_->data(), pattern(kBytes, 41));
    copy_in(target_->data(), pattern(kBytes, 42));
  }
  void TearDown() override {
    desc_.reset();
    source_.reset();
    target_.reset();
    HostMemoryTest::TearDown();
  }

  void* desc() const { return desc_->data(); }
  void* source() const { return source_->data(); }
  void* target() const { return target_->data(); }
  void expect_desc_unchanged() const {
    EXPECT_TRUE(copy_out(desc(), kDescription) == pattern(kDescription, 40));
  }
  void expect_target_unchanged() const { expect_target(42); }
  void expect_target(uint8_t seed) const {
    EXPECT_TRUE(copy_out(target(), kBytes) == pattern(kBytes, seed));
  }
  void describe(size_t count = kBytes) const {
    EXPECT_SUCCESS(aclrtSetMemcpyDesc(desc(), kInner, source(), target(), count, nullptr));
  }

 private:
  std::optional<DeviceBlock> desc_;
  std::optional<DeviceBlock> source_;
  std::optional<DeviceBlock> target_;
};

TEST_F(DescribedCopies, DESC_01_UnknownKindsAndOtherKindsAreRefused) {
  const TestStream stream;
  size_t size = 77;
  const auto expect = [&](aclError code, aclrtMemcpyKind kind) {
    SCOPED_TRACE(kind);
    EXPECT_FAILS(code, aclrtGetMemcpyDescSize(kind, &size));
    EXPECT_FAILS(code, aclrtSetMemcpyDesc(desc(), kind, source(), target(), kBytes, nullptr));
    EXPECT_FAILS(code, aclrtMemcpyAsyncWithDesc(desc(), kind, stream.get()));
  };
  for (const int64_t kind : {int64_t{8}, int64_t{9}, int64_t{99}, int64_t{INT32_MAX}}) {
    expect(ACL_ERROR_INVALID_PARAM, enum_value<aclrtMemcpyKind>(kind));
  }
  for (const int64_t kind : {0, 1, 2, 3, 4, 5, 7}) {
    expect(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, enum_value<aclrtMemcpyKind>(kind));
  }
  EXPECT_EQ(size, 77u);
  EXPECT_SUCCESS(finish(stream.get()));
  expect_desc_unchanged();
  expect_target_unchanged();
}

TEST_F(DescribedCopies, DESC_02_TheSizeIsThirtyTwo) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemcpyDescSize(kInner, nullptr));
  size_t size = 0;
  EXPECT_SUCCESS(aclrtGetMemcpyDescSize(kInner, &size));
  EXPECT_EQ(size, kDescription);
  on_bare_thread([] {  // a number needs no context
    size_t again = 0;
    EXPECT_SUCCESS(aclrtGetMemcpyDescSize(kInner, &again));
    EXPECT_EQ(again, kDescription);
  });
}

TEST_F(DescribedCopies, DESC_03_NullZeroAndAConfigurationAreRefusedFirst) {
  int config = 0;
  const auto refuse = [&] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtSetMemcpyDesc(nullptr, kInner, source(), target(), kBytes, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtSetMemcpyDesc(desc(), kInner, nullptr, target(), kBytes, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtSetMemcpyDesc(desc(), kInner, source(), nullptr, kBytes, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtSetMemcpyDesc(desc(), kInner, source(), target(), 0, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtSetMemcpyDesc(desc(), kInner, source(), target(), kBytes, &config));
  };
  refuse();
  on_bare_thread(refuse);
  expect_desc_unchanged();
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL,
                 aclrtSetMemcpyDesc(desc(), kInner, source(), target(), kBytes, nullptr));
  });
  expect_desc_unchanged();
}

TEST_F(DescribedCopies, DESC_04_TheDescriptionIsAlignedDeviceMemory) {
  const HostBlock locked(64);
  store(locked.data(), pattern(64, 43));
  alignas(64) uint8_t on_stack[64] = {};
  DeviceBlock block(kDescription);
  void* const freed = block.data();
  block.free();
  const TestStream stream;
  for (void* const wrong : {at(desc(), 32), at(desc(), 8), at(desc(), 1), locked.data(),
                            static_cast<void*>(on_stack), freed, address(64)}) {
    SCOPED_TRACE(wrong);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtSetMemcpyDesc(wrong, kInner, source(), target(), kBytes, nullptr));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpyAsyncWithDesc(wrong, kInner, stream.get()));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(holds(locked.data(), pattern(64, 43)));
  expect_desc_unchanged();
  expect_target_unchanged();
}

TEST_F(DescribedCopies, DESC_04_BothSidesAreMemoryOfTheSameDevice) {
  const HostBlock locked(kBytes);
  std::vector<uint8_t> heap(kBytes);
  void* const reserved = reserve(kGranule);
  void* elsewhere = nullptr;
  {
    const DeviceSession other(1);
    EXPECT_SUCCESS(aclrtMalloc(&elsewhere, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_SUCCESS(aclrtSetDevice(0));
    for (void* const wrong :
         {locked.data(), static_cast<void*>(heap.data()), reserved, elsewhere, address(4096)}) {
      SCOPED_TRACE(wrong);
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                   aclrtSetMemcpyDesc(desc(), kInner, wrong, target(), kBytes, nullptr));
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                   aclrtSetMemcpyDesc(desc(), kInner, source(), wrong, kBytes, nullptr));
    }
    expect_desc_unchanged();
  }
  EXPECT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

TEST_F(DescribedCopies, DESC_04_FourGibibytesAreTheMost) {
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtSetMemcpyDesc(desc(), kInner, source(), target(), kMost + 1, nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtSetMemcpyDesc(desc(), kInner, source(), target(), SIZE_MAX, nullptr));
  expect_desc_unchanged();
  describe(kMost);  // what is there is found out when the copy is made
  const TestStream stream;
  EXPECT_SUCCESS(aclrtMemcpyAsyncWithDesc(desc(), kInner, stream.get()));
  expect_task_failed(stream.get(), target());
  expect_target_unchanged();
}

TEST_F(DescribedCopies, DESC_05_ADescriptionIsUsedAnyNumberOfTimes) {
  const TestStream stream;
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(while_held(gate, [&] {  // not behind what the stream does
      return aclrtSetMemcpyDesc(desc(), kInner, source(), target(), kBytes, nullptr);
    }));
  }
  for (const uint8_t seed : {uint8_t{50}, uint8_t{51}, uint8_t{52}}) {
    copy_in(source(), pattern(kBytes, seed));
    EXPECT_SUCCESS(aclrtMemcpyAsyncWithDesc(desc(), kInner, stream.get()));
    EXPECT_SUCCESS(finish(stream.get()));
    expect_target(seed);
  }
}

TEST_F(DescribedCopies, DESC_06_NullIsNoDescriptionAndNoStream) {
  describe();
  const TestStream stream;
  const auto refuse = [&] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpyAsyncWithDesc(nullptr, kInner, stream.get()));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpyAsyncWithDesc(desc(), kInner, nullptr));
  };
  refuse();
  on_bare_thread(refuse);
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMemcpyAsyncWithDesc(desc(), kInner, stream.get()));
  });
  BadStreams().expect_refused("aclrtMemcpyAsyncWithDesc", [&](aclrtStream bad) {
    return aclrtMemcpyAsyncWithDesc(desc(), kInner, bad);
  });
  EXPECT_SUCCESS(finish(stream.get()));
  expect_target_unchanged();
}

TEST_F(DescribedCopies, DESC_07_TheCopyIsMadeInStreamOrderFromTheDescriptionOfThatMoment) {
  describe();
  const DeviceBlock later(kBytes);
  copy_in(later.data(), pattern(kBytes, 60));
  const TestStream stream;
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(
        while_held(gate, [&] { return aclrtMemcpyAsyncWithDesc(desc(), kInner, stream.get()); }));
    EXPECT_SUCCESS(aclrtMemsetAsync(target(), 1, 7, 1, stream.get()));
    expect_target_unchanged();
    EXPECT_SUCCESS(aclrtSetMemcpyDesc(desc(), kInner, later.data(), target(), kBytes, nullptr));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  std::vector<uint8_t> expected = pattern(kBytes, 60);
  expected[0] = 7;
  EXPECT_TRUE(copy_out(target(), kBytes) == expected);
}

TEST_F(DescribedCopies, DESC_07_GEN_09_WhateverIsThereInsteadFailsOnTheStream) {
  const TestStream stream;
  // Bytes that no call described.
  EXPECT_SUCCESS(aclrtMemcpyAsyncWithDesc(desc(), kInner, stream.get()));
  expect_task_failed(stream.get(), desc());
  // A description whose addresses were changed to the host's.
  std::vector<uint8_t> heap = pattern(kBytes, 61);
  describe();
  std::vector<uint8_t> bytes = copy_out(desc(), kDescription);
  const uint64_t wanted = number(target());
  const uint64_t host = number(heap.data());
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    if (memcmp(bytes.data() + i, &wanted, 8) == 0) memcpy(bytes.data() + i, &host, 8);
  }
  copy_in(desc(), bytes);
  EXPECT_SUCCESS(aclrtMemcpyAsyncWithDesc(desc(), kInner, stream.get()));
  expect_task_failed(stream.get(), heap.data());
  EXPECT_TRUE(heap == pattern(kBytes, 61));
  // Memory that was freed after it was described, and a description that was.
  DeviceBlock gone(kBytes);
  EXPECT_SUCCESS(aclrtSetMemcpyDesc(desc(), kInner, gone.data(), target(), kBytes, nullptr));
  gone.free();
  EXPECT_SUCCESS(aclrtMemcpyAsyncWithDesc(desc(), kInner, stream.get()));
  expect_task_failed(stream.get());
  DeviceBlock lost(kDescription);
  EXPECT_SUCCESS(aclrtSetMemcpyDesc(lost.data(), kInner, source(), target(), kBytes, nullptr));
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtMemcpyAsyncWithDesc(lost.data(), kInner, stream.get()));
    lost.free();
  }
  expect_task_failed(stream.get());
  expect_target_unchanged();
}

// ---- Offsets ----

// Two cells with addresses, and what they name.
class OffsetCopies : public HostMemoryTest {
 protected:
  static constexpr size_t kRoom = 2 * kBytes;

  void SetUp() override {
    HostMemoryTest::SetUp();
    cells_.emplace(64);
    source_.emplace(kRoom);
    target_.emplace(kRoom);
    point_to(source_->data(), target_->data());
    copy_in(source_->data(), pattern(kRoom, 44));
    copy_in(target_->data(), pattern(kRoom, 45));
  }
  void TearDown() override {
    cells_.reset();
    source_.reset();
    target_.reset();
    HostMemoryTest::TearDown();
  }

  void point_to(const void* from, const void* to) const {
    const uint64_t addresses[] = {number(from), number(to)};
    std::vector<uint8_t> bytes(sizeof addresses);
    memcpy(bytes.data(), addresses, sizeof addresses);
    copy_in(cells_->data(), bytes);
  }
  const void** src() const { return static_cast<const void**>(cells_->data()); }
  void** dst() const { return static_cast<void**>(cells_->at(8)); }
  void* source() const { return source_->data(); }
  void* target() const { return target_->data(); }
  void expect_target_unchanged() const {
    EXPECT_TRUE(copy_out(target(), kRoom) == pattern(kRoom, 45));
  }

 private:
  std::optional<DeviceBlock> cells_;
  std::optional<DeviceBlock> source_;
  std::optional<DeviceBlock> target_;
};

TEST_F(OffsetCopies, DESC_08_NothingToCopyIsASuccess) {
  const auto nothing = enum_value<aclrtMemcpyKind>(99);
  EXPECT_SUCCESS(aclrtMemcpyAsyncWithOffset(nullptr, 0, 9, nullptr, 0, 9, nothing, nullptr));
  on_bare_thread([&] {
    EXPECT_SUCCESS(aclrtMemcpyAsyncWithOffset(nullptr, 0, 9, nullptr, 0, 9, nothing, nullptr));
  });
}

TEST_F(OffsetCopies, DESC_08_NullAndOtherKindsAreRefused) {
  const TestStream stream;
  const auto refuse_null = [&] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtMemcpyAsyncWithOffset(nullptr, kRoom, 0, src(), 1, 0, kInner, stream.get()));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtMemcpyAsyncWithOffset(dst(), kRoom, 0, nullptr, 1, 0, kInner, stream.get()));
  };
  refuse_null();
  on_bare_thread(refuse_null);
  for (const int64_t kind : {0, 1, 2, 3, 4, 5, 7, 8, 99}) {
    SCOPED_TRACE(kind);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpyAsyncWithOffset(dst(), kRoom, 0, src(), 1, 0,
                                            enum_value<aclrtMemcpyKind>(kind), stream.get()));
  }
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL,
                 aclrtMemcpyAsyncWithOffset(dst(), kRoom, 0, src(), 1, 0, kInner, stream.get()));
  });
  BadStreams().expect_refused("aclrtMemcpyAsyncWithOffset", [&](aclrtStream bad) {
    return aclrtMemcpyAsyncWithOffset(dst(), kRoom, 0, src(), 1, 0, kInner, bad);
  });
  EXPECT_SUCCESS(finish(stream.get()));
  expect_target_unchanged();
}

TEST_F(OffsetCopies, DESC_09_TheCellsAreReadWhenTheTaskRuns) {
  const DeviceBlock other(kRoom);
  copy_in(other.data(), pattern(kRoom, 46));
  for (const bool on_default : {false, true}) {
    copy_in(target(), pattern(kRoom, 45));
    point_to(source(), other.data());
    const TestStream stream;
    const aclrtStream used = on_default ? nullptr : stream.get();
    {
      Gate gate(used);
      EXPECT_SUCCESS(while_held(gate, [&] {
        return aclrtMemcpyAsyncWithOffset(dst(), kRoom, 100, src(), kBytes, 7, kInner, used);
      }));
      point_to(source(), target());
      expect_target_unchanged();
    }
    EXPECT_SUCCESS(finish(used));
    std::vector<uint8_t> expected = pattern(kRoom, 45);
    const std::vector<uint8_t> moved = pattern(kRoom, 44);
    std::copy_n(moved.begin() + 7, kBytes, expected.begin() + 100);
    EXPECT_TRUE(copy_out(target(), kRoom) == expected);
    EXPECT_TRUE(copy_out(other.data(), kRoom) == pattern(kRoom, 46));
  }
}

TEST_F(OffsetCopies, DESC_09_GEN_09_OnlyDeviceMemoryIsMeant) {
  const TestStream stream;
  void* cells[2] = {source(), target()};
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpyAsyncWithOffset(&cells[1], kRoom, 0, src(), 1, 0, kInner, stream.get()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpyAsyncWithOffset(dst(), kRoom, 0, const_cast<const void**>(&cells[0]), 1,
                                          0, kInner, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  // What the cells hold is another matter, known when the task runs.
  std::vector<uint8_t> heap = pattern(kRoom, 47);
  DeviceBlock block(kBytes);
  void* const freed = block.data();
  block.free();
  for (void* const wrong :
       {static_cast<void*>(heap.data()), freed, address(0), address(8), address(UINT64_MAX)}) {
    SCOPED_TRACE(wrong);
    point_to(wrong, target());
    EXPECT_SUCCESS(
        aclrtMemcpyAsyncWithOffset(dst(), kRoom, 8, src(), 64, 16, kInner, stream.get()));
    expect_task_failed(stream.get());
    point_to(source(), wrong);
    EXPECT_SUCCESS(
        aclrtMemcpyAsyncWithOffset(dst(), kRoom, 8, src(), 64, 16, kInner, stream.get()));
    expect_task_failed(stream.get());
  }
  EXPECT_TRUE(heap == pattern(kRoom, 47));
  expect_target_unchanged();
}

TEST_F(OffsetCopies, DESC_10_OffsetsAndCountsBeyondTheRoomAreRefused) {
  const TestStream stream;
  const struct {
    size_t room, to_offset, count, from_offset;
  } cases[] = {
      {kRoom, kRoom, 1, 0},
      {kRoom, kRoom + 1, 1, 0},
      {kRoom, 0, kRoom + 1, 0},
      {kRoom, 1, kRoom, 0},
      {0, 0, 1, 0},
      {SIZE_MAX, kLargestOffset + 1, 1, 0},
      {SIZE_MAX, 0, 1, kLargestOffset + 1},
      {SIZE_MAX, SIZE_MAX - 1, 1, 0},
      {SIZE_MAX, 0, 1, SIZE_MAX},
      {SIZE_MAX, 0, kMost + 1, 0},
      {SIZE_MAX, 0, SIZE_MAX, 0},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(testing::Message()
                 << bad.room << " " << bad.to_offset << " " << bad.count << " " << bad.from_offset);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpyAsyncWithOffset(dst(), bad.room, bad.to_offset, src(), bad.count,
                                            bad.from_offset, kInner, stream.get()));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  expect_target_unchanged();
  // The largest offset is one, though nothing is there.
  EXPECT_SUCCESS(aclrtMemcpyAsyncWithOffset(dst(), SIZE_MAX, kLargestOffset, src(), 1,
                                            kLargestOffset, kInner, stream.get()));
  expect_task_failed(stream.get());
  EXPECT_SUCCESS(
      aclrtMemcpyAsyncWithOffset(dst(), kRoom, kRoom - 1, src(), 1, 0, kInner, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(copy_out(at(target(), kRoom - 1), 1), pattern(1, 44));
}

// ---- Products ----

class DescriptionsOnProduct : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, DescriptionsOnProduct,
                         testing::Values("a2", "a3", "inf", "trn", "200i", "200i-rc", "950",
                                         "ipv350"),
                         host_product_name);

TEST_P(DescriptionsOnProduct, DESC_01_DESC_08_NotEveryProductHasThem) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "4G"});
  const std::string product = GetParam();
  const bool is_modern = product == "a2" || product == "a3" || product == "950";
  const bool has_descriptions = is_modern || product == "200i" || product == "200i-rc";
  const bool has_offsets = is_modern || product == "trn";
  const ContextSession session;
  const DeviceBlock block(kBytes);
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  size_t size = 0;
  if (has_descriptions) {
    EXPECT_SUCCESS(aclrtGetMemcpyDescSize(kInner, &size));
    EXPECT_SUCCESS(
        aclrtSetMemcpyDesc(block.data(), kInner, block.at(64), block.at(128), 64, nullptr));
    EXPECT_SUCCESS(aclrtMemcpyAsyncWithDesc(block.data(), kInner, stream));
    EXPECT_SUCCESS(finish(stream));
  } else {
    constexpr aclError kNo = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    EXPECT_FAILS(kNo, aclrtGetMemcpyDescSize(kInner, &size));
    EXPECT_FAILS(
        kNo, aclrtSetMemcpyDesc(block.data(), kInner, block.at(64), block.at(128), 64, nullptr));
    EXPECT_FAILS(kNo, aclrtMemcpyAsyncWithDesc(block.data(), kInner, stream));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemcpyDescSize(kInner, nullptr));
  }
  auto** const cell = static_cast<void**>(block.data());
  const auto offset_copy = [&] {
    return aclrtMemcpyAsyncWithOffset(cell, 64, 0, const_cast<const void**>(cell), 64, 0, kInner,
                                      stream);
  };
  if (has_offsets) {
    std::vector<uint8_t> bytes(8);
    const uint64_t start = number(block.data());
    memcpy(bytes.data(), &start, sizeof start);
    copy_in(block.data(), bytes);
    EXPECT_SUCCESS(offset_copy());
    EXPECT_SUCCESS(finish(stream));
  } else {
    (void)recent_error();
    EXPECT_TRUE(
        fails_with(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, offset_copy(), "aclrtMemcpyAsyncWithOffset"));
  }
  EXPECT_SUCCESS(aclrtDestroyStream(stream));
}

}  // namespace
}  // namespace understudy_test
