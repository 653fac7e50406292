// SPDX-License-Identifier: Apache-2.0
//
// Host memory of the program's own, registered for devices. Rules: HREG.
#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<VirtualAddress> add_registration(Runtime& runtime, const void* address, uint64_t size,
                                        RegistrationKind kind) {
  US_TRY(runtime.current_context());
  const std::optional<VirtualRange> range = VirtualRange::make(to_address(address), size);
  if (!range) {
    return Error::format(ErrorCode::kInvalidParam,
                         "size %llu at %p runs past the end of all addresses",
                         static_cast<unsigned long long>(size), address);
  }
  return runtime.host_memory().add_registration(*range, kind);
}

constexpr uint32_t kReserved = ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY;
constexpr uint32_t kFlags = ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED | kReserved;

Error reserved_kind(const char* name, uint32_t value) {
  return Error::format(ErrorCode::kNotSupported, "%s is 0x%x, of which only MAPPED is supported",
                       name, value);
}

}  // namespace

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  return guarded(US_CALL(ptr, size, type, out(devPtr)), size, [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    US_TRY(require_size(size, "size"));
    US_TRY(require_pointer(devPtr, "devPtr"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kHostRegistration));
    // IOMEMORY and READONLY are reserved, everything else is unknown.
    if (type != ACL_HOST_REGISTER_MAPPED) return reserved_kind("type", static_cast<uint32_t>(type));
    US_TRY_ASSIGN(const VirtualAddress device,
                  add_registration(*runtime, ptr, size, {.mapped = true}));
    *devPtr = to_pointer(device);
    return {};
  });
}

aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
  return guarded(US_CALL(ptr, size, flag), size, [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    US_TRY(require_size(size, "size"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kHostRegistration));
    if (flag == 0 || (flag & ~kFlags) != 0) {
      return Error::format(ErrorCode::kInvalidParam, "flag is 0x%x and must be some of 0x%x", flag,
                           kFlags);
    }
    if ((flag & kReserved) != 0) return reserved_kind("flag", flag);
    US_TRY(add_registration(*runtime, ptr, size,
                            {.mapped = (flag & ACL_HOST_REG_MAPPED) != 0,
                             .pinned = (flag & ACL_HOST_REG_PINNED) != 0}));
    return {};
  });
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag) {
  return guarded(US_CALL(pHost, out(pDevice), flag), [&]() -> Result<void> {
    US_TRY(require_pointer(pHost, "pHost"));
    US_TRY(require_pointer(pDevice, "pDevice"));
    US_TRY(require_zero(flag, "flag"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kHostRegistration));
    US_TRY_ASSIGN(const VirtualAddress device,
                  runtime->host_memory().device_address(to_address(pHost)));
    *pDevice = to_pointer(device);
    return {};
  });
}

aclError aclrtHostUnregister(void* ptr) {
  return guarded(US_CALL(ptr), [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kHostRegistration));
    return runtime->host_memory().remove_registration(to_address(ptr));
  });
}

aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
                                     aclrtHostMemMapCapability* capabilities) {
  return guarded(US_CALL(deviceId, hacType, capabilities), [&]() -> Result<void> {
    US_TRY(require_pointer(capabilities, "capabilities"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kHostMapCapabilities));
    const auto engine = static_cast<uint32_t>(hacType);
    if (engine > ACL_RT_HAC_TYPE_CCU) {
      return Error::format(ErrorCode::kInvalidParam, "hacType is %d, which is no engine",
                           static_cast<int>(hacType));
    }
    US_TRY(runtime->devices().check(deviceId, "deviceId"));
    US_TRY(runtime->current_context());
    const bool can = (runtime->settings().product.host_engines >> engine & 1) != 0;
    *capabilities = can ? ACL_RT_HOST_MEM_MAP_SUPPORTED : ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED;
    return {};
  });
}
