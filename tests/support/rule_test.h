// SPDX-License-Identifier: Apache-2.0
//
// What rule tests share. Rule tests are black boxes: they see the public C ABI and nothing else.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "support/fresh_process.h"

namespace understudy_test {

inline constexpr size_t kKiB = size_t{1} << 10;
inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr size_t kGiB = size_t{1} << 30;
inline constexpr size_t kTiB = size_t{1} << 40;

// Numbers outside an enum's list, as a C caller may pass them.
template <typename Enum>
Enum enum_value(int64_t number) {
  return static_cast<Enum>(number);
}

// A block description; `attribute` at device `device` unless told otherwise.
aclrtPhysicalMemProp block_property(aclrtMemAttr attribute = ACL_HBM_MEM_HUGE,
                                    aclrtMemLocationType location = ACL_MEM_LOCATION_TYPE_DEVICE,
                                    uint32_t id = 0);

// Create, reserve: each asserts success and returns the result.
aclrtDrvMemHandle create_block(size_t size,
                               const aclrtPhysicalMemProp& property = block_property());
void* reserve(size_t size, uint64_t flags = 0, void* expected = nullptr);

// Free bytes of a kind on the current device; asserts success. Needs a current context.
size_t free_bytes(aclrtMemAttr attribute = ACL_HBM_MEM);

// An address as a number, and arithmetic on void pointers.
inline uint64_t number(const void* address) { return reinterpret_cast<uint64_t>(address); }
inline void* at(void* address, size_t offset) { return static_cast<char*>(address) + offset; }
inline void* address(uint64_t value) { return reinterpret_cast<void*>(value); }

// Whether the CPU of this process may load from or store to the address, found out without a
// signal (a system call answers EFAULT). The write probe stores the byte that was there, if it was
// readable, else 0.
bool cpu_can_read(const void* address);
bool cpu_can_write(void* address);

// `count` bytes that depend on `seed` and on their position.
std::vector<uint8_t> pattern(size_t count, uint8_t seed = 1);
// Copies to and from device memory; each asserts success.
void copy_in(void* device, const std::vector<uint8_t>& bytes);
std::vector<uint8_t> copy_out(const void* device, size_t count);

// The texts since the last call on this thread, or "" if none.
std::string recent_error();

// Binds the test's thread to device 0 and gives the device back afterwards.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS); }
  void TearDown() override { aclrtResetDeviceForce(0); }
};

// What aclrtGetMemInfo says about every kind, to compare before and after a call that must change
// nothing. Needs a current context.
struct MemoryFigures {
  std::vector<size_t> values;
  friend bool operator==(const MemoryFigures&, const MemoryFigures&) = default;
};
MemoryFigures memory_figures();

// On a library that is not Understudy, `understudy conformance` accepts any failure here, and
// judges the codes itself.
testing::AssertionResult fails_with(aclError expected, aclError actual, const char* call);

}  // namespace understudy_test

// The call returns exactly this non-zero code and leaves a text that names the function.
#define EXPECT_FAILS(code, call)                                       \
  do {                                                                 \
    (void)::understudy_test::recent_error();                           \
    EXPECT_TRUE(::understudy_test::fails_with((code), (call), #call)); \
  } while (false)
#define EXPECT_SUCCESS(call) EXPECT_EQ((call), ACL_SUCCESS) << ::understudy_test::recent_error()
#define ASSERT_SUCCESS(call) ASSERT_EQ((call), ACL_SUCCESS) << ::understudy_test::recent_error()
