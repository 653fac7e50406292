// SPDX-License-Identifier: Apache-2.0
//
// Product profiles: what each family of devices can do, as data. One table (product_profile.cc),
// no ifs elsewhere: code asks the profile of its device and never which product it is.
// Rules: docs/profiles.md lists where each figure comes from.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
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
  kBrainFloat,  // bfloat16 and IEEE handling of infinities
  kIpcEvents,
  kNotifyKeys,        // notifies for other processes
  kNotifyBatchReset,  // several notifies cleared at once
  kCountingNotifies,
  kOverflowModes,       // programs choose what an overflow yields
  kVirtualInstance,     // devices are parts of one that several have
  kHostGiantPeerBlock,  // blocks of 1 GiB pages of the host, for copies between devices
  kHostPeerWindow,      // such blocks on NUMA nodes come from a window that the server limits
  kPcie,                // devices are on a PCIe bus, and have its ids
  kDeviceUuid,          // unique ids of devices
  kKernelLimits,        // sizes of what kernels get: stacks, buffers of their output
  kThreadGroups,        // kernels of many threads, with limits and figures of their own
  kDeviceArithmetic,    // overflow state, atomic operations, choice of a task scheduler
  kTaskControl,       // aborting and stopping tasks, overflow switches, default streams' attributes
  kFaultControl,      // memory errors, their details and repair, aborting a device's tasks
  kPersistentTasks,   // cleaning streams that hold their tasks
  kStreamPriorities,  // priorities that change
  kEventFlags,        // records and waits that take flags
  kDevicePlaneCopy,   // 2D copies within devices
  kMediaMemory,       // the media units have memory of their own
  kFinalizeAll,       // to finalize once ends every use of the library
  kSnapshot,          // a process that is held, backed up and restored
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

// What an operation whose result is too large for its type yields.
enum class OverflowMode : uint8_t {
  kSaturation,  // the largest number
  kInfNan,      // infinity, or no number
};

// Limits on how long an operator runs: multiples of a step.
struct OperatorTimes {
  uint32_t step;   // microseconds
  uint32_t unset;  // seconds that count until a program sets a limit
};

// A part of a device that passes for a whole one (vNPU), by the name of its template.
struct Slice {
  std::string_view name;
  uint64_t memory;  // bytes
  int ai_cores;
  int ai_cpus;
};

// One chip of a family, by the name that programs derive features from.
struct Soc {
  std::string_view name;
  uint64_t memory;                  // bytes per device unless configured; typical board sizes
  FeatureSet lacks{};               // of what its family has
  std::span<const Slice> slices{};  // that its devices can be cut into

  // Null if there is none of that name.
  const Slice* find_slice(std::string_view slice) const;
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
  unsigned most_streams;        // on a device, default streams included
  unsigned most_events;         // on a device, of those that take a number when they are made
  unsigned most_notifies;       // of all kinds, on a device
  OperatorTimes operator_times;
  FeatureSet features;

  bool has(Feature feature) const { return features.has(feature); }
  // What a device of the product is like that is a slice of one.
  ProductProfile sliced(const Slice& slice) const;
  // Unless the program chooses another one.
  OverflowMode overflow_mode() const {
    return has(Feature::kBrainFloat) ? OverflowMode::kInfNan : OverflowMode::kSaturation;
  }
};

std::span<const ProductProfile> product_profiles();
// The keys of the products that have a feature: "a3", "a2, a3 and 950"; "no product" if none has.
std::string products_with(Feature feature);
// Null if there is none of that key.
const ProductProfile* find_product(std::string_view key);
// Features by their name in the configuration; nullptr if there is none of that name.
struct FeatureName {
  std::string_view name;
  Feature feature;
};
std::span<const FeatureName> configurable_features();

}  // namespace understudy
