// SPDX-License-Identifier: Apache-2.0
//
// What tests of device allocation share: the five functions that allocate, blocks that end with
// their scope, what an allocation took from which pages, and what products differ in.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {

inline constexpr size_t kNormalPage = 4 * kKiB;
inline constexpr size_t kHugePage = 2 * kMiB;
inline constexpr size_t kGiantPage = kGiB;

// The eight base policies, in the order of their numbers.
inline constexpr std::array kBasePolicies = {
    ACL_MEM_MALLOC_HUGE_FIRST,     ACL_MEM_MALLOC_HUGE_ONLY,       ACL_MEM_MALLOC_NORMAL_ONLY,
    ACL_MEM_MALLOC_HUGE_FIRST_P2P, ACL_MEM_MALLOC_HUGE_ONLY_P2P,   ACL_MEM_MALLOC_NORMAL_ONLY_P2P,
    ACL_MEM_MALLOC_HUGE1G_ONLY,    ACL_MEM_MALLOC_HUGE1G_ONLY_P2P,
};

inline aclrtMemMallocPolicy joined(std::initializer_list<aclrtMemMallocPolicy> policies) {
  int64_t bits = 0;
  for (const aclrtMemMallocPolicy policy : policies) bits |= static_cast<int64_t>(policy);
  return enum_value<aclrtMemMallocPolicy>(bits);
}

inline size_t rounded_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

// ---- The functions ----

// A function that allocates device memory, as a test parameter.
struct DeviceMalloc {
  const char* name;
  aclError (*call)(void** data, size_t size, aclrtMemMallocPolicy policy);
  bool adds_spare_bytes;  // 32 of them, where the product has them

  friend std::ostream& operator<<(std::ostream& out, const DeviceMalloc& function) {
    return out << function.name;
  }
};

inline aclError malloc_with_null_configuration(void** data, size_t size,
                                               aclrtMemMallocPolicy policy) {
  return aclrtMallocWithCfg(data, size, policy, nullptr);
}
inline aclError malloc_for_task_scheduler(void** data, size_t size, aclrtMemMallocPolicy policy) {
  return aclrtMallocForTaskScheduler(data, size, policy, nullptr);
}

inline constexpr DeviceMalloc kMalloc = {"aclrtMalloc", aclrtMalloc, true};
inline constexpr DeviceMalloc kMallocAlign32 = {"aclrtMallocAlign32", aclrtMallocAlign32, false};
inline constexpr DeviceMalloc kMallocCached = {"aclrtMallocCached", aclrtMallocCached, true};
inline constexpr DeviceMalloc kMallocWithCfg = {"aclrtMallocWithCfg",
                                                malloc_with_null_configuration, false};
inline constexpr DeviceMalloc kMallocForTaskScheduler = {"aclrtMallocForTaskScheduler",
                                                         malloc_for_task_scheduler, false};
inline constexpr std::array kDeviceMallocs = {kMalloc, kMallocAlign32, kMallocCached,
                                              kMallocWithCfg, kMallocForTaskScheduler};

// aclrtMallocCached knows only some of the base policies (MALLOC-19).
inline bool knows_policy(const DeviceMalloc& function, aclrtMemMallocPolicy base) {
  return function.call != aclrtMallocCached || base == ACL_MEM_MALLOC_HUGE_FIRST ||
         base == ACL_MEM_MALLOC_HUGE_ONLY || base == ACL_MEM_MALLOC_NORMAL_ONLY ||
         base == ACL_MEM_MALLOC_HUGE1G_ONLY;
}

class DeviceMallocTest : public DeviceTest, public testing::WithParamInterface<DeviceMalloc> {};

inline auto each_device_malloc() { return testing::ValuesIn(kDeviceMallocs); }
inline std::string name_of_malloc(const testing::TestParamInfo<DeviceMalloc>& info) {
  return info.param.name;
}

// ---- What products.md says of allocation ----

struct AllocationProduct {
  const char* product;
  size_t spare_bytes;  // what aclrtMalloc adds to a rounded size
  bool p2p_policies;
  bool giant_pages;
  bool ddr;
  bool whole_chapter;  // IPV350 has aclrtMalloc, MallocAlign32, Free and GetMemInfo only

  friend std::ostream& operator<<(std::ostream& out, const AllocationProduct& rules) {
    return out << rules.product;
  }
};

