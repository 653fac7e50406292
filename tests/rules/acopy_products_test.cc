// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpyAsync and aclrtMemcpyAsyncWithCondition on each product: which of them is there, and
// the RC form, where all memory of this interface is the device's.
// Covers: ACOPY-02, ACOPY-06, ACOPY-07, ACOPY-09, ACOPY-10, ACOPY-17.
#include <cstdint>
#include <string>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

constexpr aclrtMemcpyKind kKinds[] = {ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE,
                                      ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                      ACL_MEMCPY_DEFAULT};

// Between two blocks on a held stream, and from ordinary memory.
void expect_copies(const AsyncCopy& function) {
  SCOPED_TRACE(function.name);
  const DeviceBlock first(kPage);
  const DeviceBlock second(kPage);
  copy_in(first.data(), pattern(kPage, 1));
  copy_in(second.data(), pattern(kPage, 2));
  const TestStream stream;
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(while_held(gate, [&] {
      return function.call(second.data(), kPage, first.data(), kPage, ACL_MEMCPY_DEVICE_TO_DEVICE,
                           stream.get());
    }));
    EXPECT_TRUE(copy_out(second.data(), kPage) == pattern(kPage, 2));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(second.data(), kPage) == pattern(kPage, 1));

  const std::vector<uint8_t> heap = pattern(kPage, 3);
  EXPECT_SUCCESS(function.call(second.data(), kPage, heap.data(), kPage, ACL_MEMCPY_HOST_TO_DEVICE,
                               stream.get()));
  EXPECT_TRUE(copy_out(second.data(), kPage) == heap);
}

class AsyncCopyOnProductWithIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, AsyncCopyOnProductWithIt,
                         testing::Values("a2", "a3", "inf", "trn", "200i", "200i-rc", "950"),
                         host_product_name);

TEST_P(AsyncCopyOnProductWithIt, ACOPY_06_ACOPY_07_ACOPY_17_BothFormsCopy) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const DeviceSession session;
  for (const AsyncCopy& function : kAsyncCopies) expect_copies(function);
}

// Everywhere but in the RC form.
class AsyncCopyOnProductWithAHost : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, AsyncCopyOnProductWithAHost,
                         testing::Values("a2", "a3", "inf", "trn", "200i", "950"),
                         host_product_name);

