// SPDX-License-Identifier: Apache-2.0
//
// Failing allocations in the functions that allocate, copy and set, and in virtual memory.
#include <sys/mman.h>

#include "acl/ops/acl_dvpp.h"
#include "regress/failing_allocations.h"

namespace understudy_test::failing {
namespace {

constexpr size_t kSmall = 4 * kKiB;
constexpr size_t kSize = Stage::kSize;

// ---- Allocations ----

void frees(Probe& probe) {
  probe.after([&] { EXPECT_SUCCESS(aclrtFree(probe.out<void*>())); });
}
US_SCENARIO(aclrtMalloc, Small) {
  probe.call([&] { return aclrtMalloc(&probe.out<void*>(), kSmall, kHugeFirst); });
  frees(probe);
}
US_SCENARIO(aclrtMalloc, Large) {
  probe.call([&] { return aclrtMalloc(&probe.out<void*>(), 5 * kMiB, kHugeFirst); });
  frees(probe);
}
US_SCENARIO(aclrtMallocAlign32, Small) {
  probe.call([&] { return aclrtMallocAlign32(&probe.out<void*>(), kSmall, kHugeFirst); });
  frees(probe);
}
US_SCENARIO(aclrtMallocCached, Large) {
  probe.call([&] { return aclrtMallocCached(&probe.out<void*>(), kBlock, kHugeFirst); });
  frees(probe);
}
aclrtMallocAttribute module_attribute = {ACL_RT_MEM_ATTR_MODULE_ID, {.moduleId = 33}};
US_SCENARIO(aclrtMallocWithCfg, Large) {
  aclrtMallocConfig configuration = {&module_attribute, 1};
  probe.call(
      [&] { return aclrtMallocWithCfg(&probe.out<void*>(), kBlock, kHugeFirst, &configuration); });
  frees(probe);
}
US_SCENARIO(aclrtMallocForTaskScheduler, Large) {
  probe.call([&] {
    return aclrtMallocForTaskScheduler(&probe.out<void*>(), kBlock, kHugeFirst, nullptr);
  });
  frees(probe);
}
US_SCENARIO(acldvppMalloc, Small) {
  probe.call([&] { return acldvppMalloc(&probe.out<void*>(), kSmall); });
  probe.after([&] { EXPECT_SUCCESS(acldvppFree(probe.out<void*>())); });
}
US_SCENARIO(acldvppFree, Small) {
  void* data = nullptr;
  EXPECT_SUCCESS(acldvppMalloc(&data, kSmall));
  probe.call([&] { return acldvppFree(data); });
}
template <typename Free>
void free_one(Probe& probe, size_t size, Free free) {
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&data, size, kHugeFirst));
  EXPECT_SUCCESS(aclrtMemset(data, size, 1, size));
  probe.call([&] { return free(data); });
}
US_SCENARIO(aclrtFree, Small) { free_one(probe, kSmall, aclrtFree); }
US_SCENARIO(aclrtFree, Large) { free_one(probe, 5 * kMiB, aclrtFree); }
US_SCENARIO(aclrtFreeWithDevSync, Large) { free_one(probe, kBlock, aclrtFreeWithDevSync); }
US_ONE_CALL(aclrtMemFlush, aclrtMemFlush(on.device, kSize))
US_ONE_CALL(aclrtMemInvalidate, aclrtMemInvalidate(on.device, kSize))
US_ONE_CALL(aclrtGetMemInfo,
            aclrtGetMemInfo(ACL_HBM_MEM, &probe.out<size_t>(0), &probe.out<size_t>(1)))
US_SCENARIO(aclrtGetMemUsageInfo, Call) {
  const Stage on;
  size_t count = 0;  // set to 0 before the work (INFO-12)
  probe.call([&] { return aclrtGetMemUsageInfo(0, &probe.out<aclrtMemUsageInfo>(0), 16, &count); });
}
US_SCENARIO(aclrtCheckMemType, Call) {
  const Stage on;
  void* addresses[] = {on.device, on.other_device};
  probe.call([&] {
    return aclrtCheckMemType(addresses, 2, ACL_RT_MEM_TYPE_DEV, &probe.out<uint32_t>(), 0);
  });
}

