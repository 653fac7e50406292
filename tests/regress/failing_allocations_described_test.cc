// SPDX-License-Identifier: Apache-2.0
//
// Failing allocations in described copies, cache operations and variables of kernels.
#include "regress/failing_allocations.h"

namespace understudy_test::failing {
namespace {

constexpr size_t kSize = Stage::kSize;
constexpr auto kInner = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;
constexpr auto kPrefetch = ACL_RT_CMO_TYPE_PREFETCH;

// ---- Described copies ----

US_ONE_CALL(aclrtGetMemcpyDescSize, aclrtGetMemcpyDescSize(kInner, &probe.out<size_t>()))
US_ONE_CALL(aclrtSetMemcpyDesc, aclrtSetMemcpyDesc(on.device, kInner, at(on.device, 1024),
                                                   on.other_device, 1024, nullptr))
US_SCENARIO(aclrtMemcpyAsyncWithDesc, Call) {
  const Stage on;
  EXPECT_SUCCESS(
      aclrtSetMemcpyDesc(on.device, kInner, at(on.device, 1024), on.other_device, 1024, nullptr));
  probe.call([&] { return aclrtMemcpyAsyncWithDesc(on.device, kInner, on.stream); });
}
US_SCENARIO(aclrtMemcpyAsyncWithOffset, Call) {
  const Stage on;
  void* cells[] = {at(on.device, 1024), on.other_device};
  EXPECT_SUCCESS(
      aclrtMemcpy(on.device, sizeof cells, cells, sizeof cells, ACL_MEMCPY_HOST_TO_DEVICE));
  probe.call([&] {
    return aclrtMemcpyAsyncWithOffset(static_cast<void**>(at(on.device, 8)), kSize, 64,
                                      static_cast<const void**>(on.device), 1024, 8, kInner,
                                      on.stream);
  });
}

// ---- Cache operations ----

US_ONE_CALL(aclrtCmoAsync, aclrtCmoAsync(on.device, kSize, kPrefetch, on.stream))
US_ONE_CALL(aclrtCmoGetDescSize, aclrtCmoGetDescSize(&probe.out<size_t>()))
US_ONE_CALL(aclrtCmoSetDesc, aclrtCmoSetDesc(on.device, on.other_device, kSize))
US_SCENARIO(aclrtCmoAsyncWithDesc, Call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtCmoSetDesc(on.device, on.other_device, kSize));
  probe.call([&] { return aclrtCmoAsyncWithDesc(on.device, kPrefetch, on.stream, nullptr); });
}
US_SCENARIO(aclrtCmoAsyncWithBarrier, Call) {
  const Stage on;
  probe.expect_refusal(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  probe.call([&] {
    return aclrtCmoAsyncWithBarrier(on.device, kSize, ACL_RT_CMO_TYPE_INVALID, 1, on.stream);
  });
}
US_SCENARIO(aclrtCmoWaitBarrier, Call) {
  const Stage on;
  aclrtBarrierTaskInfo barriers{};
  barriers.barrierNum = 1;
  probe.expect_refusal(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  probe.call([&] { return aclrtCmoWaitBarrier(&barriers, on.stream, 0); });
}

// ---- Variables of kernels, of which none is known ----

template <typename Call>
void refuse_symbol(Probe& probe, Call call) {
  const Stage on;
  probe.expect_refusal(ACL_ERROR_RT_INVALID_SYMBOL);
  probe.call([&] { return call(on); });
}
US_SCENARIO(aclrtGetSymbolAddress, Call) {
  refuse_symbol(
      probe, [&](const Stage& on) { return aclrtGetSymbolAddress(on.host, &probe.out<void*>()); });
}
US_SCENARIO(aclrtGetSymbolSize, Call) {
  refuse_symbol(probe,
                [&](const Stage& on) { return aclrtGetSymbolSize(on.host, &probe.out<size_t>()); });
}
US_SCENARIO(aclrtMemcpyFromSymbol, Call) {
  refuse_symbol(probe, [](const Stage& on) {
    return aclrtMemcpyFromSymbol(on.host, kSize, on.device, 8, 0, ACL_MEMCPY_DEFAULT);
  });
}
US_SCENARIO(aclrtMemcpyFromSymbolAsync, Call) {
  refuse_symbol(probe, [](const Stage& on) {
    return aclrtMemcpyFromSymbolAsync(on.host, kSize, on.device, 8, 0, ACL_MEMCPY_DEFAULT,
                                      on.stream);
  });
}
US_SCENARIO(aclrtMemcpyToSymbol, Call) {
  refuse_symbol(probe, [](const Stage& on) {
    return aclrtMemcpyToSymbol(on.device, on.host, 8, 0, ACL_MEMCPY_DEFAULT);
  });
}
US_SCENARIO(aclrtMemcpyToSymbolAsync, Call) {
  refuse_symbol(probe, [](const Stage& on) {
    return aclrtMemcpyToSymbolAsync(on.device, on.host, 8, 0, ACL_MEMCPY_DEFAULT, on.stream);
  });
}

}  // namespace
}  // namespace understudy_test::failing
