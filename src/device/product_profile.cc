// SPDX-License-Identifier: Apache-2.0
#include "device/product_profile.h"

#include <array>
#include <vector>

#include "base/sizes.h"

namespace understudy {

namespace {

using F = Feature;

constexpr uint64_t kInfMemory = 24'000'000'000;

// Templates as published: AI cores, AI CPUs and memory. A letter behind them (dvpp, m: all of the
// media units; ndvpp, nm: none) makes no difference to what is here.
constexpr Slice kA3Slices[] = {{"vir05_1c_16g", 16 * kGiB, 5, 1},
                               {"vir06_1c_16g", 16 * kGiB, 6, 1},
                               {"vir10_3c_32g", 32 * kGiB, 10, 3},
                               {"vir12_3c_32g", 32 * kGiB, 12, 3}};
// Of chips with 24 cores, with 20, and with 20 and half the memory.
constexpr Slice kA2Slices24[] = {{"vir03_1c_8g", 8 * kGiB, 3, 1},
                                 {"vir06_1c_16g", 16 * kGiB, 6, 1},
                                 {"vir12_3c_32g", 32 * kGiB, 12, 3}};
constexpr Slice kA2Slices20[] = {{"vir05_1c_16g", 16 * kGiB, 5, 1},
                                 {"vir10_3c_32g", 32 * kGiB, 10, 3}};
constexpr Slice kA2SlicesHalf[] = {{"vir05_1c_8g", 8 * kGiB, 5, 1},
                                   {"vir10_3c_16g", 16 * kGiB, 10, 3},
                                   {"vir10_3c_16g_nm", 16 * kGiB, 10, 3},
                                   {"vir10_4c_16g_m", 16 * kGiB, 10, 4}};
// Their gigabytes are those of the 24 that the card has.
constexpr Slice kInfSlices[] = {
    {"vir01", kInfMemory / 8, 1, 1},        {"vir02", kInfMemory / 4, 2, 2},
    {"vir02_1c", kInfMemory / 4, 2, 1},     {"vir04", kInfMemory / 2, 4, 4},
    {"vir04_3c", kInfMemory / 2, 4, 3},     {"vir04_3c_ndvpp", kInfMemory / 2, 4, 3},
    {"vir04_4c_dvpp", kInfMemory / 2, 4, 4}};
constexpr Slice kTrnSlices[] = {{"vir02", 2 * kGiB, 2, 1},
                                {"vir04", 4 * kGiB, 4, 1},
                                {"vir08", 8 * kGiB, 8, 3},
                                {"vir16", 16 * kGiB, 16, 7}};

constexpr Soc kA3Socs[] = {
    {"Ascend910_9392", 64 * kGiB, {}, kA3Slices}, {"Ascend910_9391", 64 * kGiB, {}, kA3Slices},
    {"Ascend910_9382", 64 * kGiB, {}, kA3Slices}, {"Ascend910_9381", 64 * kGiB, {}, kA3Slices},
    {"Ascend910_9372", 64 * kGiB, {}, kA3Slices}, {"Ascend910_9363", 32 * kGiB},
    {"Ascend910_9362", 64 * kGiB, {}, kA3Slices}};
constexpr Soc kA2Socs[] = {
    {"Ascend910B3", 64 * kGiB, {}, kA2Slices20},   {"Ascend910B1", 64 * kGiB, {}, kA2Slices24},
    {"Ascend910B2", 64 * kGiB, {}, kA2Slices24},   {"Ascend910B2C", 64 * kGiB, {}, kA2Slices24},
    {"Ascend910B4", 32 * kGiB, {}, kA2SlicesHalf}, {"Ascend910B4-1", 32 * kGiB, {}, kA2SlicesHalf}};
constexpr Soc kInfSocs[] = {{"Ascend310P3", kInfMemory, {}, kInfSlices},
                            {"Ascend310P1", kInfMemory, {}, kInfSlices},
                            {"Ascend310P5", kInfMemory, {}, kInfSlices},
                            {"Ascend310P7", kInfMemory, {}, kInfSlices}};
constexpr Soc kTrnSocs[] = {{"Ascend910A", 32 * kGiB, {}, kTrnSlices},
                            {"Ascend910ProA", 32 * kGiB, {}, kTrnSlices},
                            {"Ascend910ProB", 32 * kGiB, {}, kTrnSlices},
                            {"Ascend910PremiumA", 32 * kGiB, {}, kTrnSlices},
                            {"Ascend910B", 32 * kGiB, {}, kTrnSlices}};
constexpr Soc k200ISocs[] = {{"Ascend310B1", 16 * kGiB},
                             {"Ascend310B2", 16 * kGiB},
                             {"Ascend310B3", 16 * kGiB},
                             {"Ascend310B4", 16 * kGiB}};
constexpr Soc k200IRcSocs[] = {{"Ascend310B1", 8 * kGiB},
                               {"Ascend310B2", 8 * kGiB},
                               {"Ascend310B3", 8 * kGiB},
                               {"Ascend310B4", 8 * kGiB}};
// What the 950DT lacks of the 950.
constexpr FeatureSet k950DtLacks = {F::kIpcEvents, F::kNotifyKeys, F::kSnapshot};
constexpr Soc k950Socs[] = {{"Ascend950PR_9599", 128 * kGiB},
                            {"Ascend950PR_9589", 128 * kGiB},
                            {"Ascend950PR_9579", 112 * kGiB},
                            {"Ascend950DT_9595", 144 * kGiB, k950DtLacks},
                            {"Ascend950DT_9585", 96 * kGiB, k950DtLacks}};
constexpr Soc kIpv350Socs[] = {
    {"Ascend035", 4 * kGiB}, {"Ascend035A", 4 * kGiB}, {"Ascend035B", 4 * kGiB}};

// What every product but IPV350 has.
constexpr FeatureSet kCommon = {
    F::kVirtualMemory,   F::kVirtualMemorySharing, F::kAddressRange,     F::kPointerAttributes,
    F::kPeerStatus,      F::kRetainHandle,         F::kMapNoAccess,      F::kExpectedAddress,
    F::kDevicesTopology, F::kDefaultContext,       F::kDeviceAllocation, F::kMemoryUsage,
    F::kHostAllocation,  F::kHostMapCapabilities,  F::kAsyncCopy,        F::kConditionalCopy,
    F::kPlaneCopy,       F::kDeviceArithmetic,     F::kMediaMemory,      F::kFinalizeAll};
// What products with more than one device per server add.
constexpr FeatureSet kServer = {F::kPeerAccess, F::kPeerPolicies,      F::kPeerMap,
                                F::kIpcKeys,    F::kAllocatorRegistry, F::kNotifyKeys};
// What the A2, A3 and 950 generations add.
constexpr FeatureSet kModern = {F::kGiantHbmBlock,
                                F::kGiantPages,
                                F::kHostRegistration,
                                F::kBatchCopy,
                                F::kCopyDescriptors,
                                F::kOffsetCopy,
                                F::kCacheOperations,
                                F::kStreamValues,
                                F::kSymbols,
                                F::kBrainFloat,
                                F::kPcie,
                                F::kKernelLimits,
                                F::kPersistentTasks,
                                F::kStreamPriorities,
                                F::kDevicePlaneCopy,
                                F::kSnapshot};
// What INF, TRN and 200I lack.
constexpr FeatureSet kNotOlder = {F::kDeviceUuid, F::kTaskControl, F::kFaultControl,
                                  F::kEventFlags, F::kIpcEvents,   F::kNotifyBatchReset};
constexpr FeatureSet kA2Features =
    kCommon | kServer | kModern | kNotOlder |
    FeatureSet{F::kGiantGenericBlock, F::kManagedMemory, F::kMemoryPools, F::kOverflowModes};
constexpr FeatureSet kA3Features = (kA2Features - FeatureSet{F::kMemoryPools}) |
                                   FeatureSet{F::kFabricSharing, F::kUncachedReservation,
                                              F::kIpcAcrossServers, F::kHostPeerWindow};
constexpr FeatureSet kInfFeatures = kCommon | kServer | FeatureSet{F::kSymbols};
constexpr FeatureSet kTrnFeatures = kCommon | kServer | FeatureSet{F::kOffsetCopy};
constexpr FeatureSet k200IFeatures = kCommon | FeatureSet{F::kCopyDescriptors, F::kCacheBarriers};
constexpr FeatureSet k200IRcFeatures =
    k200IFeatures -
    FeatureSet{F::kVirtualMemory, F::kVirtualMemorySharing, F::kPlaneCopy, F::kDevicesTopology};
constexpr FeatureSet k950Features =
    ((kCommon | kServer | kModern | kNotOlder) -
     FeatureSet{F::kExpectedAddress, F::kMemoryUsage, F::kMediaMemory}) |
    FeatureSet{F::kThreadGroups, F::kCountingNotifies};
constexpr FeatureSet kIpv350Features = kNotOlder | FeatureSet{F::kConditionalCopy, F::kNotifyKeys};

// Engines that can access registered host memory, numbered as in aclrtHacType: scheduler, AI CPU,
// cube and vector cores, DMA over PCIe, RDMA and SDMA; the 950 has UDMA and CCU besides.
constexpr uint32_t kEngines = 0x07F;
constexpr uint32_t kAllEngines = 0x37F;

// Published (STREAM-32, EVENT-19), but for IPV350.
constexpr unsigned kManyStreams = 1984;
constexpr unsigned kInfStreams = 1024;
constexpr unsigned kTrnStreams = 2048;
constexpr unsigned k200IStreams = 512;
constexpr unsigned kManyEvents = 65536;
constexpr unsigned kInfEvents = 1023;
constexpr unsigned kTrnEvents = 65535;

// What counts until a program sets a limit is published (ERR-19). The steps are those of which 254
// come to about as much.
constexpr OperatorTimes kLongTimes = {4'294'967, 1091};
constexpr OperatorTimes kInfTimes = {2'147'483, 547};
constexpr OperatorTimes kTrnTimes = {268'435, 68};

// Published, but for IPV350 (XPROC-12).
constexpr unsigned kFewNotifies = 1024;
constexpr unsigned k200INotifies = 2048;
constexpr unsigned kManyNotifies = 8192;
constexpr unsigned k950Notifies = 65535;

constexpr std::array kProfiles = {
    ProductProfile{"a2", "Atlas A2", kA2Socs, 2201, MemoryTechnology::kHbm, RunMode::kHost,
                   PeerLink::kHccs, 20, 40, 6, 192 * kMiB, 32, kEngines, kManyStreams, kManyEvents,
                   kManyNotifies, kLongTimes, kA2Features},
    ProductProfile{"a3", "Atlas A3", kA3Socs, 2201, MemoryTechnology::kHbm, RunMode::kHost,
                   PeerLink::kDiePairs, 24, 48, 6, 192 * kMiB, 32, kEngines, kManyStreams,
                   kManyEvents, kManyNotifies, kLongTimes, kA3Features},
    ProductProfile{"inf", "Atlas inference", kInfSocs, 2002, MemoryTechnology::kDdr, RunMode::kHost,
                   PeerLink::kPcie, 8, 7, 4, 16 * kMiB, 32, 0, kInfStreams, kInfEvents,
                   kFewNotifies, kInfTimes, kInfFeatures},
    ProductProfile{"trn", "Atlas training", kTrnSocs, 1001, MemoryTechnology::kHbm, RunMode::kHost,
                   PeerLink::kHccs, 32, 0, 14, 32 * kMiB, 32, 0, kTrnStreams, kTrnEvents,
                   kFewNotifies, kTrnTimes, kTrnFeatures},
    ProductProfile{"200i", "Atlas 200I/500 A2", k200ISocs, 3002, MemoryTechnology::kDdr,
                   RunMode::kHost, PeerLink::kNone, 1, 1, 1, 4 * kMiB, 32, 0, k200IStreams,
                   kManyEvents, k200INotifies, kLongTimes, k200IFeatures},
    ProductProfile{"200i-rc", "Atlas 200I/500 A2, RC form", k200IRcSocs, 3002,
                   MemoryTechnology::kDdr, RunMode::kDevice, PeerLink::kNone, 1, 1, 1, 4 * kMiB, 32,
                   0, k200IStreams, kManyEvents, k200INotifies, kLongTimes, k200IRcFeatures},
    ProductProfile{"950", "Ascend 950", k950Socs, 3510, MemoryTechnology::kHbm, RunMode::kHost,
                   PeerLink::kHccs, 32, 64, 6, 128 * kMiB, 0, kAllEngines, kManyStreams,
                   kManyEvents, k950Notifies, kLongTimes, k950Features},
    ProductProfile{"ipv350", "IPV350", kIpv350Socs, 3505, MemoryTechnology::kDdr, RunMode::kHost,
                   PeerLink::kNone, 1, 1, 1, kMiB, 32, 0, kInfStreams, kManyEvents, kFewNotifies,
                   kLongTimes, kIpv350Features},
};

// Those whose presence depends on a driver or on how machines are wired, not on the product.
constexpr std::array kConfigurable = {FeatureName{"retain_handle", F::kRetainHandle},
                                      FeatureName{"map_no_access", F::kMapNoAccess},
                                      FeatureName{"p2p_huge1g", F::kGiantPeerBlock},
                                      FeatureName{"host_p2p_huge1g", F::kHostGiantPeerBlock},
                                      FeatureName{"pcie", F::kPcie},
                                      FeatureName{"virtual_instance", F::kVirtualInstance}};

}  // namespace

const Slice* Soc::find_slice(std::string_view slice) const {
  for (const Slice& candidate : slices) {
    if (candidate.name == slice) return &candidate;
  }
  return nullptr;
}

ProductProfile ProductProfile::sliced(const Slice& slice) const {
  ProductProfile part = *this;
  part.features.add(Feature::kVirtualInstance);
  part.ai_cores = slice.ai_cores;
  // Templates do not name them: in proportion, and not none where the device has some.
  part.vector_cores = (vector_cores * slice.ai_cores + ai_cores - 1) / ai_cores;
  part.ai_cpus = slice.ai_cpus;
  return part;
}

std::span<const ProductProfile> product_profiles() { return kProfiles; }

const ProductProfile* find_product(std::string_view key) {
  for (const ProductProfile& profile : kProfiles) {
    if (profile.key == key) return &profile;
  }
  return nullptr;
}

std::string products_with(Feature feature) {
  std::vector<std::string_view> keys;
  for (const ProductProfile& profile : kProfiles) {
    if (profile.has(feature)) keys.push_back(profile.key);
  }
  if (keys.empty()) return "no product";
  std::string text(keys.front());
  for (size_t i = 1; i < keys.size(); ++i) {
    text += i + 1 == keys.size() ? " and " : ", ";
    text += keys[i];
  }
  return text;
}

std::span<const FeatureName> configurable_features() { return kConfigurable; }

}  // namespace understudy
