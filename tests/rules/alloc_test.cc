// SPDX-License-Identifier: Apache-2.0
//
// Custom allocators: described, registered for streams, looked up. Covers: ALLOC.
// Covers: ALLOC-01, ALLOC-02, ALLOC-03, ALLOC-04, ALLOC-05, ALLOC-06, ALLOC-07, ALLOC-08, ALLOC-09,
// ALLOC-10.
#include <cstddef>
#include <string>
#include <vector>

#include "acl/acl_rt_allocator.h"
#include "rules/stream_objects.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

int calls = 0;
void* allocate(aclrtAllocator, size_t) { return ++calls, nullptr; }
void* allocate_otherwise(aclrtAllocator, size_t) { return ++calls, nullptr; }
void* allocate_near(aclrtAllocator, size_t, aclrtAllocatorAddr) { return ++calls, nullptr; }
void free_block(aclrtAllocator, aclrtAllocatorBlock) { ++calls; }
void* address_of(aclrtAllocatorBlock) { return ++calls, nullptr; }

// A descriptor that lives for a scope.
class Descriptor {
 public:
  Descriptor() : descriptor_(aclrtAllocatorCreateDesc()) { EXPECT_NE(descriptor_, nullptr); }
  ~Descriptor() {
    if (descriptor_ != nullptr) destroy();
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  aclrtAllocatorDesc get() const { return descriptor_; }
  void destroy() {
    EXPECT_SUCCESS(aclrtAllocatorDestroyDesc(descriptor_));
    descriptor_ = nullptr;
  }
  // All that a registration needs.
  void complete(void* object, aclrtAllocatorAllocFunc function = allocate) const {
    EXPECT_SUCCESS(aclrtAllocatorSetObjToDesc(descriptor_, object));
    EXPECT_SUCCESS(aclrtAllocatorSetAllocFuncToDesc(descriptor_, function));
    EXPECT_SUCCESS(aclrtAllocatorSetFreeFuncToDesc(descriptor_, free_block));
    EXPECT_SUCCESS(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(descriptor_, address_of));
  }

 private:
  aclrtAllocatorDesc descriptor_;
};

struct Registered {
  aclrtAllocatorDesc descriptor = address(0x77);
  aclrtAllocator object = address(0x77);
  aclrtAllocatorAllocFunc allocate = nullptr;
  aclrtAllocatorFreeFunc free = nullptr;
  aclrtAllocatorAllocAdviseFunc allocate_at = allocate_near;
  aclrtAllocatorGetAddrFromBlockFunc address_of = nullptr;

  aclError look_up(aclrtStream stream) {
    return aclrtAllocatorGetByStream(stream, &descriptor, &object, &allocate, &free, &allocate_at,
                                     &address_of);
  }
};

void expect_unregistered(aclrtStream stream) {
  Registered found;
  EXPECT_EQ(found.look_up(stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(found.descriptor, address(0x77));
  EXPECT_EQ(found.object, address(0x77));
}

using Allocator = DeviceTest;

TEST_F(Allocator, ALLOC_01_DescriptorsAreFresh) {
  const Descriptor one;
  const Descriptor other;
  EXPECT_NE(one.get(), other.get());
}

TEST_F(Allocator, ALLOC_02_NullArgumentsAreRefused) {
  const Descriptor descriptor;
  aclrtAllocatorDesc const desc = descriptor.get();
  const aclError refused = ACL_ERROR_INVALID_PARAM;
  EXPECT_FAILS(refused, aclrtAllocatorDestroyDesc(nullptr));
  EXPECT_FAILS(refused, aclrtAllocatorSetObjToDesc(nullptr, &calls));
  EXPECT_FAILS(refused, aclrtAllocatorSetObjToDesc(desc, nullptr));
  EXPECT_FAILS(refused, aclrtAllocatorSetAllocFuncToDesc(nullptr, allocate));
  EXPECT_FAILS(refused, aclrtAllocatorSetAllocFuncToDesc(desc, nullptr));
  EXPECT_FAILS(refused, aclrtAllocatorSetFreeFuncToDesc(nullptr, free_block));
  EXPECT_FAILS(refused, aclrtAllocatorSetFreeFuncToDesc(desc, nullptr));
  EXPECT_FAILS(refused, aclrtAllocatorSetAllocAdviseFuncToDesc(nullptr, allocate_near));
  EXPECT_FAILS(refused, aclrtAllocatorSetAllocAdviseFuncToDesc(desc, nullptr));
  EXPECT_FAILS(refused, aclrtAllocatorSetGetAddrFromBlockFuncToDesc(nullptr, address_of));
  EXPECT_FAILS(refused, aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, nullptr));
}

TEST_F(Allocator, ALLOC_02_StaleAndInventedDescriptorsAreRefused) {
  const TestStream stream;
  Descriptor descriptor;
  descriptor.complete(&calls);
  aclrtAllocatorDesc const stale = descriptor.get();
  descriptor.destroy();
  for (void* const unknown : {stale, address(0x1234), static_cast<void*>(&calls)}) {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtAllocatorDestroyDesc(unknown));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtAllocatorSetObjToDesc(unknown, &calls));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtAllocatorRegister(stream.get(), unknown));
  }
  expect_unregistered(stream.get());
}