// ---- Host memory ----

US_SCENARIO(aclrtMallocHost, Small) {
  probe.call([&] { return aclrtMallocHost(&probe.out<void*>(), kSmall); });
  probe.after([&] { EXPECT_SUCCESS(aclrtFreeHost(probe.out<void*>())); });
}
US_SCENARIO(aclrtMallocHost, Large) {
  probe.call([&] { return aclrtMallocHost(&probe.out<void*>(), kBlock); });
  probe.after([&] { EXPECT_SUCCESS(aclrtFreeHost(probe.out<void*>())); });
}
US_SCENARIO(aclrtMallocHostWithCfg, Small) {
  aclrtMallocConfig configuration = {&module_attribute, 1};
  probe.call([&] { return aclrtMallocHostWithCfg(&probe.out<void*>(), kSmall, &configuration); });
  probe.after([&] { EXPECT_SUCCESS(aclrtFreeHost(probe.out<void*>())); });
}
US_SCENARIO(aclrtFreeHost, Small) {
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMallocHost(&data, kSmall));
  probe.call([&] { return aclrtFreeHost(data); });
}
US_SCENARIO(aclrtFreeHostWithDevSync, Large) {
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMallocHost(&data, kBlock));
  probe.call([&] { return aclrtFreeHostWithDevSync(data); });
}

// Memory of the program, given back with its scope.
class PlainPages {
 public:
  PlainPages()
      : data(mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~PlainPages() { munmap(data, kBlock); }
  PlainPages(const PlainPages&) = delete;
  PlainPages& operator=(const PlainPages&) = delete;
  void* const data;
};
US_SCENARIO(aclrtHostRegister, Call) {
  const PlainPages pages;
  probe.call([&] {
    return aclrtHostRegister(pages.data, kBlock, ACL_HOST_REGISTER_MAPPED, &probe.out<void*>());
  });
  probe.after([&] { EXPECT_SUCCESS(aclrtHostUnregister(pages.data)); });
}
US_SCENARIO(aclrtHostRegisterV2, Call) {
  const PlainPages pages;
  probe.call([&] { return aclrtHostRegisterV2(pages.data, kBlock, ACL_HOST_REG_PINNED); });
  probe.after([&] { EXPECT_SUCCESS(aclrtHostUnregister(pages.data)); });
}
US_SCENARIO(aclrtHostGetDevicePointer, Call) {
  const PlainPages pages;
  EXPECT_SUCCESS(aclrtHostRegisterV2(pages.data, kBlock, ACL_HOST_REG_MAPPED));
  probe.call([&] { return aclrtHostGetDevicePointer(pages.data, &probe.out<void*>(), 0); });
  EXPECT_SUCCESS(aclrtHostUnregister(pages.data));
}
US_SCENARIO(aclrtHostUnregister, Call) {
  const PlainPages pages;
  EXPECT_SUCCESS(aclrtHostRegisterV2(pages.data, kBlock, ACL_HOST_REG_PINNED));
  probe.call([&] { return aclrtHostUnregister(pages.data); });
}
US_ONE_CALL(aclrtHostMemMapCapabilities,
            aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_STARS,
                                        &probe.out<aclrtHostMemMapCapability>()))

// ---- Copies and fills ----

US_ONE_CALL(aclrtMemcpy, aclrtMemcpy(on.device, kSize, on.host, kSize, ACL_MEMCPY_HOST_TO_DEVICE))
// Large and cold: commits memory, and asks for help.
US_SCENARIO(aclrtMemcpy, Large) {
  constexpr size_t kLarge = 48 * kMiB;
  void* device = nullptr;
  std::vector<uint8_t> bytes(kLarge, 7);
  EXPECT_SUCCESS(aclrtMalloc(&device, kLarge, kHugeFirst));
  probe.call(
      [&] { return aclrtMemcpy(device, kLarge, bytes.data(), kLarge, ACL_MEMCPY_HOST_TO_DEVICE); });
  EXPECT_SUCCESS(aclrtFree(device));
}
US_ONE_CALL(aclrtMemcpy2d,
            aclrtMemcpy2d(on.device, 128, on.host, 128, 64, 8, ACL_MEMCPY_HOST_TO_DEVICE))