TEST_P(AsyncCopyOnProductWithAHost, ACOPY_06_ACOPY_10_PageLockedMemoryIsTheHost) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const DeviceSession session;
  const HostBlock first(kPage);
  const HostBlock second(kPage);
  const DeviceBlock device(kPage);
  const TestStream stream;
  for (const AsyncCopy& function : kAsyncCopies) {
    SCOPED_TRACE(function.name);
    store(first.data(), pattern(kPage, 4));
    store(second.data(), pattern(kPage, 5));
    for (const aclrtMemcpyKind kind : kKinds) {
      expect_copy_refused(function, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, second.data(), kPage,
                          first.data(), kPage, kind, stream.get());
    }
    EXPECT_TRUE(holds(second.data(), pattern(kPage, 5)));
    EXPECT_SUCCESS(function.call(device.data(), kPage, first.data(), kPage,
                                 ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
    EXPECT_SUCCESS(function.call(second.data(), kPage, device.data(), kPage,
                                 ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_TRUE(holds(second.data(), pattern(kPage, 4)));
  }
}

TEST(AsyncCopyOnIpv350, ACOPY_02_ACOPY_17_OnlyTheConditionFormIsThere) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  expect_copies(kAsyncCopyWithCondition);

  const DeviceBlock block(kPage);
  copy_in(block.data(), pattern(kPage, 6));
  std::vector<uint8_t> heap = pattern(kPage, 7);
  const TestStream stream;
  const auto refuse = [&] {
    constexpr auto kCode = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    expect_copy_refused(kAsyncCopy, kCode, block.data(), kPage, heap.data(), kPage,
                        ACL_MEMCPY_HOST_TO_DEVICE, stream.get());
    expect_copy_refused(kAsyncCopy, kCode, block.data(), 1, heap.data(), kPage,
                        ACL_MEMCPY_HOST_TO_DEVICE, stream.get());
    expect_copy_refused(kAsyncCopy, ACL_ERROR_INVALID_PARAM, nullptr, kPage, heap.data(), kPage,
                        ACL_MEMCPY_HOST_TO_DEVICE, stream.get());
    expect_copy_refused(kAsyncCopy, ACL_ERROR_INVALID_PARAM, block.data(), kPage, heap.data(),
                        kPage, enum_value<aclrtMemcpyKind>(6), stream.get());
    EXPECT_SUCCESS(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, ACL_MEMCPY_DEFAULT, stream.get()));
  };
  refuse();
  on_bare_thread(refuse);
  EXPECT_TRUE(copy_out(block.data(), kPage) == pattern(kPage, 6));
}

// ---- The RC form ----

#define US_IN_DEVICE_MODE()                            \
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i-rc"}); \
  const DeviceSession session

TEST(AsyncCopyInDeviceMode, ACOPY_09_ACOPY_10_ACOPY_17_EveryKindCopiesWithinTheDevice) {
  US_IN_DEVICE_MODE();
  const HostBlock first(kPage);
  const HostBlock second(kPage);
  const DeviceBlock device(kPage);
  const TestStream stream;
  struct Pair {
    void* to;
    void* from;
  };
  const Pair pairs[] = {
      {second.data(), first.data()}, {device.data(), first.data()}, {first.data(), device.data()}};
  for (const AsyncCopy& function : kAsyncCopies) {
    SCOPED_TRACE(function.name);
    for (const Pair& pair : pairs) {
      void* const to = pair.to;
      void* const from = pair.from;
      for (const aclrtMemcpyKind kind : kKinds) {
        SCOPED_TRACE(testing::Message() << from << " to " << to << ", kind " << kind);
        copy_in(from, pattern(kPage, 8));
        copy_in(to, pattern(kPage, 9));
        Gate gate(stream.get());
        EXPECT_SUCCESS(while_held(
            gate, [&] { return function.call(to, kPage, from, kPage, kind, stream.get()); }));
        EXPECT_TRUE(copy_out(to, kPage) == pattern(kPage, 9));
        gate.open();
        EXPECT_SUCCESS(finish(stream.get()));
        EXPECT_TRUE(copy_out(to, kPage) == pattern(kPage, 8));
      }
    }
  }
}

TEST(AsyncCopyInDeviceMode, ACOPY_07_ACOPY_17_OrdinaryMemoryIsCopiedBehindTheQueue) {
  US_IN_DEVICE_MODE();
  constexpr size_t kLarge = 4 * kMiB;
  const DeviceBlock device(kLarge);
  const TestStream stream;
  for (const AsyncCopy& function : kAsyncCopies) {
    for (const aclrtMemcpyKind kind : kKinds) {
      SCOPED_TRACE(testing::Message() << function.name << ", kind " << kind);
      std::vector<uint8_t> heap = pattern(kPage, 10);
      copy_in(device.at(kLarge - kPage), heap);
      Gate gate(stream.get());
      EXPECT_SUCCESS(aclrtMemsetAsync(device.data(), kLarge, 0x66, kLarge, stream.get()));
      EXPECT_SUCCESS(while_opening(gate, [&] {
        return function.call(heap.data(), kPage, device.at(kLarge - kPage), kPage, kind,
                             stream.get());
      }));
      EXPECT_TRUE(heap == std::vector<uint8_t>(kPage, 0x66));
      heap = pattern(kPage, 11);
      EXPECT_SUCCESS(function.call(device.data(), kPage, heap.data(), kPage, kind, stream.get()));
      EXPECT_TRUE(copy_out(device.data(), kPage) == heap);
    }
  }
}

}  // namespace
}  // namespace understudy_test