TEST_F(Allocator, ALLOC_03_RegisterRefusesNull) {
  const TestStream stream;
  const Descriptor descriptor;
  descriptor.complete(&calls);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtAllocatorRegister(nullptr, descriptor.get()));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtAllocatorRegister(stream.get(), nullptr));
  expect_unregistered(stream.get());
}

TEST_F(Allocator, ALLOC_03_DestroyedStreamsAreRefused) {
  TestStream stream;
  const Descriptor descriptor;
  descriptor.complete(&calls);
  EXPECT_SUCCESS(aclrtAllocatorRegister(stream.get(), descriptor.get()));
  const aclrtStream destroyed = stream.get();
  stream.destroy();
  Registered found;
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtAllocatorRegister(destroyed, descriptor.get()));
  EXPECT_EQ(found.look_up(destroyed), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtAllocatorUnregister(destroyed));
  // A stream that comes after it, perhaps in its place, has nothing of it.
  const TestStream next;
  expect_unregistered(next.get());
}

TEST_F(Allocator, ALLOC_04_AllButTheAdviseFunctionIsNeeded) {
  const TestStream stream;
  for (int missing = 0; missing < 4; ++missing) {
    SCOPED_TRACE(missing);
    const Descriptor descriptor;
    if (missing != 0) {
      EXPECT_SUCCESS(aclrtAllocatorSetObjToDesc(descriptor.get(), &calls));
    }
    if (missing != 1) {
      EXPECT_SUCCESS(aclrtAllocatorSetAllocFuncToDesc(descriptor.get(), allocate));
    }
    if (missing != 2) {
      EXPECT_SUCCESS(aclrtAllocatorSetFreeFuncToDesc(descriptor.get(), free_block));
    }
    if (missing != 3) {
      EXPECT_SUCCESS(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(descriptor.get(), address_of));
    }
    EXPECT_SUCCESS(aclrtAllocatorSetAllocAdviseFuncToDesc(descriptor.get(), allocate_near));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtAllocatorRegister(stream.get(), descriptor.get()));
    expect_unregistered(stream.get());
  }
  const Descriptor descriptor;
  descriptor.complete(&calls);
  EXPECT_SUCCESS(aclrtAllocatorRegister(stream.get(), descriptor.get()));
}

TEST_F(Allocator, ALLOC_05_TheValuesAreCopied) {
  const TestStream stream;
  Descriptor descriptor;
  descriptor.complete(&calls);
  aclrtAllocatorDesc const desc = descriptor.get();
  EXPECT_SUCCESS(aclrtAllocatorRegister(stream.get(), desc));
  EXPECT_SUCCESS(aclrtAllocatorSetAllocFuncToDesc(desc, allocate_otherwise));
  descriptor.destroy();
  Registered found;
  EXPECT_SUCCESS(found.look_up(stream.get()));
  EXPECT_EQ(found.descriptor, desc);
  EXPECT_EQ(found.allocate, &allocate);
}

TEST_F(Allocator, ALLOC_06_ASecondRegistrationReplacesTheFirst) {
  const TestStream stream;
  const Descriptor first;
  const Descriptor second;
  int other = 0;
  first.complete(&calls);
  EXPECT_SUCCESS(aclrtAllocatorSetAllocAdviseFuncToDesc(first.get(), allocate_near));
  second.complete(&other, allocate_otherwise);
  EXPECT_SUCCESS(aclrtAllocatorRegister(stream.get(), first.get()));
  EXPECT_SUCCESS(aclrtAllocatorRegister(stream.get(), second.get()));
  Registered found;
  EXPECT_SUCCESS(found.look_up(stream.get()));
  EXPECT_EQ(found.descriptor, second.get());
  EXPECT_EQ(found.object, &other);
  EXPECT_EQ(found.allocate, &allocate_otherwise);
  EXPECT_EQ(found.allocate_at, nullptr);
}