US_ONE_CALL(aclrtMemset, aclrtMemset(on.device, kSize, 3, kSize))
US_ONE_CALL(aclrtMemsetD32, aclrtMemsetD32(on.device, kSize, 3, kSize / 4))

// Many elements, more than any list has room for from the start.
struct Batch {
  explicit Batch(const Stage& on) {
    for (size_t i = 0; i < kCount; ++i) {
      targets[i] = at(on.device, i * 64);
      sources[i] = at(on.host, i * 64);
      sizes[i] = 64;
    }
    attribute.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    attribute.srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST};
  }
  static constexpr size_t kCount = 100;
  std::array<void*, kCount> targets;
  std::array<void*, kCount> sources;
  std::array<size_t, kCount> sizes;
  aclrtMemcpyBatchAttr attribute{};
  size_t first = 0;
};
US_SCENARIO(aclrtMemcpyBatch, Call) {
  const Stage on;
  Batch batch(on);
  probe.allow_outputs();
  probe.call([&] {
    return aclrtMemcpyBatch(batch.targets.data(), batch.sizes.data(), batch.sources.data(),
                            batch.sizes.data(), Batch::kCount, &batch.attribute, &batch.first, 1,
                            &probe.out<size_t>());
  });
}
US_SCENARIO(aclrtMemcpyBatchV2, Call) {
  const Stage on;
  Batch batch(on);
  probe.call([&] {
    return aclrtMemcpyBatchV2(batch.targets.data(), batch.sizes.data(), batch.sources.data(),
                              batch.sizes.data(), Batch::kCount, &batch.attribute, &batch.first, 1);
  });
}
US_SCENARIO(aclrtMemcpyBatchAsync, Call) {
  const Stage on;
  Batch batch(on);
  probe.allow_outputs();
  probe.call([&] {
    return aclrtMemcpyBatchAsync(batch.targets.data(), batch.sizes.data(), batch.sources.data(),
                                 batch.sizes.data(), Batch::kCount, &batch.attribute, &batch.first,
                                 1, &probe.out<size_t>(), on.stream);
  });
}
US_SCENARIO(aclrtMemcpyBatchAsyncV2, Call) {
  const Stage on;
  Batch batch(on);
  probe.call([&] {
    return aclrtMemcpyBatchAsyncV2(batch.targets.data(), batch.sizes.data(), batch.sources.data(),
                                   batch.sizes.data(), Batch::kCount, &batch.attribute,
                                   &batch.first, 1, on.stream);
  });
}
US_ONE_CALL(aclrtMemcpyAsync, aclrtMemcpyAsync(on.device, kSize, on.host, kSize,
                                               ACL_MEMCPY_HOST_TO_DEVICE, on.stream))
// From memory that is not page-locked, whose bytes the call itself has to take along.
US_ONE_CALL(aclrtReduceAsync,
            aclrtReduceAsync(on.device, on.other_device, kSize, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM,
                             ACL_FLOAT, on.stream, nullptr))
US_SCENARIO(aclrtMemcpyAsync, Pageable) {
  const Stage on;
  std::vector<uint8_t> bytes(kSize, 7);
  probe.call([&] {
    return aclrtMemcpyAsync(on.device, kSize, bytes.data(), kSize, ACL_MEMCPY_HOST_TO_DEVICE,
                            on.stream);
  });
}
US_ONE_CALL(aclrtMemcpyAsyncWithCondition,
            aclrtMemcpyAsyncWithCondition(on.device, kSize, on.host, kSize,
                                          ACL_MEMCPY_HOST_TO_DEVICE, on.stream))
US_ONE_CALL(aclrtMemcpy2dAsync, aclrtMemcpy2dAsync(on.device, 128, on.host, 128, 64, 8,
                                                   ACL_MEMCPY_HOST_TO_DEVICE, on.stream))
