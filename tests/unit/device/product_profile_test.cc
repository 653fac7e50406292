// SPDX-License-Identifier: Apache-2.0
//
// The tables of the product specification, written a second time and compared: a profile that
// gains or loses a feature by accident fails here.
#include "device/product_profile.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/sizes.h"

namespace understudy {
namespace {

using F = Feature;

constexpr std::array<std::string_view, 8> kColumns = {"a3",   "a2",      "inf", "trn",
                                                      "200i", "200i-rc", "950", "ipv350"};

// A group of functions or an attribute, and a letter per column: Y has it, - lacks it.
struct Row {
  F feature;
  const char* what;
  std::string_view has;
};

constexpr Row kFunctionGroups[] = {
    {F::kDeviceAllocation, "wider malloc family", "YYYYYYY-"},
    {F::kMemoryUsage, "memory usage", "YYYYYY--"},
    {F::kHostAllocation, "host allocation", "YYYYYYY-"},
    {F::kHostRegistration, "host registration", "YY----Y-"},
    {F::kHostMapCapabilities, "host map capabilities", "YYYYYYY-"},
    {F::kAsyncCopy, "asynchronous copy and set", "YYYYYYY-"},
    {F::kConditionalCopy, "conditional copy", "YYYYYYYY"},
    {F::kBatchCopy, "batch copy", "YY----Y-"},
    {F::kPlaneCopy, "2D copy", "YYYYY-Y-"},
    {F::kCopyDescriptors, "copy descriptors", "YY--YYY-"},
    {F::kOffsetCopy, "copy with offset", "YY-Y--Y-"},
    {F::kVirtualMemory, "virtual memory", "YYYYY-Y-"},
    {F::kVirtualMemorySharing, "shareable handles", "YYYYY-Y-"},
    {F::kFabricSharing, "shareable handles across servers", "Y-------"},
    {F::kUncachedReservation, "uncached reservations", "Y-------"},
    {F::kAddressRange, "address range", "YYYYYYY-"},
    {F::kManagedMemory, "managed memory", "YY------"},
    {F::kPeerMap, "peer map", "YYYY--Y-"},
    {F::kPointerAttributes, "pointer attributes", "YYYYYYY-"},
    {F::kCacheOperations, "cache operations", "YY----Y-"},
    {F::kCacheBarriers, "cache barriers", "----YY--"},
    {F::kIpcKeys, "keys between processes", "YYYY--Y-"},
    {F::kIpcAcrossServers, "keys across servers", "Y-------"},
    {F::kAllocatorRegistry, "allocator registry", "YYYY--Y-"},
    {F::kStreamValues, "values on streams", "YY----Y-"},
    {F::kMemoryPools, "memory pools", "-Y------"},
    {F::kSymbols, "symbols", "YYY---Y-"},
    {F::kPeerAccess, "peer access", "YYYY--Y-"},
    {F::kPeerStatus, "peer access status", "YYYYYYY-"},
    {F::kDevicesTopology, "topology of devices", "YYYYY-Y-"},
    {F::kDefaultContext, "default context and stream", "YYYYYYY-"},
    {F::kOverflowModes, "choice of the overflow mode", "YY------"},
    {F::kPcie, "PCIe bus ids", "YY----Y-"},
    {F::kDeviceUuid, "unique ids", "YY----YY"},
    {F::kKernelLimits, "kernel limits", "YY----Y-"},
    {F::kThreadGroups, "limits and figures of thread groups", "------Y-"},
    {F::kDeviceArithmetic, "overflow state, atomic capabilities", "YYYYYYY-"},
    {F::kTaskControl, "abort, stop, overflow switches", "YY----YY"},
    {F::kFaultControl, "abort of a device, faults, repair", "YY----YY"},
    {F::kPersistentTasks, "cleaning of persistent streams", "YY----Y-"},
    {F::kStreamPriorities, "priorities that change", "YY----Y-"},
    {F::kEventFlags, "records and waits with flags", "YY----YY"},
    {F::kDevicePlaneCopy, "2D copies within devices", "YY----Y-"},
    {F::kMediaMemory, "memory of the media units", "YYYYYY--"},
    {F::kFinalizeAll, "one finalize for every initialize", "YYYYYYY-"},
};

// 200i-rc and ipv350 have no physical memory at all, so that nobody asks for its attributes.
constexpr Row kAttributes[] = {
    {F::kGiantGenericBlock, "generic 1 GiB attribute", "YY------"},
    {F::kGiantHbmBlock, "HBM 1 GiB attribute", "YY----Y-"},
    {F::kGiantPeerBlock, "peer 1 GiB attribute", "--------"},
    {F::kGiantPages, "malloc policies of 1 GiB", "YY----Y-"},
    {F::kPeerPolicies, "malloc policies for peers", "YYYY--Y-"},
};

void expect_rows(std::span<const Row> rows) {
  for (const Row& row : rows) {
    ASSERT_EQ(row.has.size(), kColumns.size()) << row.what;
    for (size_t i = 0; i < kColumns.size(); ++i) {
      const ProductProfile* const product = find_product(kColumns[i]);
      ASSERT_NE(product, nullptr) << kColumns[i];
      EXPECT_EQ(product->has(row.feature), row.has[i] == 'Y')
          << row.what << " of product " << kColumns[i];
    }
  }
}

TEST(ProductProfile, FunctionGroupsAreThoseOfTheSpecification) { expect_rows(kFunctionGroups); }

TEST(ProductProfile, AttributesAndPoliciesAreThoseOfTheSpecification) { expect_rows(kAttributes); }

TEST(ProductProfile, NumbersOfStreamsAndEventsAreThoseOfTheSpecification) {
  struct Numbers {
    std::string_view key;
    unsigned streams;
    unsigned events;
    uint32_t operator_seconds;
  };
  for (const Numbers& numbers :
       {Numbers{"a3", 1984, 65536, 1091}, Numbers{"a2", 1984, 65536, 1091},
        Numbers{"950", 1984, 65536, 1091}, Numbers{"200i", 512, 65536, 1091},
        Numbers{"200i-rc", 512, 65536, 1091}, Numbers{"inf", 1024, 1023, 547},
        Numbers{"trn", 2048, 65535, 68}}) {
    const ProductProfile* const product = find_product(numbers.key);
    ASSERT_NE(product, nullptr);
    EXPECT_EQ(product->most_streams, numbers.streams) << numbers.key;
    EXPECT_EQ(product->most_events, numbers.events) << numbers.key;
    EXPECT_EQ(product->operator_times.unset, numbers.operator_seconds) << numbers.key;
  }
}

TEST(ProductProfile, WholeVirtualMemoryGroupGoesWithVirtualMemory) {
  for (const ProductProfile& product : product_profiles()) {
    if (!product.has(F::kVirtualMemory)) continue;
    EXPECT_TRUE(product.has(F::kRetainHandle)) << product.key;
    EXPECT_TRUE(product.has(F::kMapNoAccess)) << product.key;
    EXPECT_EQ(product.has(F::kExpectedAddress), product.key != "950") << product.key;
  }
}

TEST(ProductProfile, FamiliesHaveTheirArchitectureMemoryAndRunMode) {
  struct Family {
    std::string_view key;
    int npu_arch;
    MemoryTechnology technology;
    RunMode run_mode;
  };
  constexpr auto kHbm = MemoryTechnology::kHbm;
  constexpr auto kDdr = MemoryTechnology::kDdr;
  constexpr Family kFamilies[] = {
      {"a3", 2201, kHbm, RunMode::kHost},   {"a2", 2201, kHbm, RunMode::kHost},
      {"inf", 2002, kDdr, RunMode::kHost},  {"trn", 1001, kHbm, RunMode::kHost},
      {"200i", 3002, kDdr, RunMode::kHost}, {"200i-rc", 3002, kDdr, RunMode::kDevice},
      {"950", 3510, kHbm, RunMode::kHost},
  };
  for (const Family& family : kFamilies) {
    const ProductProfile* const product = find_product(family.key);
    ASSERT_NE(product, nullptr) << family.key;
    EXPECT_EQ(product->npu_arch, family.npu_arch) << family.key;
    EXPECT_EQ(product->technology, family.technology) << family.key;
    EXPECT_EQ(product->run_mode, family.run_mode) << family.key;
  }
  EXPECT_EQ(find_product("ipv350")->npu_arch, 3505);
}

TEST(ProductProfile, SocNamesAreThoseOfTheSpecification) {
  const auto names_of = [](std::string_view key) {
    std::set<std::string_view> names;
    for (const Soc& soc : find_product(key)->socs) names.insert(soc.name);
    return names;
  };
  using Names = std::set<std::string_view>;
  EXPECT_EQ(names_of("a3"),
            (Names{"Ascend910_9362", "Ascend910_9363", "Ascend910_9372", "Ascend910_9381",
                   "Ascend910_9382", "Ascend910_9391", "Ascend910_9392"}));
  EXPECT_EQ(names_of("a2"), (Names{"Ascend910B1", "Ascend910B2", "Ascend910B2C", "Ascend910B3",
                                   "Ascend910B4", "Ascend910B4-1"}));
  EXPECT_EQ(names_of("inf"), (Names{"Ascend310P1", "Ascend310P3", "Ascend310P5", "Ascend310P7"}));
  EXPECT_EQ(names_of("trn"), (Names{"Ascend910A", "Ascend910ProA", "Ascend910ProB",
                                    "Ascend910PremiumA", "Ascend910B"}));
  EXPECT_EQ(names_of("200i"), (Names{"Ascend310B1", "Ascend310B2", "Ascend310B3", "Ascend310B4"}));
  EXPECT_EQ(names_of("200i-rc"), names_of("200i"));
  EXPECT_EQ(names_of("ipv350"), (Names{"Ascend035", "Ascend035A", "Ascend035B"}));
  for (const std::string_view name : names_of("950")) {
    EXPECT_TRUE(name.starts_with("Ascend950PR_95") || name.starts_with("Ascend950DT_95")) << name;
  }
}

TEST(ProductProfile, FirstSocIsTheDefaultAndTheFirstProductIsA2) {
  const ProductProfile& first = product_profiles().front();
  EXPECT_EQ(first.key, "a2");
  EXPECT_EQ(first.socs.front().name, "Ascend910B3");
  EXPECT_EQ(first.socs.front().memory, 64 * kGiB);
}

TEST(ProductProfile, MemoryIsThatOfTypicalBoards) {
  const auto memory_of = [](std::string_view name) -> uint64_t {
    for (const ProductProfile& product : product_profiles()) {
      for (const Soc& soc : product.socs) {
        if (soc.name == name) return soc.memory;
      }
    }
    return 0;
  };
  EXPECT_EQ(memory_of("Ascend910_9392"), 64 * kGiB);
  EXPECT_EQ(memory_of("Ascend910_9363"), 32 * kGiB);
  EXPECT_EQ(memory_of("Ascend910B1"), 64 * kGiB);
  EXPECT_EQ(memory_of("Ascend910B4"), 32 * kGiB);
  EXPECT_EQ(memory_of("Ascend310P3"), 24'000'000'000u);
  EXPECT_EQ(memory_of("Ascend910A"), 32 * kGiB);
  for (const Soc& soc : find_product("950")->socs) {
    EXPECT_GE(soc.memory, 96 * kGiB) << soc.name;
    EXPECT_LE(soc.memory, 144 * kGiB) << soc.name;
  }
}

TEST(ProductProfile, EveryProfileIsCompleteAndItsKeyIsItsOwn) {
  std::set<std::string_view> keys;
  for (const ProductProfile& product : product_profiles()) {
    EXPECT_TRUE(keys.insert(product.key).second) << product.key;
    EXPECT_EQ(find_product(product.key), &product);
    EXPECT_FALSE(product.family.empty()) << product.key;
    ASSERT_FALSE(product.socs.empty()) << product.key;
    EXPECT_GT(product.ai_cores, 0) << product.key;
    EXPECT_GT(product.l2_cache, 0u) << product.key;
    // The key is printed as a C string.
    EXPECT_EQ(std::string_view(product.key.data()), product.key);
    std::set<std::string_view> names;
    for (const Soc& soc : product.socs) EXPECT_TRUE(names.insert(soc.name).second) << soc.name;
  }
  EXPECT_EQ(keys, std::set<std::string_view>(kColumns.begin(), kColumns.end()));
}

TEST(ProductProfile, UnknownKeyIsNoProduct) {
  for (const std::string_view key : {"", "A2", "a2 ", "a4"}) {
    EXPECT_EQ(find_product(key), nullptr) << key;
  }
}

TEST(ProductProfile, Only950PadsNothing) {
  for (const ProductProfile& product : product_profiles()) {
    EXPECT_EQ(product.allocation_padding, product.key == "950" ? 0u : 32u) << product.key;
  }
}

TEST(ProductProfile, ProductsWithoutPeerAccessHaveNoLinkBetweenDevices) {
  for (const ProductProfile& product : product_profiles()) {
    EXPECT_EQ(product.has(F::kPeerAccess), product.peer_link != PeerLink::kNone) << product.key;
  }
}

TEST(ProductProfile, ConfigurableFeaturesHaveDistinctNames) {
  std::set<std::string_view> names;
  std::set<F> features;
  for (const FeatureName& feature : configurable_features()) {
    EXPECT_TRUE(names.insert(feature.name).second) << feature.name;
    EXPECT_TRUE(features.insert(feature.feature).second) << feature.name;
  }
  EXPECT_EQ(features, (std::set<F>{F::kRetainHandle, F::kMapNoAccess, F::kGiantPeerBlock,
                                   F::kHostGiantPeerBlock, F::kPcie, F::kVirtualInstance}));
}

TEST(ProductProfile, ProductsOfAFeatureAreListed) {
  EXPECT_EQ(products_with(F::kFabricSharing), "a3");
  EXPECT_EQ(products_with(F::kGiantGenericBlock), "a2 and a3");
  EXPECT_EQ(products_with(F::kGiantHbmBlock), "a2, a3 and 950");
  EXPECT_EQ(products_with(F::kGiantPeerBlock), "no product");
}

TEST(FeatureSet, AddedAndRemovedFeaturesLeaveTheOthersAlone) {
  FeatureSet set{F::kVirtualMemory, F::kSymbols};
  set.add(F::kBrainFloat);  // the last one
  set.remove(F::kVirtualMemory);
  EXPECT_FALSE(set.has(F::kVirtualMemory));
  EXPECT_TRUE(set.has(F::kSymbols));
  EXPECT_TRUE(set.has(F::kBrainFloat));
  EXPECT_FALSE(set.has(F::kMemoryPools));
}

TEST(FeatureSet, UnionAndDifferenceAreThoseOfSets) {
  const FeatureSet a{F::kVirtualMemory, F::kSymbols};
  const FeatureSet b{F::kSymbols, F::kMemoryPools};
  EXPECT_TRUE((a | b).has(F::kVirtualMemory));
  EXPECT_TRUE((a | b).has(F::kMemoryPools));
  EXPECT_TRUE((a - b).has(F::kVirtualMemory));
  EXPECT_FALSE((a - b).has(F::kSymbols));
  EXPECT_FALSE((a - b).has(F::kMemoryPools));
}

}  // namespace
}  // namespace understudy
