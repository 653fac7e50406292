// SPDX-License-Identifier: Apache-2.0
//
// A sweep over the functions of managed memory, described copies, cache operations and device
// variables with addresses and sizes that mean nothing: never a crash, never a success, nothing
// changed.
// Covers: GEN-09.
#include <cstdint>
#include <functional>
#include <vector>

#include "rules/managed_objects.h"

namespace understudy_test {
namespace {

// Something that must not change, of each kind of memory that these functions take.
class Witnesses {
 public:
  Witnesses() {
    store(managed_.data(), pattern(kPage, 70));
    copy_in(device_.data(), pattern(kPage, 71));
  }
  void* managed() const { return managed_.data(); }
  void* device() const { return device_.data(); }
  void expect_unchanged() const {
    EXPECT_TRUE(holds(managed(), pattern(kPage, 70)));
    EXPECT_TRUE(copy_out(device(), kPage) == pattern(kPage, 71));
    EXPECT_EQ(remembered(managed(), kGranule), before_);
  }

 private:
  ManagedBlock managed_;
  DeviceBlock device_{kPage, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32};
  const Remembered before_ = remembered(managed_.data(), kGranule);
};

class HostileManaged : public HostMemoryTest {
 protected:
  // Addresses without memory of this library.
  static std::vector<void*> wild_addresses() {
    DeviceBlock device(kPage);
    ManagedBlock managed;
    std::vector<void*> all = {nullptr,
                              address(1),
                              address(64),
                              address(kGranule),
                              address(9 * kTiB),
                              address(0x0000800000000000),
                              address(0xFFFF800000000000),
                              address(UINT64_MAX - 63),
                              address(UINT64_MAX),
                              device.data(),
                              managed.data()};
    device.free();
    managed.free();
    return all;
  }
  static constexpr size_t kWildSizes[] = {0, 1, kGranule, SIZE_MAX, SIZE_MAX - kGranule + 1};
};

TEST_F(HostileManaged, GEN_09_WildAddressesAndSizesAreRefused) {
  constexpr auto kInner = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;
  constexpr auto kOut = ACL_MEMCPY_DEFAULT;
  const Witnesses good;
  const TestStream stream;
  int32_t value = 77;
  void* values[] = {&value};
  size_t value_size = sizeof value;
  auto attribute = ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
  aclrtMemManagedLocation where = on_device(0);
  size_t index = 0;
  for (void* const wild : wild_addresses()) {
    for (size_t size : kWildSizes) {
      SCOPED_TRACE(testing::Message() << wild << ", " << size << " bytes");
      const void* start = wild;
      const std::function<aclError()> calls[] = {
          [&] { return aclrtMemManagedAdvise(wild, size, ACL_MEM_ADVISE_SET_READ_MOSTLY, where); },
          [&] { return aclrtMemManagedGetAttr(attribute, wild, size, &value, value_size); },
          [&] { return aclrtMemManagedGetAttrs(&attribute, 1, wild, size, values, &value_size); },
          [&] { return aclrtMemManagedPrefetchAsync(wild, size, where, 0, stream.get()); },
          [&] {
            return aclrtMemManagedPrefetchBatchAsync(&start, &size, 1, &where, &index, 1, 0,
                                                     stream.get());
          },
          [&] { return aclrtCmoAsync(wild, size, ACL_RT_CMO_TYPE_PREFETCH, stream.get()); },
          [&] { return aclrtCmoSetDesc(good.device(), wild, size); },
          [&] { return aclrtCmoSetDesc(wild, good.device(), kPage); },
          [&] {
            return aclrtCmoAsyncWithDesc(wild, ACL_RT_CMO_TYPE_PREFETCH, stream.get(), nullptr);
          },
          [&] {
            return aclrtSetMemcpyDesc(good.device(), kInner, wild, good.device(), size, nullptr);
          },
          [&] {
            return aclrtSetMemcpyDesc(good.device(), kInner, good.device(), wild, size, nullptr);
          },
          [&] {
            return aclrtSetMemcpyDesc(wild, kInner, good.device(), good.device(), 1, nullptr);
          },
          [&] { return aclrtMemcpyAsyncWithDesc(wild, kInner, stream.get()); },
          [&] {
            return aclrtMemcpyAsyncWithOffset(static_cast<void**>(wild), SIZE_MAX, 0,
                                              static_cast<const void**>(good.device()), 1, size,
                                              kInner, stream.get());
          },
          [&] {
            return aclrtMemcpyAsyncWithOffset(static_cast<void**>(good.device()), SIZE_MAX, size,
                                              static_cast<const void**>(wild), 1, 0, kInner,
                                              stream.get());
          },
          [&] { return aclrtMemcpyFromSymbol(good.managed(), size, wild, 1, size, kOut); },
          [&] { return aclrtMemcpyToSymbol(wild, good.managed(), 1, size, kOut); },
      };
      size_t number = 0;
      for (const auto& call : calls) {
        EXPECT_NE(call(), ACL_SUCCESS) << "call " << number;
        ++number;
      }
      (void)recent_error();
    }
    good.expect_unchanged();
  }
  EXPECT_EQ(value, 77);
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(HostileManaged, GEN_09_ImpossibleSizesOfAllocations) {
  for (const size_t size : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - kGranule, size_t{1} << 63,
                            size_t{1} << 48, 3 * kTiB + 1}) {
    void* data = untouched_address();
    EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMemAllocManaged(&data, size, kGlobal));
    EXPECT_EQ(data, untouched_address());
  }
}

}  // namespace
}  // namespace understudy_test
