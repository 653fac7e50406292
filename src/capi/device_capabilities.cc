// SPDX-License-Identifier: Apache-2.0
//
// Where a device is on the bus, and what it can do in one step to memory that is not its own.
// Rules: PCI, ATOM.
#include <algorithm>
#include <cstring>
#include <span>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "device/pci_bus_id.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

bool is_atomic_operation(aclrtAtomicOperation operation) {
  const int number = operation;
  return (number >= ACL_RT_ATOMIC_OPERATION_INTEGER_ADD &&
          number <= ACL_RT_ATOMIC_OPERATION_FLOAT_MAX) ||
         (number >= ACL_RT_ATOMIC_OPERATION_DMA_ADD && number <= ACL_RT_ATOMIC_OPERATION_DMA_MAX) ||
         (number >= ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_ADD &&
          number <= ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_EXCH);
}

Result<Runtime*> atomic_call(const uint32_t* capabilities, const aclrtAtomicOperation* operations,
                             uint32_t count) {
  US_TRY(require_pointer(capabilities, "capabilities"));
  US_TRY(require_pointer(operations, "operations"));
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kDeviceArithmetic));
  if (count == 0) return Error::format(ErrorCode::kInvalidParam, "count is 0");
  return runtime;
}

// No kernel runs here that could change memory of others, so the device can do none of them
// (ATOM-05).
Result<void> tell_none(uint32_t* capabilities, std::span<const aclrtAtomicOperation> operations) {
  for (size_t i = 0; i < operations.size(); ++i) {
    if (is_atomic_operation(operations[i])) continue;
    return Error::format(ErrorCode::kInvalidParam,
                         "operations[%zu] is %d, which is no atomic operation", i,
                         static_cast<int>(operations[i]));
  }
  std::fill_n(capabilities, operations.size(), 0U);
  return {};
}

}  // namespace

aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len) {
  return guarded(US_CALL(deviceId, text(pciBusId), len), [&]() -> Result<void> {
    US_TRY(require_pointer(pciBusId, "pciBusId"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPcie));
    if (len < static_cast<int32_t>(PciBusId::kTextSize)) {
      return Error::format(ErrorCode::kInvalidParam, "len is %d and must be at least %zu", len,
                           PciBusId::kTextSize);
    }
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    const auto text = PciBusId::of_device(runtime->settings().visible_devices[device]).text();
    memcpy(pciBusId, text.data(), text.size());
    return {};
  });
}

aclError aclrtDeviceGetByPCIBusId(const char* pciBusId, int32_t* deviceId) {
  return guarded(US_CALL(text(pciBusId), out(deviceId)), [&]() -> Result<void> {
    US_TRY(require_pointer(pciBusId, "pciBusId"));
    US_TRY(require_pointer(deviceId, "deviceId"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPcie));
    const std::string_view text(pciBusId, strnlen(pciBusId, PciBusId::kTextSize));
    const std::optional<PciBusId> wanted = PciBusId::parse(text);
    if (!wanted) {
      return Error::format(ErrorCode::kInvalidParam,
                           "pciBusId \"%.*s\" is not of the form 0000:3d:00.0",
                           static_cast<int>(text.size()), text.data());
    }
    const std::vector<int32_t>& visible = runtime->settings().visible_devices;
    const auto found = std::ranges::find(visible, *wanted, PciBusId::of_device);
    if (found == visible.end()) {
      return Error::format(ErrorCode::kInvalidDevice, "pciBusId %s is no device of this process",
                           wanted->text().data());
    }
    *deviceId = static_cast<int32_t>(found - visible.begin());
    return {};
  });
}

aclError aclrtDeviceGetHostAtomicCapabilities(uint32_t* capabilities,
                                              const aclrtAtomicOperation* operations,
                                              const uint32_t count, int32_t deviceId) {
  return guarded(
      US_CALL(capabilities, list(operations, count), count, deviceId), [&]() -> Result<void> {
        US_TRY_ASSIGN(Runtime* const runtime, atomic_call(capabilities, operations, count));
        US_TRY(runtime->devices().check(deviceId, "deviceId"));
        return tell_none(capabilities, {operations, count});
      });
}

aclError aclrtDeviceGetP2PAtomicCapabilities(uint32_t* capabilities,
                                             const aclrtAtomicOperation* operations,
                                             const uint32_t count, int32_t srcDeviceId,
                                             int32_t dstDeviceId) {
  return guarded(US_CALL(capabilities, list(operations, count), count, srcDeviceId, dstDeviceId),
                 [&]() -> Result<void> {
                   US_TRY_ASSIGN(Runtime* const runtime,
                                 atomic_call(capabilities, operations, count));
                   US_TRY(runtime->devices().check(srcDeviceId, "srcDeviceId"));
                   US_TRY(runtime->devices().check(dstDeviceId, "dstDeviceId"));
                   if (srcDeviceId == dstDeviceId) {
                     return Error::format(ErrorCode::kInvalidParam,
                                          "srcDeviceId and dstDeviceId are both %d", srcDeviceId);
                   }
                   return tell_none(capabilities, {operations, count});
                 });
}
