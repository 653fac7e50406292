// SPDX-License-Identifier: Apache-2.0
#include "device/product_profile.h"

#include <array>

#include "base/sizes.h"

namespace understudy {

namespace {

using F = Feature;

constexpr uint64_t kInfMemory = 24'000'000'000;

constexpr Soc kA3Socs[] = {{"Ascend910_9392", 64 * kGiB}, {"Ascend910_9391", 64 * kGiB},
                           {"Ascend910_9382", 64 * kGiB}, {"Ascend910_9381", 64 * kGiB},
                           {"Ascend910_9372", 64 * kGiB}, {"Ascend910_9363", 32 * kGiB},
                           {"Ascend910_9362", 64 * kGiB}};
constexpr Soc kA2Socs[] = {{"Ascend910B3", 64 * kGiB}, {"Ascend910B1", 64 * kGiB},
                           {"Ascend910B2", 64 * kGiB}, {"Ascend910B2C", 64 * kGiB},
                           {"Ascend910B4", 32 * kGiB}, {"Ascend910B4-1", 32 * kGiB}};
constexpr Soc kInfSocs[] = {{"Ascend310P3", kInfMemory},
                            {"Ascend310P1", kInfMemory},
                            {"Ascend310P5", kInfMemory},
                            {"Ascend310P7", kInfMemory}};
constexpr Soc kTrnSocs[] = {{"Ascend910A", 32 * kGiB},
                            {"Ascend910ProA", 32 * kGiB},
                            {"Ascend910ProB", 32 * kGiB},
                            {"Ascend910PremiumA", 32 * kGiB},
                            {"Ascend910B", 32 * kGiB}};
constexpr Soc k200ISocs[] = {{"Ascend310B1", 16 * kGiB},
                             {"Ascend310B2", 16 * kGiB},
                             {"Ascend310B3", 16 * kGiB},
                             {"Ascend310B4", 16 * kGiB}};
constexpr Soc k200IRcSocs[] = {{"Ascend310B1", 8 * kGiB},
                               {"Ascend310B2", 8 * kGiB},
                               {"Ascend310B3", 8 * kGiB},
                               {"Ascend310B4", 8 * kGiB}};
constexpr Soc k950Socs[] = {{"Ascend950PR_9599", 128 * kGiB},
                            {"Ascend950PR_9589", 128 * kGiB},
                            {"Ascend950PR_9579", 112 * kGiB},
                            {"Ascend950DT_9595", 144 * kGiB},
                            {"Ascend950DT_9585", 96 * kGiB}};
constexpr Soc kIpv350Socs[] = {
    {"Ascend035", 4 * kGiB}, {"Ascend035A", 4 * kGiB}, {"Ascend035B", 4 * kGiB}};

// What every product but IPV350 has.
constexpr FeatureSet kCommon = {
    F::kVirtualMemory,   F::kVirtualMemorySharing, F::kAddressRange,     F::kPointerAttributes,
    F::kPeerStatus,      F::kRetainHandle,         F::kMapNoAccess,      F::kExpectedAddress,
    F::kDevicesTopology, F::kDefaultContext,       F::kDeviceAllocation, F::kMemoryUsage,
    F::kHostAllocation,  F::kHostMapCapabilities,  F::kAsyncCopy,        F::kConditionalCopy,
    F::kPlaneCopy};
// What products with more than one device per server add.
constexpr FeatureSet kServer = {F::kPeerAccess, F::kPeerPolicies, F::kPeerMap, F::kIpcKeys,
                                F::kAllocatorRegistry};
// What the A2, A3 and 950 generations add.
constexpr FeatureSet kModern = {F::kGiantHbmBlock,   F::kGiantPages,      F::kHostRegistration,
                                F::kBatchCopy,       F::kCopyDescriptors, F::kOffsetCopy,
                                F::kCacheOperations, F::kStreamValues,    F::kSymbols,
                                F::kBrainFloat};
constexpr FeatureSet kA2Features =
    kCommon | kServer | kModern |
    FeatureSet{F::kGiantGenericBlock, F::kManagedMemory, F::kMemoryPools};
constexpr FeatureSet kA3Features =
    (kA2Features - FeatureSet{F::kMemoryPools}) |
    FeatureSet{F::kFabricSharing, F::kUncachedReservation, F::kIpcAcrossServers};
constexpr FeatureSet kInfFeatures = kCommon | kServer | FeatureSet{F::kSymbols};
constexpr FeatureSet kTrnFeatures = kCommon | kServer | FeatureSet{F::kOffsetCopy};
constexpr FeatureSet k200IFeatures = kCommon | FeatureSet{F::kCopyDescriptors, F::kCacheBarriers};
constexpr FeatureSet k200IRcFeatures =
    k200IFeatures -
    FeatureSet{F::kVirtualMemory, F::kVirtualMemorySharing, F::kPlaneCopy, F::kDevicesTopology};
constexpr FeatureSet k950Features =
    ((kCommon | kServer | kModern) - FeatureSet{F::kExpectedAddress, F::kMemoryUsage}) |
    FeatureSet{F::kHugeStreams};
constexpr FeatureSet kIpv350Features = {F::kConditionalCopy};

// Engines that can access registered host memory, numbered as in aclrtHacType: scheduler, AI CPU,
// cube and vector cores, DMA over PCIe, RDMA and SDMA; the 950 has UDMA and CCU besides.
constexpr uint32_t kEngines = 0x07F;
constexpr uint32_t kAllEngines = 0x37F;

// The figure of A2 and A3 is published (STREAM-05).
constexpr unsigned kManyStreams = 1984;
constexpr unsigned kFewStreams = 1024;

constexpr std::array kProfiles = {
    ProductProfile{"a2", "Atlas A2", kA2Socs, 2201, MemoryTechnology::kHbm, RunMode::kHost,
                   PeerLink::kHccs, 20, 40, 6, 192 * kMiB, 32, kEngines, kManyStreams, kA2Features},
    ProductProfile{"a3", "Atlas A3", kA3Socs, 2201, MemoryTechnology::kHbm, RunMode::kHost,
                   PeerLink::kDiePairs, 24, 48, 6, 192 * kMiB, 32, kEngines, kManyStreams,
                   kA3Features},
    ProductProfile{"inf", "Atlas inference", kInfSocs, 2002, MemoryTechnology::kDdr, RunMode::kHost,
                   PeerLink::kPcie, 8, 7, 4, 16 * kMiB, 32, 0, kFewStreams, kInfFeatures},
    ProductProfile{"trn", "Atlas training", kTrnSocs, 1001, MemoryTechnology::kHbm, RunMode::kHost,
                   PeerLink::kHccs, 32, 0, 14, 32 * kMiB, 32, 0, kFewStreams, kTrnFeatures},
    ProductProfile{"200i", "Atlas 200I/500 A2", k200ISocs, 3002, MemoryTechnology::kDdr,
                   RunMode::kHost, PeerLink::kNone, 1, 1, 1, 4 * kMiB, 32, 0, kFewStreams,
                   k200IFeatures},
    ProductProfile{"200i-rc", "Atlas 200I/500 A2, RC form", k200IRcSocs, 3002,
                   MemoryTechnology::kDdr, RunMode::kDevice, PeerLink::kNone, 1, 1, 1, 4 * kMiB, 32,
                   0, kFewStreams, k200IRcFeatures},
    ProductProfile{"950", "Ascend 950", k950Socs, 3510, MemoryTechnology::kHbm, RunMode::kHost,
                   PeerLink::kHccs, 32, 64, 6, 128 * kMiB, 0, kAllEngines, kManyStreams,
                   k950Features},
    ProductProfile{"ipv350", "IPV350", kIpv350Socs, 3505, MemoryTechnology::kDdr, RunMode::kHost,
                   PeerLink::kNone, 1, 1, 1, kMiB, 32, 0, kFewStreams, kIpv350Features},
};

// Those whose presence depends on a driver or on how machines are wired, not on the product.
constexpr std::array kConfigurable = {FeatureName{"retain_handle", F::kRetainHandle},
                                      FeatureName{"map_no_access", F::kMapNoAccess},
                                      FeatureName{"p2p_huge1g", F::kGiantPeerBlock},
                                      FeatureName{"virtual_instance", F::kVirtualInstance}};

}  // namespace

std::span<const ProductProfile> product_profiles() { return kProfiles; }

const ProductProfile* find_product(std::string_view key) {
  for (const ProductProfile& profile : kProfiles) {
    if (profile.key == key) return &profile;
  }
  return nullptr;
}

std::span<const FeatureName> configurable_features() { return kConfigurable; }

}  // namespace understudy