US_ONE_CALL(aclrtMemsetAsync, aclrtMemsetAsync(on.device, kSize, 3, kSize, on.stream))
US_ONE_CALL(aclrtMemsetD32Async, aclrtMemsetD32Async(on.device, kSize, 3, kSize / 4, on.stream))

// ---- Addresses ----

US_ONE_CALL(aclrtPointerGetAttributes,
            aclrtPointerGetAttributes(on.device, &probe.out<aclrtPtrAttributes>()))
US_ONE_CALL(aclrtMemGetAddressRange,
            aclrtMemGetAddressRange(on.device, &probe.out<void*>(0), &probe.out<size_t>(1)))
US_SCENARIO(aclrtMemP2PMap, Call) {
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMallocAlign32(&data, kBlock, ACL_MEM_MALLOC_HUGE_ONLY_P2P));
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  probe.call([&] { return aclrtMemP2PMap(data, kBlock, 1, 0); });
  EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(1));
  EXPECT_SUCCESS(aclrtFree(data));
}

// ---- Virtual memory ----

US_SCENARIO(aclrtMemGetAllocationGranularity, Call) {
  aclrtPhysicalMemProp property = block_property();
  probe.call([&] {
    return aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                            &probe.out<size_t>());
  });
}
aclError create(aclrtDrvMemHandle& handle, const aclrtPhysicalMemProp& property) {
  return aclrtMallocPhysical(&handle, kBlock, &property, 0);
}
US_SCENARIO(aclrtMallocPhysical, OnTheDevice) {
  probe.call([&] { return create(probe.out<aclrtDrvMemHandle>(), block_property()); });
  probe.after([&] { EXPECT_SUCCESS(aclrtFreePhysical(probe.out<aclrtDrvMemHandle>())); });
}
US_SCENARIO(aclrtMallocPhysical, OnTheHost) {
  probe.call([&] {
    return create(probe.out<aclrtDrvMemHandle>(),
                  block_property(ACL_DDR_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST));
  });
  probe.after([&] { EXPECT_SUCCESS(aclrtFreePhysical(probe.out<aclrtDrvMemHandle>())); });
}
US_SCENARIO(aclrtFreePhysical, Unmapped) {
  const aclrtDrvMemHandle handle = create_block(kBlock);
  probe.call([&] { return aclrtFreePhysical(handle); });
}
US_SCENARIO(aclrtReserveMemAddress, Anywhere) {
  probe.call([&] { return aclrtReserveMemAddress(&probe.out<void*>(), kBlock, 0, nullptr, 0); });
  probe.after([&] { EXPECT_SUCCESS(aclrtReleaseMemAddress(probe.out<void*>())); });
}
US_SCENARIO(aclrtReserveMemAddress, AtAnAddress) {
  void* const wanted = address(uint64_t{18} << 40);
  probe.call([&] { return aclrtReserveMemAddress(&probe.out<void*>(), kBlock, 0, wanted, 0); });
  probe.after([&] { EXPECT_SUCCESS(aclrtReleaseMemAddress(probe.out<void*>())); });
}
US_SCENARIO(aclrtReserveMemAddressNoUCMemory, AtAnAddress) {
  void* const wanted = address(200 * kTiB);
  probe.call(
      [&] { return aclrtReserveMemAddressNoUCMemory(&probe.out<void*>(), kGiB, 0, wanted, 0); });
  probe.after([&] { EXPECT_SUCCESS(aclrtReleaseMemAddress(probe.out<void*>())); });
}
US_SCENARIO(aclrtReleaseMemAddress, Call) {
  void* const start = reserve(kBlock);
  probe.call([&] { return aclrtReleaseMemAddress(start); });
}

