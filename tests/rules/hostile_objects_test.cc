// SPDX-License-Identifier: Apache-2.0
//
// A sweep with stale, foreign, interior and invented handles and addresses: never a crash, always
// the code the rules name, nothing changed.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "acl/acl_rt_allocator.h"
#include "rules/live_mapping.h"
#include "rules/pool_objects.h"
#include "rules/stream_objects.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using HostileObjects = DeviceTest;

struct Value {
  std::string name;
  void* value;
};

// Numbers around the borders of address spaces, and small ones.
std::vector<Value> invented_numbers() {
  std::vector<Value> values;
  for (const uint64_t small : {1u, 2u, 3u, 7u, 64u, 4095u, 4096u, 65536u}) {
    values.push_back({"small number " + std::to_string(small), address(small)});
  }
  for (const int bit : {47, 48, 56, 63}) {
    const uint64_t border = uint64_t{1} << bit;
    const std::string name = "2^" + std::to_string(bit);
    values.push_back({name, address(border)});
    values.push_back({name + " - 1", address(border - 1)});
    values.push_back({name + " - 2 MiB", address(border - kGranule)});
    values.push_back({name + " + 2 MiB", address(border + kGranule)});
  }
  values.push_back({"the last byte", address(UINT64_MAX)});
  values.push_back({"the last page", address(UINT64_MAX - kPage + 1)});
  values.push_back({"the last granule", address(UINT64_MAX - kGranule + 1)});
  return values;
}

// Addresses of ordinary memory of this process.
std::vector<Value> ordinary_addresses() {
  static char in_image[64];
  static const auto on_heap = std::make_unique<char[]>(2 * kGranule);
  const uint64_t heap_granule = (number(on_heap.get()) + kGranule - 1) / kGranule * kGranule;
  return {{"a variable", in_image},
          {"a heap block", on_heap.get()},
          {"an aligned heap address", address(heap_granule)}};
}

// What is close to a live handle without being it.
std::vector<Value> near_misses(void* handle, const std::string& name) {
  std::vector<Value> values = {{name + " + 1", address(number(handle) + 1)},
                               {name + " - 1", address(number(handle) - 1)},
                               {name + " + 8", address(number(handle) + 8)}};
  for (int bit = 0; bit < 64; ++bit) {
    values.push_back({name + " with bit " + std::to_string(bit) + " turned",
                      address(number(handle) ^ (uint64_t{1} << bit))});
  }
  return values;
}

void append(std::vector<Value>& values, const std::vector<Value>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

// An invented number may happen to be a live object, which is no mistake then.
void drop_live(std::vector<Value>& values, const std::vector<void*>& live) {
  std::erase_if(values, [&](const Value& value) {
    return value.value == nullptr || std::find(live.begin(), live.end(), value.value) != live.end();
  });
}

TEST_F(HostileObjects, BlockHandlesThatAreNone) {
  const Bystander bystander;
  void* const range = reserve(kGranule);
  const aclrtDrvMemHandle live = bystander.mapping().handle();
  const aclrtDrvMemHandle freed = create_block(kGranule);
  ASSERT_SUCCESS(aclrtFreePhysical(freed));
  int on_stack = 0;
  aclrtContext context = nullptr;
  aclrtStream stream = nullptr;
  ASSERT_SUCCESS(aclrtGetCurrentContext(&context));
  ASSERT_SUCCESS(aclrtCtxGetCurrentDefaultStream(&stream));

  std::vector<Value> values = {{"a freed handle", freed},
                               {"the stack", &on_stack},
                               {"a mapped address", bystander.mapping().data()},
                               {"a reserved address", range},
                               {"a context", context},
                               {"a stream", stream}};
  append(values, invented_numbers());
  append(values, ordinary_addresses());
  append(values, near_misses(live, "a live handle"));
  append(values, near_misses(freed, "a freed handle"));
  drop_live(values, {live});

  for (const Value& hostile : values) {
    SCOPED_TRACE(hostile.name);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(hostile.value));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMapMem(range, kGranule, 0, hostile.value, 0));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemMapNoAccess(range, kGranule, 0, hostile.value, 0));
    aclrtPhysicalMemProp property;
    memset(&property, 0x5a, sizeof property);
    const aclrtPhysicalMemProp untouched = property;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemGetAllocationPropertiesFromHandle(hostile.value, &property));
    EXPECT_EQ(memcmp(&property, &untouched, sizeof property), 0);
    EXPECT_NE(aclrtMemMapSetLink(hostile.value, ACL_RT_MEM_ACCESS_LINK_SIO), ACL_SUCCESS);
    bystander.expect_unchanged();
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

