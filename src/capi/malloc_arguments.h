// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the malloc functions share: policies and configurations, in the terms of the
// layers below. Rules: POLICY, MALLOC-20 to MALLOC-28, HOST-14 to HOST-17.
#pragma once

#include <cstdint>

#include "acl/acl_rt.h"
#include "base/result.h"
#include "device/product_profile.h"
#include "memory/device_memory.h"

namespace understudy::capi {

// What a policy asks for.
struct MallocPolicy {
  PagePolicy pages = PagePolicy::kHugeFirst;
  bool for_peers = false;
  bool read_only = false;
};

// Every number is a policy (POLICY-28).
MallocPolicy policy_of(aclrtMemMallocPolicy policy);
// The same for aclrtMallocCached, which has fewer (MALLOC-19).
MallocPolicy cached_policy_of(aclrtMemMallocPolicy policy);
// Refuses policies that the product lacks.
Result<void> check_policy(const ProductProfile& product, const MallocPolicy& policy);

// Outer check of a configuration.
Result<void> require_attributes(const aclrtMallocConfig* configuration);
// The module of a device allocation.
Result<uint8_t> device_configuration(const aclrtMallocConfig& configuration, unsigned device);
// Whether a host allocation is to have one address on host and device.
Result<bool> host_configuration(const aclrtMallocConfig& configuration,
                                const ProductProfile& product);

}  // namespace understudy::capi