// A block, and addresses that it can be mapped at or is.
struct Mapped {
  explicit Mapped(bool is_mapped, const aclrtPhysicalMemProp& property = block_property())
      : start(reserve(kBlock)), handle(create_block(kBlock, property)) {
    if (is_mapped) {
      EXPECT_SUCCESS(aclrtMapMem(start, kBlock, 0, handle, 0));
    }
  }
  ~Mapped() {
    if (!is_unmapped) (void)aclrtUnmapMem(start);
    EXPECT_SUCCESS(aclrtFreePhysical(handle));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(start));
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  void* const start;
  const aclrtDrvMemHandle handle;
  bool is_unmapped = false;
};
US_SCENARIO(aclrtMapMem, OnTheDevice) {
  const Mapped on(false);
  probe.call([&] { return aclrtMapMem(on.start, kBlock, 0, on.handle, 0); });
}
US_SCENARIO(aclrtMapMem, OnTheHost) {
  const Mapped on(false, block_property(ACL_DDR_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST));
  probe.call([&] { return aclrtMapMem(on.start, kBlock, 0, on.handle, 0); });
}
US_SCENARIO(aclrtMemMapNoAccess, Call) {
  const Mapped on(false);
  probe.call([&] { return aclrtMemMapNoAccess(on.start, kBlock, 0, on.handle, 0); });
}
US_SCENARIO(aclrtMemMapSelectedLink, Call) {
  const Mapped on(true);
  void* const alias = reserve(kBlock);
  probe.call([&] { return aclrtMemMapSelectedLink(alias, kBlock, on.start, 0); });
  probe.after([&] { EXPECT_SUCCESS(aclrtUnmapMem(alias)); });
  EXPECT_SUCCESS(aclrtReleaseMemAddress(alias));
}
US_SCENARIO(aclrtMemMapSetLink, Call) {
  const Mapped on(false);
  probe.call([&] { return aclrtMemMapSetLink(on.handle, ACL_RT_MEM_ACCESS_LINK_HCCS); });
}
US_SCENARIO(aclrtUnmapMem, OnTheDevice) {
  Mapped on(true);
  on.is_unmapped = true;
  probe.call([&] { return aclrtUnmapMem(on.start); });
}
US_SCENARIO(aclrtUnmapMem, OnTheHost) {
  Mapped on(true, block_property(ACL_DDR_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST));
  on.is_unmapped = true;
  probe.call([&] { return aclrtUnmapMem(on.start); });
}
// The last that keeps the block is its mapping.
US_SCENARIO(aclrtUnmapMem, OfAFreedBlock) {
  void* const start = reserve(kBlock);
  const aclrtDrvMemHandle handle = create_block(kBlock);
  EXPECT_SUCCESS(aclrtMapMem(start, kBlock, 0, handle, 0));
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  probe.call([&] { return aclrtUnmapMem(start); });
  EXPECT_SUCCESS(aclrtReleaseMemAddress(start));
}
US_SCENARIO(aclrtMemRetainAllocationHandle, Call) {
  const Mapped on(true);
  probe.call(
      [&] { return aclrtMemRetainAllocationHandle(on.start, &probe.out<aclrtDrvMemHandle>()); });
  probe.after([&] { EXPECT_SUCCESS(aclrtFreePhysical(probe.out<aclrtDrvMemHandle>())); });
}
US_SCENARIO(aclrtMemGetAllocationPropertiesFromHandle, Call) {
  const Mapped on(false);
  probe.call([&] {
    return aclrtMemGetAllocationPropertiesFromHandle(on.handle, &probe.out<aclrtPhysicalMemProp>());
  });
}
US_SCENARIO(aclrtMemSetAccess, ForTheHost) {
  const Mapped on(true);
  aclrtMemAccessDesc grant{};
  grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  grant.location = {0, ACL_MEM_LOCATION_TYPE_HOST};
  probe.call([&] { return aclrtMemSetAccess(on.start, kBlock, &grant, 1); });
}
US_SCENARIO(aclrtMemSetAccess, ForADevice) {
  const Mapped on(true);
  aclrtMemAccessDesc grant{};
  grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  grant.location = {1, ACL_MEM_LOCATION_TYPE_DEVICE};
  probe.call([&] { return aclrtMemSetAccess(on.start, kBlock, &grant, 1); });
}
US_SCENARIO(aclrtMemGetAccess, Call) {
  const Mapped on(true);
  aclrtMemLocation location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  probe.call([&] { return aclrtMemGetAccess(on.start, &location, &probe.out<uint64_t>()); });
}

}  // namespace
}  // namespace understudy_test::failing
