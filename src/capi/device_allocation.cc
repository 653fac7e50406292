// SPDX-License-Identifier: Apache-2.0
//
// Device memory: allocate and free, that of the media chapter too. Rules: MALLOC, FREE, POLICY.
#include <new>

#include "acl/acl_rt.h"
#include "acl/ops/acl_dvpp.h"
#include "capi/call.h"
#include "capi/malloc_arguments.h"
#include "observe/history.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// Whether a function puts the product's padding behind what was asked for (MALLOC-12).
enum class Padding : uint8_t { kProduct, kNone };

Result<uint64_t> rounded_size(uint64_t size) {
  const std::optional<uint64_t> rounded = align_up(size, kAllocationUnit);
  // Room for the padding of any product, so that the outer check needs to know none.
  if (rounded && *rounded <= SIZE_MAX - kAllocationUnit) return *rounded;
  return invalid_argument("size %llu is too large to be rounded up",
                          static_cast<unsigned long long>(size));
}

// The life of an allocation begins, where that is of interest.
[[gnu::cold]] void note_allocation(Runtime& runtime, VirtualAddress address, uint64_t size,
                                   const AllocationRequest& request) noexcept {
  try {
    PageUse pages;
    if (const auto view = runtime.address_space().translation().find(address)) {
      pages.page = page_size(view->page_kind);
      pages.taken = align_up(request.usable, pages.page).value_or(size);
    }
    History::begin({.kind = ObjectKind::kAllocation,
                    .number = address,
                    .size = size,
                    .device = static_cast<int32_t>(request.device),
                    .pages = pages});
  } catch (const std::bad_alloc&) {
    return;  // its life is not known; the allocation itself is good
  }
}

struct MallocCall {
  MallocPolicy policy;
  Padding padding = Padding::kNone;
  std::optional<Feature> needs;  // what not every product has
  const aclrtMallocConfig* configuration = nullptr;
};

// Everything behind the checks of pointers.
Result<void> allocate(void** result, size_t size, const MallocCall& call) {
  US_TRY(require_size(size, "size"));
  US_TRY_ASSIGN(const uint64_t rounded, rounded_size(size));
  const GatePass pass;
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  if (call.needs) US_TRY(runtime->require(*call.needs));
  US_TRY_ASSIGN(const unsigned device, runtime->current_device());
  uint8_t module = kApplicationModule;
  if (call.configuration != nullptr) {
    US_TRY_ASSIGN(module, device_configuration(*call.configuration, device));
  }
  const ProductProfile& product = runtime->settings().product;
  US_TRY(check_policy(product, call.policy));
  const bool padded =
      call.padding == Padding::kProduct && call.policy.pages != PagePolicy::kGiantOnly;
  const AllocationRequest request{.device = device,
                                  .asked = size,
                                  .usable = rounded + (padded ? product.allocation_padding : 0),
                                  .policy = call.policy.pages,
                                  .read_only = call.policy.read_only,
                                  .module = module};
  US_TRY_ASSIGN(const VirtualAddress address, runtime->device_memory().allocate(request));
  if (is_observed()) [[unlikely]]
    note_allocation(*runtime, address, size, request);
  *result = to_pointer(address);
  return {};
}

// aclrtMallocWithCfg and aclrtMallocForTaskScheduler.
Result<void> allocate_configured(void** result, size_t size, aclrtMemMallocPolicy policy,
                                 const aclrtMallocConfig* configuration) {
  US_TRY(require_pointer(result, "devPtr"));
  US_TRY(require_attributes(configuration));
  return allocate(result, size,
                  {.policy = policy_of(policy),
                   .padding = Padding::kNone,
                   .needs = Feature::kDeviceAllocation,
                   .configuration = configuration});
}

Result<void> free_allocation(void* address) {
  US_TRY(require_pointer(address, "devPtr"));
  const GatePass pass;
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  return runtime->device_memory().free(to_address(address));
}

Result<void> check_range_arguments(const void* address, size_t size) {
  US_TRY(require_pointer(address, "devPtr"));
  US_TRY(require_size(size, "size"));
  US_TRY(runtime_with(Feature::kDeviceAllocation));
  return {};
}

}  // namespace

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return guarded(US_CALL(out(devPtr), size, policy), size, [&]() -> Result<void> {
    US_TRY(require_pointer(devPtr, "devPtr"));
    return allocate(devPtr, size,
                    {.policy = policy_of(policy), .padding = Padding::kProduct, .needs = {}});
  });
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return guarded(US_CALL(out(devPtr), size, policy), size, [&]() -> Result<void> {
    US_TRY(require_pointer(devPtr, "devPtr"));
    return allocate(devPtr, size,
                    {.policy = policy_of(policy), .padding = Padding::kNone, .needs = {}});
  });
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return guarded(US_CALL(out(devPtr), size, policy), size, [&]() -> Result<void> {
    US_TRY(require_pointer(devPtr, "devPtr"));
    return allocate(devPtr, size,
                    {.policy = cached_policy_of(policy),
                     .padding = Padding::kProduct,
                     .needs = Feature::kDeviceAllocation});
  });
}

aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                            aclrtMallocConfig* cfg) {
  return guarded(US_CALL(out(devPtr), size, policy, attributes_of(cfg)), size,
                 [&] { return allocate_configured(devPtr, size, policy, cfg); });
}

aclError aclrtMallocForTaskScheduler(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                                     aclrtMallocConfig* cfg) {
  return guarded(US_CALL(out(devPtr), size, policy, attributes_of(cfg)), size,
                 [&] { return allocate_configured(devPtr, size, policy, cfg); });
}

aclError acldvppMalloc(void** devPtr, size_t size) {
  return guarded(US_CALL(out(devPtr), size), size, [&]() -> Result<void> {
    US_TRY(require_pointer(devPtr, "devPtr"));
    // Every allocation begins on a page, which is more than the media units ask for.
    return allocate(devPtr, size,
                    {.policy = policy_of(ACL_MEM_MALLOC_HUGE_FIRST),
                     .padding = Padding::kProduct,
                     .needs = {}});
  });
}

aclError aclrtFree(void* devPtr) {
  return guarded(US_CALL(devPtr), [&] { return free_allocation(devPtr); });
}

aclError acldvppFree(void* devPtr) {
  return guarded(US_CALL(devPtr), [&] { return free_allocation(devPtr); });
}

aclError aclrtFreeWithDevSync(void* devPtr) {
  return guarded(US_CALL(devPtr), [&]() -> Result<void> {
    US_TRY(require_pointer(devPtr, "devPtr"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kDeviceAllocation));
    US_TRY(runtime->wait_for_device());
    return runtime->device_memory().free(to_address(devPtr));
  });
}

// The caches of the software device are the host's, which are coherent.
aclError aclrtMemFlush(void* devPtr, size_t size) {
  return guarded(US_CALL(devPtr, size), [&] { return check_range_arguments(devPtr, size); });
}

aclError aclrtMemInvalidate(void* devPtr, size_t size) {
  return guarded(US_CALL(devPtr, size), [&] { return check_range_arguments(devPtr, size); });
}
