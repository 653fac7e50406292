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

// ---- What the macros below expand to: calls of functions that are not inline. Of gtest's own
// macros each makes the compiler write more code than most tests have, and there are thousands.

// How a call went. A note is told with its failure: EXPECT_SUCCESS(call) << note.
class CallOutcome {
 public:
  enum class Kind : uint8_t { kSuccess, kFailure, kFatalFailure };
  struct Place {
    const char* file;
    int line;
  };

  CallOutcome(Kind kind, Place place) : kind_(kind), place_(place) {}
  explicit operator bool() const { return kind_ == Kind::kSuccess; }
  template <typename Note>
  CallOutcome& operator<<(const Note& note) {
    if (!*this) tell((testing::Message() << note).GetString());
    return *this;
  }

 private:
  void tell(const std::string& note) const;

  Kind kind_;
  Place place_;
};
// The last word of a macro that ends its function: return EndOfTest() = outcome << note;
struct EndOfTest {
  void operator=(const CallOutcome&) const {}  // NOLINT: as gtest does it
};

// Fails the test unless the code is 0. `failed` is how it fails.
CallOutcome expect_success(aclError code, const char* call, CallOutcome::Kind failed,
                           CallOutcome::Place place);
// Whether the call answered the code, with a text that names the function. On a library that is not
// Understudy, `understudy conformance` accepts any failure here, and judges the codes itself.
testing::AssertionResult fails_with(aclError expected, aclError actual, const char* call);
// Fails the test if not.
void expect_failure(aclError expected, aclError actual, const char* call, CallOutcome::Place place);

}  // namespace understudy_test

// The call returns exactly this non-zero code and leaves a text that names the function.
#define EXPECT_FAILS(code, call)            \
  ((void)::understudy_test::recent_error(), \
   ::understudy_test::expect_failure((code), (call), #call, {__FILE__, __LINE__}))
#define EXPECT_SUCCESS(call)                                                                       \
  ::understudy_test::expect_success((call), #call, ::understudy_test::CallOutcome::Kind::kFailure, \
                                    {__FILE__, __LINE__})
#define ASSERT_SUCCESS(call)                                                         \
  GTEST_AMBIGUOUS_ELSE_BLOCKER_                                                      \
  if (::understudy_test::CallOutcome us_outcome = ::understudy_test::expect_success( \
          (call), #call, ::understudy_test::CallOutcome::Kind::kFatalFailure,        \
          {__FILE__, __LINE__}))                                                     \
    ;                                                                                \
  else /* NOLINT: a note may follow */                                               \
    return ::understudy_test::EndOfTest() = us_outcome