// Every function that takes the start of an object, with an address that starts none.
void expect_no_object_at(void* hostile, aclrtDrvMemHandle block) {
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(hostile));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(hostile));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMapMem(hostile, kGranule, 0, block, 0));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemMapNoAccess(hostile, kGranule, 0, block, 0));

  void* const mark = address(0x5a5a5a);
  aclrtDrvMemHandle handle = mark;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemRetainAllocationHandle(hostile, &handle));
  EXPECT_EQ(handle, mark);

  aclrtMemAccessDesc grant;
  memset(&grant, 0, sizeof grant);
  grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  grant.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  uint64_t flag = 77;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemSetAccess(hostile, kGranule, &grant, 1));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemGetAccess(hostile, &grant.location, &flag));
  EXPECT_EQ(flag, 77u);

  void* range = mark;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReserveMemAddress(&range, kGranule, 0, hostile, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtReserveMemAddressNoUCMemory(&range, kGiB, 0, hostile, 0));
  EXPECT_EQ(range, mark);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemMapSelectedLink(hostile, kGranule, hostile, 0));
}

void expect_in_no_mapping(void* hostile) {
  void* base = hostile;
  size_t size = 77;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemGetAddressRange(hostile, &base, &size));
  EXPECT_EQ(base, nullptr);
  EXPECT_EQ(size, 77u);
  aclrtPtrAttributes attributes;
  memset(&attributes, 0x5a, sizeof attributes);
  EXPECT_SUCCESS(aclrtPointerGetAttributes(hostile, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
}

TEST_F(HostileObjects, AddressesThatStartNothing) {
  const Bystander bystander;
  const LiveMapping& mapping = bystander.mapping();
  void* const reserved = reserve(2 * kGranule);
  void* const released = reserve(kGiB);
  ASSERT_SUCCESS(aclrtReleaseMemAddress(released));
  int on_stack = 0;

  std::vector<Value> outside = {
      {"reserved, not aligned", at(reserved, kPage)},
      {"the end of a reservation's last page", at(reserved, 2 * kGranule - 1)},
      {"released", released},
      {"inside released", at(released, kGiB / 2)},
      {"a handle", mapping.handle()},
      {"the stack", &on_stack}};
  append(outside, invented_numbers());
  append(outside, ordinary_addresses());
  drop_live(outside, {mapping.data(), reserved});
  for (const Value& hostile : outside) {
    SCOPED_TRACE(hostile.name);
    expect_no_object_at(hostile.value, mapping.handle());
    expect_in_no_mapping(hostile.value);
    bystander.expect_unchanged();
  }

  for (const size_t offset : {size_t{1}, kPage, kGranule / 2, kGranule - 1}) {
    SCOPED_TRACE(testing::Message() << "inside the mapping, offset " << offset);
    expect_no_object_at(mapping.at(offset), mapping.handle());
    bystander.expect_unchanged();
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

// Addresses no host memory can have. Below these, plain host addresses are trusted.
std::vector<Value> beyond_user_space() {
  std::vector<Value> values = {{"2^63", address(uint64_t{1} << 63)},
                               {"2^63 + 2 MiB", address((uint64_t{1} << 63) + kGranule)},
                               {"the last page", address(UINT64_MAX - kPage + 1)},
                               {"the last 8 bytes", address(UINT64_MAX - 7)}};
#if defined(__x86_64__)
  values.push_back({"2^47", address(uint64_t{1} << 47)});
  values.push_back({"2^48 - 4096", address((uint64_t{1} << 48) - kPage)});
  values.push_back({"2^48", address(uint64_t{1} << 48)});
#endif
  return values;
}

TEST_F(HostileObjects, CopiesAndSetsOnDeviceAddressesWithoutMemory) {
  constexpr size_t kCount = 4;
  const Bystander bystander;
  const LiveMapping& mapping = bystander.mapping();
  void* const reserved = reserve(2 * kGranule);
  void* const unmapped = reserve(kGranule);
  const aclrtDrvMemHandle block = create_block(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(unmapped, kGranule, 0, block, 0));
  ASSERT_SUCCESS(aclrtUnmapMem(unmapped));
  ASSERT_SUCCESS(aclrtFreePhysical(block));
  void* const released = reserve(kGiB);
  ASSERT_SUCCESS(aclrtReleaseMemAddress(released));

  std::vector<Value> values = {{"reserved", reserved},
                               {"inside reserved", at(reserved, kGranule + 1)},
                               {"unmapped", unmapped},
                               {"the end of unmapped", at(unmapped, kGranule - kCount)},
                               {"across the mapping's end", mapping.at(kGranule - 2)},
                               {"inside released", at(released, kGiB / 2)}};
  append(values, beyond_user_space());
  const std::vector<uint8_t> source = pattern(kCount, 2);
  std::vector<uint8_t> target = pattern(kCount, 3);
  for (const Value& hostile : values) {
    SCOPED_TRACE(hostile.name);
    void* const there = hostile.value;
    EXPECT_NE(aclrtMemcpy(there, kCount, source.data(), kCount, ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_SUCCESS);
    EXPECT_NE(aclrtMemcpy(target.data(), kCount, there, kCount, ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    EXPECT_NE(aclrtMemcpy(there, kCount, mapping.data(), kCount, ACL_MEMCPY_DEVICE_TO_DEVICE),
              ACL_SUCCESS);
    EXPECT_NE(aclrtMemcpy(mapping.data(), kCount, there, kCount, ACL_MEMCPY_DEVICE_TO_DEVICE),
              ACL_SUCCESS);
    EXPECT_NE(aclrtMemset(there, kCount, 1, kCount), ACL_SUCCESS);
    EXPECT_TRUE(target == pattern(kCount, 3));
    bystander.expect_unchanged();
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(unmapped));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

TEST_F(HostileObjects, ContextsAndStreamsThatAreNone) {
  const Bystander bystander;
  aclrtContext current = nullptr;
  aclrtStream stream = nullptr;
  ASSERT_SUCCESS(aclrtGetCurrentContext(&current));
  ASSERT_SUCCESS(aclrtCtxGetCurrentDefaultStream(&stream));
  aclrtContext destroyed = nullptr;
  aclrtStream stale_stream = nullptr;
  ASSERT_SUCCESS(aclrtCreateContext(&destroyed, 0));
  ASSERT_SUCCESS(aclrtCtxGetCurrentDefaultStream(&stale_stream));
  ASSERT_SUCCESS(aclrtDestroyContext(destroyed));
  ASSERT_SUCCESS(aclrtSetCurrentContext(current));

  std::vector<Value> values = {{"a destroyed context", destroyed},
                               {"a stale stream", stale_stream},
                               {"a mapped address", bystander.mapping().data()}};
  append(values, invented_numbers());
  append(values, ordinary_addresses());
  append(values, near_misses(current, "the context"));
  append(values, near_misses(destroyed, "a destroyed context"));
  append(values, near_misses(stream, "the stream"));
  drop_live(values, {current, stream});
  for (const Value& hostile : values) {
    SCOPED_TRACE(hostile.name);
    EXPECT_NE(aclrtDestroyContext(hostile.value), ACL_SUCCESS);
    EXPECT_NE(aclrtSetCurrentContext(hostile.value), ACL_SUCCESS);
    uint32_t value = 77;
    const auto cubes = ACL_RT_DEV_RES_CUBE_CORE;
    EXPECT_NE(aclrtGetStreamResLimit(hostile.value, cubes, &value), ACL_SUCCESS);
    EXPECT_NE(aclrtSetStreamResLimit(hostile.value, cubes, 1), ACL_SUCCESS);
    EXPECT_NE(aclrtResetStreamResLimit(hostile.value), ACL_SUCCESS);
    EXPECT_NE(aclrtUseStreamResInCurrentThread(hostile.value), ACL_SUCCESS);
    EXPECT_EQ(value, 77u);
    aclrtContext still = nullptr;
    EXPECT_SUCCESS(aclrtGetCurrentContext(&still));
    EXPECT_EQ(still, current);
    bystander.expect_unchanged();
  }
}

TEST_F(HostileObjects, PoolsAndTheirMemoryThatAreNone) {
  const pool::TestPool live;
  const TestStream stream;
  void* const data = live.allocate(2 * kGranule, stream.get());
  pool::TestPool destroyed;
  void* const stale = destroyed.allocate(kGranule, stream.get());
  const aclrtMemPool stale_pool = destroyed.get();
  destroyed.destroy();
  const Bystander bystander;

  std::vector<Value> values = {{"a destroyed pool", stale_pool},
                               {"memory of a destroyed pool", stale},
                               {"inside an allocation", at(data, kGranule)},
                               {"behind an allocation", at(data, 2 * kGranule)},
                               {"a mapped address", bystander.mapping().data()},
                               {"the stream", stream.get()}};
  append(values, invented_numbers());
  append(values, ordinary_addresses());
  append(values, near_misses(live.get(), "the pool"));
  append(values, near_misses(stale_pool, "a destroyed pool"));
  append(values, near_misses(data, "the allocation"));
  drop_live(values, {live.get(), data});
  for (const Value& hostile : values) {
    SCOPED_TRACE(hostile.name);
    void* out = address(77);
    uint64_t figure = 77;
    const auto attribute = ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT;
    EXPECT_EQ(aclrtMemPoolDestroy(hostile.value), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtMemPoolGetAttr(hostile.value, attribute, &figure), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtMemPoolTrimTo(hostile.value, 0), ACL_ERROR_RT_INTERNAL_ERROR);
    EXPECT_EQ(aclrtMemPoolMallocAsync(&out, 1, hostile.value, stream.get()),
              ACL_ERROR_RT_INTERNAL_ERROR);
    EXPECT_EQ(aclrtMemPoolFreeAsync(hostile.value, stream.get()), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(out, address(77));
    EXPECT_EQ(figure, 77u);
    EXPECT_EQ(live.used(), 2 * kGranule);
    bystander.expect_unchanged();
  }
}

TEST_F(HostileObjects, AllocatorDescriptorsThatAreNone) {
  const TestStream stream;
  const aclrtAllocatorDesc live = aclrtAllocatorCreateDesc();
  const aclrtAllocatorDesc destroyed = aclrtAllocatorCreateDesc();
  ASSERT_SUCCESS(aclrtAllocatorDestroyDesc(destroyed));
  const Bystander bystander;
  std::vector<Value> values = {{"a destroyed descriptor", destroyed},
                               {"a mapped address", bystander.mapping().data()},
                               {"the stream", stream.get()}};
  append(values, invented_numbers());
  append(values, ordinary_addresses());
  append(values, near_misses(live, "the descriptor"));
  append(values, near_misses(destroyed, "a destroyed descriptor"));
  drop_live(values, {live});
  for (const Value& hostile : values) {
    SCOPED_TRACE(hostile.name);
    int object = 0;
    EXPECT_EQ(aclrtAllocatorDestroyDesc(hostile.value), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtAllocatorSetObjToDesc(hostile.value, &object), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtAllocatorRegister(stream.get(), hostile.value), ACL_ERROR_INVALID_PARAM);
    bystander.expect_unchanged();
  }
  EXPECT_SUCCESS(aclrtAllocatorDestroyDesc(live));
}

}  // namespace
}  // namespace understudy_test
