// SPDX-License-Identifier: Apache-2.0
//
// The overflow state, which nothing here raises, and the choice of a task scheduler.
// Covers: FREE-06, OVF-01, OVF-02, OVF-03, OVF-04.
#include <atomic>
#include <thread>
#include <vector>

#include "rules/product_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

constexpr size_t kBytes = 64;

class Overflow : public DeviceTest {};

TEST_F(Overflow, OVF_01_BadArgumentsAreRefused) {
  const DeviceBlock block(4 * kKiB);
  const TestStream stream;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetOverflowStatus(nullptr, kBytes, stream.get()));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetOverflowStatus(nullptr, 0, nullptr));
  for (const size_t size : {size_t{0}, size_t{63}, size_t{65}, SIZE_MAX}) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtGetOverflowStatus(block.data(), size, stream.get()));
  }
  std::vector<uint8_t> heap(kBytes, 0x77);
  void* locked = nullptr;
  ASSERT_SUCCESS(aclrtMallocHost(&locked, kBytes));
  for (void* const elsewhere : {static_cast<void*>(heap.data()), locked, address(8)}) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtGetOverflowStatus(elsewhere, kBytes, stream.get()));
  }
  EXPECT_SUCCESS(aclrtFreeHost(locked));
  EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
  EXPECT_EQ(heap, std::vector<uint8_t>(kBytes, 0x77));
}

TEST_F(Overflow, OVF_01_AllOfTheBytesMustBeDeviceMemory) {
  const LiveMapping mapping;
  EXPECT_SUCCESS(
      aclrtGetOverflowStatus(at(mapping.data(), mapping.size() - kBytes), kBytes, nullptr));
  EXPECT_FAILS(
      ACL_ERROR_RT_PARAM_INVALID,
      aclrtGetOverflowStatus(at(mapping.data(), mapping.size() - kBytes + 1), kBytes, nullptr));
  EXPECT_SUCCESS(aclrtSynchronizeStream(nullptr));
}

TEST_F(Overflow, OVF_01_StreamsMustBeAliveAndOfTheCurrentContext) {
  const DeviceBlock block(4 * kKiB);
  aclrtStream gone = TestStream().release();
  EXPECT_SUCCESS(aclrtDestroyStream(gone));
  const TestStream own;
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtGetOverflowStatus(block.data(), kBytes, gone));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtResetOverflowStatus(gone));
  {
    const ContextScope other(0);
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_CONTEXT,
                 aclrtGetOverflowStatus(block.data(), kBytes, own.get()));
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtResetOverflowStatus(own.get()));
  }
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetOverflowStatus(block.data(), kBytes, nullptr));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtResetOverflowStatus(nullptr));
  });
}

TEST_F(Overflow, OVF_02_ZerosAreWrittenInStreamOrder) {
  const DeviceBlock block(4 * kKiB);
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    copy_in(block.data(), std::vector<uint8_t>(2 * kBytes, 0x77));
    Gate gate(stream);
    EXPECT_SUCCESS(aclrtMemsetAsync(block.data(), 4 * kKiB, 0x33, 2 * kBytes, stream));
    EXPECT_SUCCESS(aclrtGetOverflowStatus(block.data(), kBytes, stream));
    EXPECT_SUCCESS(aclrtResetOverflowStatus(stream));
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_EQ(copy_out(block.data(), 1)[0], 0x77) << "not before its turn";
    gate.open();
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream));
    std::vector<uint8_t> expected(2 * kBytes, 0x33);
    std::fill_n(expected.begin(), kBytes, 0);
    EXPECT_EQ(copy_out(block.data(), 2 * kBytes), expected);
  }
}

void* overflow_address() {
  void* result = nullptr;
  EXPECT_SUCCESS(aclrtCtxGetFloatOverflowAddr(&result));
  EXPECT_NE(result, nullptr);
  return result;
}

TEST_F(Overflow, OVF_03_AnOutputAndAContextAreNeeded) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCtxGetFloatOverflowAddr(nullptr));
  on_bare_thread([] {
    void* result = untouched_address();
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCtxGetFloatOverflowAddr(&result));
    EXPECT_EQ(result, untouched_address());
  });
}

TEST_F(Overflow, OVF_03_AContextHasOneAddressOfZeros) {
  const aclrtContext context = runtime::current_context();
  void* const first = overflow_address();
  EXPECT_EQ(overflow_address(), first);
  std::thread([&] {
    EXPECT_SUCCESS(aclrtSetCurrentContext(context));
    EXPECT_EQ(overflow_address(), first);
  }).join();
  EXPECT_EQ(copy_out(first, kBytes), std::vector<uint8_t>(kBytes, 0));
  const DeviceBlock block(4 * kKiB);
  EXPECT_SUCCESS(
      aclrtMemcpyAsync(block.data(), kBytes, first, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr));
  EXPECT_SUCCESS(aclrtSynchronizeStream(nullptr));
  EXPECT_EQ(copy_out(block.data(), kBytes), std::vector<uint8_t>(kBytes, 0));
  {
    const ContextScope other(0);
    EXPECT_NE(overflow_address(), first);
  }
  EXPECT_EQ(overflow_address(), first);
}

