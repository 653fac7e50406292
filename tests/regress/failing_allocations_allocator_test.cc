// SPDX-License-Identifier: Apache-2.0
//
// Failing allocations in the functions about custom allocators.
#include "acl/acl_rt_allocator.h"
#include "regress/failing_allocations.h"

namespace understudy_test::failing {
namespace {

void* allocate(aclrtAllocator, size_t) { return nullptr; }
void* allocate_at(aclrtAllocator, size_t, aclrtAllocatorAddr) { return nullptr; }
void free_block(aclrtAllocator, aclrtAllocatorBlock) {}
void* address_of(aclrtAllocatorBlock) { return nullptr; }

struct Descriptor {
  Descriptor() {
    EXPECT_SUCCESS(aclrtAllocatorSetObjToDesc(get, this));
    EXPECT_SUCCESS(aclrtAllocatorSetAllocFuncToDesc(get, allocate));
    EXPECT_SUCCESS(aclrtAllocatorSetFreeFuncToDesc(get, free_block));
    EXPECT_SUCCESS(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(get, address_of));
  }
  ~Descriptor() {
    if (get != nullptr) {
      EXPECT_SUCCESS(aclrtAllocatorDestroyDesc(get));
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  aclrtAllocatorDesc get = aclrtAllocatorCreateDesc();
};

US_SCENARIO(aclrtAllocatorCreateDesc, Call) {
  aclrtAllocatorDesc made = nullptr;
  probe.call([&]() -> aclError {
    made = aclrtAllocatorCreateDesc();
    return made != nullptr ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
  });
  probe.after([&] { EXPECT_SUCCESS(aclrtAllocatorDestroyDesc(made)); });
}
US_SCENARIO(aclrtAllocatorDestroyDesc, Call) {
  Descriptor descriptor;
  probe.call([&] { return aclrtAllocatorDestroyDesc(descriptor.get); });
  probe.after([&] { descriptor.get = nullptr; });
}
US_SCENARIO(aclrtAllocatorSetObjToDesc, Call) {
  const Descriptor descriptor;
  probe.call([&] { return aclrtAllocatorSetObjToDesc(descriptor.get, &probe); });
}
US_SCENARIO(aclrtAllocatorSetAllocFuncToDesc, Call) {
  const Descriptor descriptor;
  probe.call([&] { return aclrtAllocatorSetAllocFuncToDesc(descriptor.get, allocate); });
}
US_SCENARIO(aclrtAllocatorSetFreeFuncToDesc, Call) {
  const Descriptor descriptor;
  probe.call([&] { return aclrtAllocatorSetFreeFuncToDesc(descriptor.get, free_block); });
}
US_SCENARIO(aclrtAllocatorSetAllocAdviseFuncToDesc, Call) {
  const Descriptor descriptor;
  probe.call([&] { return aclrtAllocatorSetAllocAdviseFuncToDesc(descriptor.get, allocate_at); });
}
US_SCENARIO(aclrtAllocatorSetGetAddrFromBlockFuncToDesc, Call) {
  const Descriptor descriptor;
  probe.call(
      [&] { return aclrtAllocatorSetGetAddrFromBlockFuncToDesc(descriptor.get, address_of); });
}
US_SCENARIO(aclrtAllocatorRegister, Call) {
  const Stage on;
  const Descriptor descriptor;
  probe.call([&] { return aclrtAllocatorRegister(on.stream, descriptor.get); });
}
US_SCENARIO(aclrtAllocatorGetByStream, Call) {
  const Stage on;
  const Descriptor descriptor;
  EXPECT_SUCCESS(aclrtAllocatorRegister(on.stream, descriptor.get));
  probe.call([&] {
    return aclrtAllocatorGetByStream(on.stream, &probe.out<aclrtAllocatorDesc>(), nullptr, nullptr,
                                     nullptr, nullptr, nullptr);
  });
}
US_SCENARIO(aclrtAllocatorUnregister, Call) {
  const Stage on;
  const Descriptor descriptor;
  EXPECT_SUCCESS(aclrtAllocatorRegister(on.stream, descriptor.get));
  probe.call([&] { return aclrtAllocatorUnregister(on.stream); });
}

}  // namespace
}  // namespace understudy_test::failing
