// SPDX-License-Identifier: Apache-2.0
//
// Page-locked host memory: allocate and free. Rules: HOST.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/malloc_arguments.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<void> allocate(void** result, uint64_t size, const aclrtMallocConfig* configuration) {
  const GatePass pass;
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kHostAllocation));
  US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
  bool one_address = false;
  if (configuration != nullptr) {
    US_TRY_ASSIGN(one_address, host_configuration(*configuration, runtime->settings().product));
  }
  US_TRY_ASSIGN(
      const VirtualAddress address,
      runtime->host_memory().allocate(
          size, one_address ? DeviceAddress::kSame : DeviceAddress::kOwn, context.device()));
  *result = to_pointer(address);
  return {};
}

}  // namespace

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return guarded(US_CALL(out(hostPtr), size), size, [&]() -> Result<void> {
    US_TRY(require_pointer(hostPtr, "hostPtr"));
    US_TRY(require_size(size, "size"));
    return allocate(hostPtr, size, nullptr);
  });
}

aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg) {
  return guarded(US_CALL(out(ptr), size, attributes_of(cfg)), size, [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    US_TRY(require_size(size, "size"));
    return allocate(ptr, size, cfg);
  });
}

aclError aclrtFreeHost(void* hostPtr) {
  return guarded(US_CALL(hostPtr), [&]() -> Result<void> {
    US_TRY(require_pointer(hostPtr, "hostPtr"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kHostAllocation));
    return runtime->host_memory().free(to_address(hostPtr));
  });
}

aclError aclrtFreeHostWithDevSync(void* hostPtr) {
  return guarded(US_CALL(hostPtr), [&]() -> Result<void> {
    US_TRY(require_pointer(hostPtr, "hostPtr"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kHostAllocation));
    US_TRY(runtime->wait_for_device());
    return runtime->host_memory().free(to_address(hostPtr));
  });
}
