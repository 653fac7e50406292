// SPDX-License-Identifier: Apache-2.0
//
// Custom allocators, registered for streams. Rules: ALLOC.
#include <type_traits>

#include "acl/acl_rt_allocator.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

static_assert(std::is_same_v<aclrtAllocatorAllocFunc, decltype(AllocatorValues::allocate)>);
static_assert(std::is_same_v<aclrtAllocatorFreeFunc, decltype(AllocatorValues::free)>);
static_assert(
    std::is_same_v<aclrtAllocatorAllocAdviseFunc, decltype(AllocatorValues::allocate_at)>);
static_assert(
    std::is_same_v<aclrtAllocatorGetAddrFromBlockFunc, decltype(AllocatorValues::address_of)>);

// Stores one value of a descriptor.
template <typename T>
Result<void> set_value(aclrtAllocatorDesc descriptor, T AllocatorValues::*member, T value,
                       const char* name) {
  US_TRY(require_pointer(descriptor, "allocatorDesc"));
  if (value == nullptr) return invalid_argument("%s is NULL", name);
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  return runtime->allocators().change(handle_number(descriptor),
                                      [&](AllocatorValues& values) { values.*member = value; });
}

template <typename T>
void write_if_wanted(T* output, T value) {
  if (output != nullptr) *output = value;
}

struct RegistrationCall {
  Runtime* runtime;
  StreamReference stream;
};

// These know streams of any context: they only remember something for them.
Result<RegistrationCall> registration_call(aclrtStream stream) {
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kAllocatorRegistry));
  US_TRY_ASSIGN(const StreamReference found, runtime->streams().find(handle_number(stream)));
  return RegistrationCall{runtime, found};
}

}  // namespace

aclrtAllocatorDesc aclrtAllocatorCreateDesc(void) {
  aclrtAllocatorDesc descriptor = nullptr;
  (void)guarded(US_CALL(), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    descriptor = handle_pointer(runtime->allocators().create());
    return {};
  });
  return descriptor;
}

aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc) {
  return guarded(US_CALL(allocatorDesc), [&]() -> Result<void> {
    US_TRY(require_pointer(allocatorDesc, "allocatorDesc"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    return runtime->allocators().destroy(handle_number(allocatorDesc));
  });
}

aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocator allocator) {
  return guarded(US_CALL(allocatorDesc, allocator), [&] {
    return set_value(allocatorDesc, &AllocatorValues::object, allocator, "allocator");
  });
}

aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                          aclrtAllocatorAllocFunc func) {
  return guarded(US_CALL(allocatorDesc, func), [&] {
    return set_value(allocatorDesc, &AllocatorValues::allocate, func, "func");
  });
}

aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                         aclrtAllocatorFreeFunc func) {
  return guarded(US_CALL(allocatorDesc, func),
                 [&] { return set_value(allocatorDesc, &AllocatorValues::free, func, "func"); });
}

aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                aclrtAllocatorAllocAdviseFunc func) {
  return guarded(US_CALL(allocatorDesc, func), [&] {
    return set_value(allocatorDesc, &AllocatorValues::allocate_at, func, "func");
  });
}

aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                     aclrtAllocatorGetAddrFromBlockFunc func) {
  return guarded(US_CALL(allocatorDesc, func), [&] {
    return set_value(allocatorDesc, &AllocatorValues::address_of, func, "func");
  });
}

aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc) {
  return guarded(US_CALL(stream, allocatorDesc), [&]() -> Result<void> {
    US_TRY(require_pointer(stream, "stream"));
    US_TRY(require_pointer(allocatorDesc, "allocatorDesc"));
    US_TRY_ASSIGN(const RegistrationCall call, registration_call(stream));
    return call.runtime->allocators().add(call.stream, handle_number(allocatorDesc));
  });
}

aclError aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc* allocatorDesc,
                                   aclrtAllocator* allocator, aclrtAllocatorAllocFunc* allocFunc,
                                   aclrtAllocatorFreeFunc* freeFunc,
                                   aclrtAllocatorAllocAdviseFunc* allocAdviseFunc,
                                   aclrtAllocatorGetAddrFromBlockFunc* getAddrFromBlockFunc) {
  return guarded(US_CALL(stream, allocatorDesc, allocator, allocFunc, freeFunc, allocAdviseFunc,
                         getAddrFromBlockFunc),
                 [&]() -> Result<void> {
                   US_TRY(require_pointer(stream, "stream"));
                   US_TRY(require_pointer(allocatorDesc, "allocatorDesc"));
                   US_TRY_ASSIGN(const RegistrationCall call, registration_call(stream));
                   US_TRY_ASSIGN(const Allocators::Registration found,
                                 call.runtime->allocators().find(call.stream));
                   *allocatorDesc = handle_pointer(found.descriptor);
                   write_if_wanted(allocator, found.values.object);
                   write_if_wanted(allocFunc, found.values.allocate);
                   write_if_wanted(freeFunc, found.values.free);
                   write_if_wanted(allocAdviseFunc, found.values.allocate_at);
                   write_if_wanted(getAddrFromBlockFunc, found.values.address_of);
                   return {};
                 });
}

aclError aclrtAllocatorUnregister(aclrtStream stream) {
  return guarded(US_CALL(stream), [&]() -> Result<void> {
    US_TRY(require_pointer(stream, "stream"));
    US_TRY_ASSIGN(const RegistrationCall call, registration_call(stream));
    call.runtime->allocators().remove(call.stream);
    return {};
  });
}