TEST_F(Overflow, OVF_03_FREE_06_TheProgramCannotFreeIt) {
  void* const status = overflow_address();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(status));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreeWithDevSync(status));
  EXPECT_EQ(copy_out(status, kBytes), std::vector<uint8_t>(kBytes, 0));
  EXPECT_EQ(overflow_address(), status);
}

TEST_F(Overflow, OVF_03_ItEndsWithItsContextAndGivesItsMemoryBack) {
  const MemoryFigures before = memory_figures();
  for (int round = 0; round < 3; ++round) {
    void* status = nullptr;
    {
      const ContextScope context(0);
      status = overflow_address();
    }
    EXPECT_EQ(memory_figures(), before);
    std::vector<uint8_t> bytes(kBytes);
    EXPECT_NE(aclrtMemcpy(bytes.data(), kBytes, status, kBytes, ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
  }
  for (auto* const reset : {aclrtResetDevice, aclrtResetDeviceForce}) {
    (void)overflow_address();
    const aclrtContext other = runtime::create_context();
    (void)overflow_address();
    EXPECT_SUCCESS(reset(0));
    EXPECT_NE(aclrtSetCurrentContext(other), ACL_SUCCESS);
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(memory_figures(), before);
    EXPECT_EQ(copy_out(overflow_address(), kBytes), std::vector<uint8_t>(kBytes, 0));
    EXPECT_SUCCESS(aclrtResetDeviceForce(0));
    ASSERT_SUCCESS(aclrtSetDevice(0));
  }
}

TEST_F(Overflow, OVF_03_ThreadsThatAskAtOnceGetOneAddress) {
  const aclrtContext own = runtime::current_context();
  const MemoryFigures before = memory_figures();
  for (int round = 0; round < 20; ++round) {
    const ContextScope scope(0);
    const aclrtContext context = runtime::current_context();
    std::vector<void*> seen(4);
    std::vector<std::thread> threads;
    for (void*& place : seen) {
      threads.emplace_back([&place, context] {
        EXPECT_SUCCESS(aclrtSetCurrentContext(context));
        place = overflow_address();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (void* const each : seen) EXPECT_EQ(each, seen[0]);
  }
  ASSERT_SUCCESS(aclrtSetCurrentContext(own));
  EXPECT_EQ(memory_figures(), before);
}

// Contexts end while other threads give them their memory.
TEST_F(Overflow, OVF_03_ResetsMeanwhileLeaveNothingBehind) {
  const MemoryFigures before = memory_figures();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over) {
        EXPECT_SUCCESS(aclrtSetDevice(0));
        aclrtContext context = nullptr;
        void* status = nullptr;
        (void)aclrtCtxGetFloatOverflowAddr(&status);  // refused if the device has just ended
        if (aclrtCreateContext(&context, 0) != ACL_SUCCESS) continue;
        (void)aclrtCtxGetFloatOverflowAddr(&status);
        (void)aclrtDestroyContext(context);
      }
    });
  }
  // Only resets of a device that was there count.
  for (int resets = 0; resets < 40;) {
    if (aclrtResetDeviceForce(0) == ACL_SUCCESS) ++resets;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  (void)aclrtResetDeviceForce(0);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(memory_figures(), before);
}

TEST(OverflowOfPoisonedMemory, OVF_03_ItIsZeroWhateverMemoryHolds) {
  US_FRESH_PROCESS({"UNDERSTUDY_POISON", "on"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(copy_out(overflow_address(), kBytes), std::vector<uint8_t>(kBytes, 0));
}

class OverflowOn : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, OverflowOn, every_product(), product_name);

TEST_P(OverflowOn, OVF_01_OVF_02_OVF_03_EveryProductButOneHasTheFunctions) {
  US_ON_PRODUCT();
  const ContextSession session;
  const bool has = GetParam() != "ipv350";
  const DeviceBlock block(4 * kKiB);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetOverflowStatus(nullptr, 0, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCtxGetFloatOverflowAddr(nullptr));
  EXPECT_SUPPORTED(has, aclrtGetOverflowStatus(block.data(), kBytes, nullptr));
  EXPECT_SUPPORTED(has, aclrtResetOverflowStatus(nullptr));
  void* status = nullptr;
  EXPECT_SUPPORTED(has, aclrtCtxGetFloatOverflowAddr(&status));
  EXPECT_EQ(status != nullptr, has);
  EXPECT_SUCCESS(aclrtSynchronizeStream(nullptr));
}

TEST_P(OverflowOn, OVF_04_TwoTaskSchedulersCanBeChosen) {
  US_ON_PRODUCT();
  const bool has = GetParam() != "ipv350";
  EXPECT_SUPPORTED(has, aclrtSetTsDevice(ACL_TS_ID_AICORE));
  EXPECT_SUPPORTED(has, aclrtSetTsDevice(ACL_TS_ID_AIVECTOR));
  for (const int64_t number : {-1, 2, 3, 0x7FFFFFFF}) {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetTsDevice(enum_value<aclrtTsId>(number)));
  }
}

}  // namespace
}  // namespace understudy_test