TEST_F(Allocator, ALLOC_07_LookUpRefusesNullAndUnregisteredStreams) {
  const TestStream stream;
  const TestStream other;
  const Descriptor descriptor;
  descriptor.complete(&calls);
  EXPECT_SUCCESS(aclrtAllocatorRegister(stream.get(), descriptor.get()));
  Registered found;
  EXPECT_EQ(found.look_up(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtAllocatorGetByStream(stream.get(), nullptr, &found.object, &found.allocate,
                                         &found.free, &found.allocate_at, &found.address_of));
  EXPECT_EQ(found.object, address(0x77));
  expect_unregistered(other.get());
  EXPECT_SUCCESS(aclrtAllocatorGetByStream(stream.get(), &found.descriptor, nullptr, nullptr,
                                           nullptr, nullptr, nullptr));
  EXPECT_EQ(found.descriptor, descriptor.get());
}

TEST_F(Allocator, ALLOC_08_LookUpGivesWhatWasRegistered) {
  const TestStream stream;
  const Descriptor descriptor;
  descriptor.complete(&calls);
  EXPECT_SUCCESS(aclrtAllocatorSetAllocAdviseFuncToDesc(descriptor.get(), allocate_near));
  EXPECT_SUCCESS(aclrtAllocatorRegister(stream.get(), descriptor.get()));
  Registered found;
  found.allocate_at = nullptr;
  EXPECT_SUCCESS(found.look_up(stream.get()));
  EXPECT_EQ(found.descriptor, descriptor.get());
  EXPECT_EQ(found.object, &calls);
  EXPECT_EQ(found.allocate, &allocate);
  EXPECT_EQ(found.free, &free_block);
  EXPECT_EQ(found.allocate_at, &allocate_near);
  EXPECT_EQ(found.address_of, &address_of);
}

TEST_F(Allocator, ALLOC_09_Unregister) {
  const TestStream stream;
  const Descriptor descriptor;
  descriptor.complete(&calls);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtAllocatorUnregister(nullptr));
  EXPECT_SUCCESS(aclrtAllocatorUnregister(stream.get()));
  EXPECT_SUCCESS(aclrtAllocatorRegister(stream.get(), descriptor.get()));
  EXPECT_SUCCESS(aclrtAllocatorUnregister(stream.get()));
  expect_unregistered(stream.get());
  EXPECT_SUCCESS(aclrtAllocatorUnregister(stream.get()));
}

TEST_F(Allocator, ALLOC_10_MemoryCallsDoNotUseIt) {
  const TestStream stream;
  const Descriptor descriptor;
  descriptor.complete(&calls);
  EXPECT_SUCCESS(aclrtAllocatorSetAllocAdviseFuncToDesc(descriptor.get(), allocate_near));
  EXPECT_SUCCESS(aclrtAllocatorRegister(stream.get(), descriptor.get()));
  calls = 0;
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&data, kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_SUCCESS(aclrtMemsetAsync(data, kMiB, 1, kMiB, stream.get()));
  EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
  EXPECT_SUCCESS(aclrtFree(data));
  EXPECT_EQ(calls, 0);
}

class AllocatorOnProduct : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, AllocatorOnProduct, testing::Values("200i", "a3", "950"),
                         [](const auto& parameter) { return "On" + parameter.param; });

TEST_P(AllocatorOnProduct, ALLOC_03_ALLOC_07_ALLOC_09_TheProductIsAskedAfterTheOuterCheck) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "4G"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const bool has_it = GetParam() != "200i";
  const aclError expected = has_it ? ACL_SUCCESS : ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  aclrtStream stream = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&stream));
  const Descriptor descriptor;
  descriptor.complete(&calls);
  Registered found;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtAllocatorRegister(nullptr, descriptor.get()));
  EXPECT_EQ(aclrtAllocatorRegister(stream, descriptor.get()), expected);
  EXPECT_EQ(found.look_up(stream), expected);
  EXPECT_EQ(aclrtAllocatorUnregister(stream), expected);
}

}  // namespace
}  // namespace understudy_test
