// SPDX-License-Identifier: Apache-2.0
#include "capi/malloc_arguments.h"

#include <array>
#include <span>

#include "capi/call.h"

namespace understudy::capi {

namespace {

constexpr uint32_t kBandwidth = ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH;
constexpr uint32_t kReadOnly = ACL_MEM_ACCESS_USER_SPACE_READONLY;

// By the number of the policy.
constexpr std::array<MallocPolicy, 8> kPolicies = {{
    {PagePolicy::kHugeFirst, false, false},
    {PagePolicy::kHugeOnly, false, false},
    {PagePolicy::kNormalOnly, false, false},
    {PagePolicy::kPeerHugeFirst, true, false},
    {PagePolicy::kHugeOnly, true, false},
    {PagePolicy::kNormalOnly, true, false},
    {PagePolicy::kGiantOnly, false, false},
    {PagePolicy::kGiantOnly, true, false},
}};
constexpr MallocPolicy kAnyOther = {PagePolicy::kBySize, false, false};
static_assert(ACL_MEM_MALLOC_HUGE_FIRST == 0 && ACL_MEM_MALLOC_HUGE_ONLY == 1 &&
              ACL_MEM_MALLOC_NORMAL_ONLY == 2 && ACL_MEM_MALLOC_HUGE_FIRST_P2P == 3 &&
              ACL_MEM_MALLOC_HUGE_ONLY_P2P == 4 && ACL_MEM_MALLOC_NORMAL_ONLY_P2P == 5 &&
              ACL_MEM_MALLOC_HUGE1G_ONLY == 6 && ACL_MEM_MALLOC_HUGE1G_ONLY_P2P == 7);

// The bandwidth bits change nothing: the hardware has one kind of memory (POLICY-19).
uint32_t base_of(aclrtMemMallocPolicy policy) {
  return static_cast<uint32_t>(policy) & ~(kBandwidth | kReadOnly);
}

bool is_read_only(aclrtMemMallocPolicy policy) {
  return (static_cast<uint32_t>(policy) & kReadOnly) != 0;
}

Result<std::span<const aclrtMallocAttribute>> attributes_of(
    const aclrtMallocConfig& configuration) {
  if (configuration.attrs == nullptr) {
    return Error::format(ErrorCode::kInvalidParam, "cfg->attrs is NULL");
  }
  // There are three kinds to set, which may be repeated; this many are an uninitialized number.
  constexpr size_t kMost = 4096;
  if (configuration.numAttrs > kMost) {
    return Error::format(ErrorCode::kInvalidParam, "cfg->numAttrs is %zu and must not exceed %zu",
                         configuration.numAttrs, kMost);
  }
  return std::span<const aclrtMallocAttribute>(configuration.attrs, configuration.numAttrs);
}

Error refused_attribute(const aclrtMallocAttribute& attribute) {
  return Error::format(ErrorCode::kInvalidParam, "attribute %d cannot be used here",
                       static_cast<int>(attribute.attr));
}

}  // namespace

MallocPolicy policy_of(aclrtMemMallocPolicy policy) {
  const uint32_t base = base_of(policy);
  MallocPolicy found = base < kPolicies.size() ? kPolicies[base] : kAnyOther;
  found.read_only = is_read_only(policy);
  return found;
}

MallocPolicy cached_policy_of(aclrtMemMallocPolicy policy) {
  const MallocPolicy any = policy_of(policy);
  return any.for_peers ? MallocPolicy{PagePolicy::kBySize, false, any.read_only} : any;
}

Result<void> check_policy(const ProductProfile& product, const MallocPolicy& policy) {
  if (policy.pages == PagePolicy::kGiantOnly && !product.has(Feature::kGiantPages)) {
    return Error::format(ErrorCode::kNotInProduct, "product %s has no 1 GiB pages",
                         product.key.data());
  }
  if (policy.for_peers && !product.has(Feature::kPeerPolicies)) {
    return Error::format(ErrorCode::kNotInProduct,
                         "product %s has no memory for copies between devices", product.key.data());
  }
  return {};
}

Result<void> require_attributes(const aclrtMallocConfig* configuration) {
  if (configuration == nullptr || configuration->numAttrs == 0) return {};
  return require_pointer(configuration->attrs, "cfg->attrs");
}

Result<uint8_t> device_configuration(const aclrtMallocConfig& configuration, unsigned device) {
  US_TRY_ASSIGN(const auto attributes, attributes_of(configuration));
  uint8_t module = kApplicationModule;
  uint32_t named_device = device;
  for (const aclrtMallocAttribute& attribute : attributes) {
    switch (attribute.attr) {
      case ACL_RT_MEM_ATTR_RSV:
        break;
      case ACL_RT_MEM_ATTR_MODULE_ID:
        module = attribute.value.moduleId < kModules
                     ? static_cast<uint8_t>(attribute.value.moduleId)
                     : kApplicationModule;
        break;
      case ACL_RT_MEM_ATTR_DEVICE_ID:
        named_device = attribute.value.deviceId;
        break;
      default:
        return refused_attribute(attribute);
    }
  }
  if (named_device != device) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the configuration names device %d and the current one is %u",
                         static_cast<int>(named_device), device);
  }
  return module;
}

Result<bool> host_configuration(const aclrtMallocConfig& configuration,
                                const ProductProfile& product) {
  US_TRY_ASSIGN(const auto attributes, attributes_of(configuration));
  uint32_t one_address = 0;
  for (const aclrtMallocAttribute& attribute : attributes) {
    switch (attribute.attr) {
      case ACL_RT_MEM_ATTR_MODULE_ID:
        break;
      case ACL_RT_MEM_ATTR_VA_FLAG:
        one_address = attribute.value.vaFlag;
        if (one_address > 1) {
          return Error::format(ErrorCode::kInvalidParam,
                               "attribute VA_FLAG is %u and must be 0 or 1", one_address);
        }
        break;
      default:
        return refused_attribute(attribute);
    }
  }
  if (one_address == 1 && !product.has(Feature::kHostRegistration)) {
    return Error::format(ErrorCode::kNotInProduct,
                         "product %s has no common addresses of host and device",
                         product.key.data());
  }
  return one_address == 1;
}

}  // namespace understudy::capi