inline constexpr AllocationProduct kProductA2 = {"a2", 32, true, true, false, true};
inline constexpr AllocationProduct kProductIpv350 = {"ipv350", 32, false, false, false, false};
inline constexpr std::array kAllocationProducts = {
    kProductA2,
    AllocationProduct{"a3", 32, true, true, false, true},
    AllocationProduct{"inf", 32, true, false, true, true},
    AllocationProduct{"trn", 32, true, false, false, true},
    AllocationProduct{"200i", 32, false, false, true, true},
    AllocationProduct{"200i-rc", 32, false, false, true, true},
    AllocationProduct{"950", 0, true, true, false, true},
    kProductIpv350,
};

// gtest takes letters, digits and underscores, and bare digits would pass for an index.
inline std::string test_name_of_product(const std::string& product) {
  std::string name = "on_" + product;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

inline auto each_allocation_product() { return testing::ValuesIn(kAllocationProducts); }
inline std::string name_of_allocation_product(
    const testing::TestParamInfo<AllocationProduct>& info) {
  return test_name_of_product(info.param.product);
}

inline std::vector<DeviceMalloc> mallocs_of(const AllocationProduct& product) {
  if (product.whole_chapter) return {kDeviceMallocs.begin(), kDeviceMallocs.end()};
  return {kMalloc, kMallocAlign32};
}

// The size of MALLOC-12 before it is rounded up to pages.
inline size_t padded_size(const DeviceMalloc& function, size_t size, bool giant_policy = false,
                          size_t spare_bytes = 32) {
  const bool spare = function.adds_spare_bytes && !giant_policy;
  return rounded_up(size, 32) + (spare ? spare_bytes : 0);
}

// A current context on device 0 for a test in a fresh process. It is the test's own, because
// IPV350 has no default context.
class ContextSession {
 public:
  ContextSession() { EXPECT_SUCCESS(aclrtCreateContext(&context_, 0)); }
  ~ContextSession() { EXPECT_SUCCESS(aclrtDestroyContext(context_)); }
  ContextSession(const ContextSession&) = delete;
  ContextSession& operator=(const ContextSession&) = delete;

 private:
  aclrtContext context_ = nullptr;
};

// ---- Blocks ----

// No library hands this out: an output that still holds it was not written.
inline void* untouched_address() { return address(0x5EA7ED0000005EA7); }

// Device memory that is freed at the end of its scope, or before with free().
class DeviceBlock {
 public:
  explicit DeviceBlock(size_t size, aclrtMemMallocPolicy policy = ACL_MEM_MALLOC_HUGE_FIRST,
                       const DeviceMalloc& function = kMalloc)
      : size_(size) {
    EXPECT_SUCCESS(function.call(&data_, size, policy)) << function.name;
    EXPECT_NE(data_, nullptr);
  }
  ~DeviceBlock() {
    if (data_ != nullptr) free();
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  void free() { EXPECT_SUCCESS(aclrtFree(release())); }
  // The caller frees it from now on.
  void* release() { return std::exchange(data_, nullptr); }
  size_t size() const { return size_; }
  void* data() const { return data_; }
  void* at(size_t offset) const { return understudy_test::at(data_, offset); }

 private:
  const size_t size_;
  void* data_ = nullptr;
};

// Takes pages of a kind until exactly `left` bytes of it are free. Touches none of them.
class PagesLeft {
 public:
  PagesLeft(aclrtMemAttr kind, size_t left) {
    const size_t free = free_bytes(kind);
    EXPECT_GE(free, left);
    if (free > left) block_.emplace(free - left, policy_for(kind), kMallocAlign32);
    EXPECT_EQ(free_bytes(kind), left);
  }

 private:
  static aclrtMemMallocPolicy policy_for(aclrtMemAttr kind) {
    return kind == ACL_HBM_MEM_NORMAL ? ACL_MEM_MALLOC_NORMAL_ONLY : ACL_MEM_MALLOC_HUGE_ONLY;
  }
  std::optional<DeviceBlock> block_;
};

inline aclrtPtrAttributes pointer_attributes(const void* pointer) {
  aclrtPtrAttributes attributes;
  memset(&attributes, 0x5a, sizeof attributes);
  EXPECT_SUCCESS(aclrtPointerGetAttributes(pointer, &attributes));
  return attributes;
}

inline void expect_device_memory(const void* pointer, uint32_t device) {
  const aclrtMemLocation location = pointer_attributes(pointer).location;
  EXPECT_EQ(location.type, ACL_MEM_LOCATION_TYPE_DEVICE) << pointer;
  EXPECT_EQ(location.id, device) << pointer;
}

inline void expect_no_known_memory(const void* pointer) {
  EXPECT_EQ(pointer_attributes(pointer).location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED)
      << pointer;
}

// ---- What one allocation does ----

// Its code, what it took from the two pools, and the page size it reports (0: none reported).
struct AllocationOutcome {
  aclError code;
  size_t huge_taken;
  size_t normal_taken;
  size_t page_size;

  friend bool operator==(const AllocationOutcome&, const AllocationOutcome&) = default;
  friend std::ostream& operator<<(std::ostream& out, const AllocationOutcome& outcome) {
    return out << "code " << outcome.code << ", " << outcome.huge_taken << " bytes of huge and "
               << outcome.normal_taken << " of normal pages taken, page size " << outcome.page_size;
  }
};

inline AllocationOutcome on_normal_pages(size_t bytes) {
  return {ACL_SUCCESS, 0, bytes, kNormalPage};
}
inline AllocationOutcome on_huge_pages(size_t bytes) { return {ACL_SUCCESS, bytes, 0, kHugePage}; }
inline AllocationOutcome on_giant_pages(size_t bytes) {
  return {ACL_SUCCESS, bytes, 0, kGiantPage};
}
inline AllocationOutcome refused_with(aclError code) { return {code, 0, 0, 0}; }
inline AllocationOutcome out_of_memory() { return refused_with(ACL_ERROR_RT_MEMORY_ALLOCATION); }

// The page size of a block; 0 on a product that does not tell (IPV350).
inline size_t told_page_size(const void* pointer) {
  aclrtPtrAttributes attributes;
  memset(&attributes, 0x5a, sizeof attributes);
  const aclError code = aclrtPointerGetAttributes(pointer, &attributes);
  if (code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT) return 0;
  EXPECT_EQ(code, ACL_SUCCESS) << recent_error();
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  return attributes.pageSize;
}

// Allocates, looks and frees. Checks on the way that a refusal writes nothing, leaves a text and
// changes no figure, that a success gives an aligned address, and that the release restores every
// figure.
inline AllocationOutcome outcome_of(const DeviceMalloc& function, size_t size,
                                    aclrtMemMallocPolicy policy) {
  SCOPED_TRACE(testing::Message() << function.name << " of " << size << " bytes, policy "
                                  << static_cast<int64_t>(policy));
  const MemoryFigures before = memory_figures();
  const size_t huge = free_bytes(ACL_HBM_MEM_HUGE);
  const size_t normal = free_bytes(ACL_HBM_MEM_NORMAL);
  void* data = untouched_address();
  (void)recent_error();
  AllocationOutcome outcome = refused_with(function.call(&data, size, policy));
  if (outcome.code == ACL_SUCCESS) {
    outcome.huge_taken = huge - free_bytes(ACL_HBM_MEM_HUGE);
    outcome.normal_taken = normal - free_bytes(ACL_HBM_MEM_NORMAL);
    outcome.page_size = told_page_size(data);
    EXPECT_NE(data, nullptr);
    EXPECT_EQ(number(data) % 64, 0u) << data;
    EXPECT_SUCCESS(aclrtFree(data));
  } else {
    EXPECT_TRUE(fails_with(outcome.code, outcome.code, function.name));
    EXPECT_EQ(data, untouched_address());
  }
  EXPECT_EQ(memory_figures(), before);
  return outcome;
}

inline void expect_malloc_refused(aclError code, const DeviceMalloc& function, size_t size,
                                  aclrtMemMallocPolicy policy = ACL_MEM_MALLOC_HUGE_FIRST) {
  EXPECT_EQ(outcome_of(function, size, policy), refused_with(code))
      << function.name << " of " << size << " bytes, policy " << static_cast<int64_t>(policy);
}

// ---- Who uses how much ----

inline std::vector<aclrtMemUsageInfo> memory_usage(int32_t device = 0) {
  std::vector<aclrtMemUsageInfo> entries(300);
  size_t count = 0;
  EXPECT_SUCCESS(aclrtGetMemUsageInfo(device, entries.data(), entries.size(), &count));
  EXPECT_LE(count, entries.size());
  entries.resize(std::min(count, entries.size()));
  return entries;
}

struct ModuleUsage {
  uint64_t current = 0;
  uint64_t peak = 0;
  friend bool operator==(const ModuleUsage&, const ModuleUsage&) = default;
  friend std::ostream& operator<<(std::ostream& out, const ModuleUsage& usage) {
    return out << usage.current << " bytes, at most " << usage.peak;
  }
};

// Zero where the module is not listed.
inline ModuleUsage usage_of_module(const std::string& module, int32_t device = 0) {
  for (const aclrtMemUsageInfo& entry : memory_usage(device)) {
    if (module == entry.name) return {entry.curMemSize, entry.memPeakSize};
  }
  return {};
}

}  // namespace understudy_test
