// SPDX-License-Identifier: Apache-2.0
//
// Product profiles: what each family of devices can do, as data. One table (product_profile.cc),
// no ifs elsewhere: code asks the profile of its device and never which product it is.
// Rules: docs/profiles.md lists where each figure comes from.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace understudy {

// Groups of functions that a product has or lacks as a whole.
enum class Feature : uint8_t {
  kVirtualMemory,         // physical blocks, reservations, mappings, access
  kVirtualMemorySharing,  // shareable handles within one server
  kFabricSharing,         // shareable handles across servers
  kUncachedReservation,   // reservations outside the L2 cache, chosen die-to-die links
  kAddressRange,          // block of an address
  kPointerAttributes,
  kPeerAccess,    // copies between devices
  kPeerStatus,    // state of peer grants, process id for sharing
  kRetainHandle,  // needs driver 26.0.RC1
  kMapNoAccess,
  kGiantGenericBlock,  // blocks of 1 GiB pages by the generic attribute
  kGiantHbmBlock,      // the same by the HBM attribute
  kGiantPeerBlock,     // the same for copies between devices: some interconnect forms only
  kGiantPages,         // 1 GiB pages exist at all (memory figures, malloc policies)
  kPeerPolicies,       // malloc policies for copies between devices
  kExpectedAddress,    // a reservation may wish for an address
  kDevicesTopology,
  kDefaultContext,    // setting a device makes a context and a stream
  kDeviceAllocation,  // the wider malloc family (cached, with configuration, ...)
  kMemoryUsage,
  kHostAllocation,
  kHostRegistration,
  kHostMapCapabilities,
  kAsyncCopy,
  kConditionalCopy,
  kBatchCopy,
  kPlaneCopy,  // 2D copies
  kCopyDescriptors,
  kOffsetCopy,
  kManagedMemory,
  kPeerMap,
  kCacheOperations,
  kCacheBarriers,
  kIpcKeys,
  kIpcAcrossServers,
  kAllocatorRegistry,
  kStreamValues,
  kMemoryPools,
  kSymbols,
  kHugeStreams,      // streams for very many tasks
  kBrainFloat,       // bfloat16 and IEEE handling of infinities
  kVirtualInstance,  // devices are parts of one that several have
  kCount,
};

class FeatureSet {
 public:
  constexpr FeatureSet() = default;
  constexpr FeatureSet(std::initializer_list<Feature> features) {
    for (const Feature feature : features) add(feature);
  }
  constexpr bool has(Feature feature) const { return (bits_ & bit(feature)) != 0; }
  constexpr void add(Feature feature) { bits_ |= bit(feature); }
  constexpr void remove(Feature feature) { bits_ &= ~bit(feature); }
  friend constexpr FeatureSet operator|(FeatureSet a, FeatureSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr FeatureSet operator-(FeatureSet a, FeatureSet b) {
    a.bits_ &= ~b.bits_;
    return a;
  }

 private:
  static constexpr uint64_t bit(Feature feature) {
    return uint64_t{1} << static_cast<unsigned>(feature);
  }
  uint64_t bits_ = 0;
};
static_assert(static_cast<unsigned>(Feature::kCount) <= 64);

enum class MemoryTechnology : uint8_t { kHbm, kDdr };

// Whether a program runs beside the device or on it.
enum class RunMode : uint8_t { kHost, kDevice };

// How two devices of one server are wired.
enum class PeerLink : uint8_t { kNone, kPcie, kHccs, kDiePairs };

// One chip of a family, by the name that programs derive features from.
struct Soc {
  std::string_view name;
  uint64_t memory;  // bytes per device unless configured; typical board sizes
};

struct ProductProfile {
  std::string_view key;       // "a2", as written in the configuration
  std::string_view family;    // for people
  std::span<const Soc> socs;  // the first one is the default
  int npu_arch;
  MemoryTechnology technology;
  RunMode run_mode;
  PeerLink peer_link;
  int ai_cores;  // typical figures of the family
  int vector_cores;
  int ai_cpus;
  uint64_t l2_cache;
  unsigned allocation_padding;  // bytes behind a device allocation
  uint32_t host_engines;        // bit per engine that can access registered host memory
  unsigned most_streams;        // that a program can create on a device
  FeatureSet features;

  bool has(Feature feature) const { return features.has(feature); }
};

std::span<const ProductProfile> product_profiles();
// Null if there is none of that key.
const ProductProfile* find_product(std::string_view key);
// Features by their name in the configuration; nullptr if there is none of that name.
struct FeatureName {
  std::string_view name;
  Feature feature;
};
std::span<const FeatureName> configurable_features();

}  // namespace understudy
