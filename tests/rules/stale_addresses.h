// SPDX-License-Identifier: Apache-2.0
//
// Every function that reads, writes, frees or asks about memory, called with a device address that
// has none. For tests and for fork children, which answer with a text instead of failing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/rule_test.h"

namespace understudy_test {

struct StaleCall {
  const char* name;
  aclError code;  // that the rules name
  // With the stale address, and bytes of host memory and of device memory.
  aclError (*call)(void* stale, void* host, void* device);
};

inline aclError stale_batch(void* to, void* from, aclrtMemLocation to_place,
                            aclrtMemLocation from_place, bool on_stream) {
  size_t size = 64;
  size_t start = 0;
  size_t failed = 0;
  aclrtMemcpyBatchAttr attribute{};
  attribute.dstLoc = to_place;
  attribute.srcLoc = from_place;
  if (on_stream) {
    return aclrtMemcpyBatchAsync(&to, &size, &from, &size, 1, &attribute, &start, 1, &failed,
                                 nullptr);
  }
  return aclrtMemcpyBatch(&to, &size, &from, &size, 1, &attribute, &start, 1, &failed);
}

inline constexpr aclrtMemLocation kStaleHost = {0, ACL_MEM_LOCATION_TYPE_HOST};
inline constexpr aclrtMemLocation kStaleDevice = {0, ACL_MEM_LOCATION_TYPE_DEVICE};

#define US_STALE(name, code, ...)                                             \
  StaleCall {                                                                 \
    name, code,                                                               \
        []([[maybe_unused]] void* stale, [[maybe_unused]] void* host,         \
           [[maybe_unused]] void* device) -> aclError { return __VA_ARGS__; } \
  }

inline const std::vector<StaleCall>& stale_calls() {
  static const std::vector<StaleCall> calls = {
      // Both directions, small and large, with a kind that fits and with one that leaves it open.
      US_STALE("aclrtMemcpy", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(stale, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE)),
      US_STALE("aclrtMemcpy", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(host, 64, stale, 64, ACL_MEMCPY_DEVICE_TO_HOST)),
      US_STALE("aclrtMemcpy", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(host, kMiB, stale, kMiB, ACL_MEMCPY_DEFAULT)),
      US_STALE("aclrtMemcpy", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(device, 64, stale, 64, ACL_MEMCPY_DEVICE_TO_DEVICE)),
      US_STALE("aclrtMemcpy", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(stale, 64, device, 64, ACL_MEMCPY_DEVICE_TO_DEVICE)),
      US_STALE("aclrtMemcpyAsync", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpyAsync(stale, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, nullptr)),
      US_STALE("aclrtMemcpyAsync", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpyAsync(host, 64, stale, 64, ACL_MEMCPY_DEVICE_TO_HOST, nullptr)),
      US_STALE("aclrtMemcpyAsync", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpyAsync(host, 64, stale, 64, ACL_MEMCPY_DEFAULT, nullptr)),
      US_STALE("aclrtMemcpyAsync", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpyAsync(stale, 64, device, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr)),
      US_STALE("aclrtMemcpyAsync", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpyAsync(stale, 64, host, 64, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, nullptr)),
      US_STALE("aclrtMemcpyAsync", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpyAsync(device, 64, stale, 64, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, nullptr)),
      US_STALE(
          "aclrtMemcpyAsyncWithCondition", ACL_ERROR_RT_PARAM_INVALID,
          aclrtMemcpyAsyncWithCondition(stale, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, nullptr)),
      US_STALE("aclrtMemcpy2d", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy2d(stale, 128, host, 64, 32, 4, ACL_MEMCPY_HOST_TO_DEVICE)),
      US_STALE("aclrtMemcpy2d", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy2d(host, 64, stale, 128, 32, 4, ACL_MEMCPY_DEVICE_TO_HOST)),
      US_STALE("aclrtMemcpy2dAsync", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy2dAsync(stale, 128, host, 64, 32, 4, ACL_MEMCPY_HOST_TO_DEVICE, nullptr)),
      US_STALE(
          "aclrtMemcpy2dAsync", ACL_ERROR_RT_PARAM_INVALID,
          aclrtMemcpy2dAsync(device, 64, stale, 128, 32, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr)),
      // Whatever the attribute says of it.
      US_STALE("aclrtMemcpyBatch", ACL_ERROR_RT_PARAM_INVALID,
               stale_batch(stale, host, kStaleDevice, kStaleHost, false)),
      US_STALE("aclrtMemcpyBatch", ACL_ERROR_RT_PARAM_INVALID,
               stale_batch(device, stale, kStaleDevice, kStaleHost, false)),
      US_STALE("aclrtMemcpyBatchAsync", ACL_ERROR_RT_PARAM_INVALID,
               stale_batch(host, stale, kStaleHost, kStaleDevice, true)),
      US_STALE("aclrtMemcpyBatchAsync", ACL_ERROR_RT_PARAM_INVALID,
               stale_batch(device, stale, kStaleDevice, kStaleHost, true)),
      US_STALE("aclrtMemset", ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(stale, 64, 1, 64)),
      US_STALE("aclrtMemset", ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(stale, kMiB, 1, kMiB)),
      US_STALE("aclrtMemsetAsync", ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemsetAsync(stale, 64, 1, 64, nullptr)),
      US_STALE("aclrtMemsetD32", ACL_ERROR_INVALID_PARAM, aclrtMemsetD32(stale, 64, 1, 16)),
      US_STALE("aclrtMemsetD32Async", ACL_ERROR_INVALID_PARAM,
               aclrtMemsetD32Async(stale, 64, 1, 16, nullptr)),
      US_STALE("aclrtValueWrite", ACL_ERROR_RT_PARAM_INVALID,
               aclrtValueWrite(stale, 1, 0, nullptr)),
      US_STALE("aclrtValueWait", ACL_ERROR_RT_PARAM_INVALID, aclrtValueWait(stale, 1, 0, nullptr)),
      US_STALE("aclrtFree", ACL_ERROR_RT_PARAM_INVALID, aclrtFree(stale)),
      US_STALE("aclrtFreeHost", ACL_ERROR_RT_PARAM_INVALID, aclrtFreeHost(stale)),
      US_STALE("aclrtFreeWithDevSync", ACL_ERROR_RT_PARAM_INVALID, aclrtFreeWithDevSync(stale)),
      US_STALE("aclrtUnmapMem", ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(stale)),
      US_STALE("aclrtMemRetainAllocationHandle", ACL_ERROR_RT_PARAM_INVALID,
               [](void* address) {
                 aclrtDrvMemHandle handle = nullptr;
                 return aclrtMemRetainAllocationHandle(address, &handle);
               }(stale)),
      US_STALE("aclrtMemGetAddressRange", ACL_ERROR_RT_PARAM_INVALID,
               [](void* address) {
                 size_t size = 0;
                 return aclrtMemGetAddressRange(address, nullptr, &size);
               }(stale)),
      US_STALE("aclrtIpcMemGetExportKey", ACL_ERROR_RT_PARAM_INVALID,
               [](void* address) {
                 char key[65] = {};
                 return aclrtIpcMemGetExportKey(address, 64, key, sizeof key, 0);
               }(stale)),
  };
  return calls;
}

#undef US_STALE

// Makes all the calls. Each has to answer its code and a sentence with `phrase` in it; gives what
// did not, or nothing. The thread has a context of device 0 and its default stream has no tasks.
inline std::string wrong_answers(void* stale, const std::string& phrase, void* device) {
  std::vector<uint8_t> host(kMiB, 7);
  std::string wrong;
  for (const StaleCall& each : stale_calls()) {
    (void)recent_error();
    const aclError code = each.call(stale, host.data(), device);
    const std::string text = recent_error();
    if (code == each.code && text.find(each.name) == 0 && text.find(phrase) != std::string::npos) {
      continue;
    }
    wrong += std::string(each.name) + " answered " + std::to_string(code) + ": " + text + "\n";
  }
  if (host != std::vector<uint8_t>(kMiB, 7)) wrong += "bytes of the host changed\n";
  aclrtPtrAttributes attributes{};
  if (aclrtPointerGetAttributes(stale, &attributes) != ACL_SUCCESS ||
      attributes.location.type != ACL_MEM_LOCATION_TYPE_UNREGISTERED) {
    wrong += "aclrtPointerGetAttributes does not say UNREGISTERED\n";
  }
  if (aclrtSynchronizeStream(nullptr) != ACL_SUCCESS) wrong += "something was queued\n";
  return wrong;
}

}  // namespace understudy_test
