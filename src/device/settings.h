// SPDX-License-Identifier: Apache-2.0
//
// The configuration in its final form, read once per process by device/config.cc and constant
// from then on. Defaults are the first value of each list in docs/configuration.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/driver_generation.h"
#include "device/failure_rule.h"
#include "device/idle_usage.h"
#include "device/product_profile.h"
#include "device/schedule_choice.h"
#include "observe/check.h"
#include "observe/recording_choice.h"
#include "platform/log.h"

namespace understudy {

enum class SizeAlignment : uint8_t { kReject, kRoundUp };
enum class AttributeSet : uint8_t { kFull, kLegacy };
enum class ReserveFlag : uint8_t { kIgnore, kMatch };
enum class ExpectedAddress : uint8_t { kHint, kNullOnly };
enum class DeviceBinding : uint8_t { kForLife, kWhileMapped };
enum class SyncDeviceCopy : uint8_t { kReject, kAllow };
enum class HostAccess : uint8_t { kDeny, kAllow };
enum class HostLock : uint8_t { kBestEffort, kStrict };
enum class Backing : uint8_t { kAuto, kHugetlb, kThp, kSmall };
enum class Commit : uint8_t { kLazy, kEager };
enum class Poison : uint8_t { kOff, kOn };

inline constexpr unsigned kMaxDevices = 32;

struct Settings {
  ProductProfile product;  // of the slice, with the features the configuration added or took away
  FeatureSet switched_on;  // those of them that the configuration alone gives the product
  std::string soc_name;
  std::string_view slice;  // name of the template; empty: devices are whole
  const DriverGeneration* driver = &newest_driver();
  unsigned devices = 8;         // that this process sees
  unsigned server_devices = 8;  // that all its processes see
  std::vector<std::pair<std::string, std::string>>
      given;                      // keys and values, in the order they count
  std::string runtime_directory;  // where they meet; empty: where it is by default
  uint64_t memory = 0;            // per device
  uint64_t normal_memory = 0;     // the part of it in normal pages
  IdleUsage idle_usage;           // the part of it that no process can have
  SizeAlignment size_alignment = SizeAlignment::kReject;
  AttributeSet attribute_set = AttributeSet::kFull;
  ReserveFlag reserve_flag = ReserveFlag::kIgnore;
  ExpectedAddress expected_address = ExpectedAddress::kHint;
  DeviceBinding device_binding = DeviceBinding::kForLife;
  SyncDeviceCopy sync_device_copy = SyncDeviceCopy::kReject;
  HostAccess host_access = HostAccess::kDeny;
  HostLock host_lock = HostLock::kBestEffort;
  Backing backing = Backing::kAuto;
  Commit commit = Commit::kLazy;
  std::optional<uint64_t> host_budget;  // a fixed number of bytes
  bool host_budget_unlimited = false;   // neither this nor a number: what the machine can spare
  Poison poison = Poison::kOff;
  // What blocks on NUMA nodes with an attribute for copies between devices can have together, of
  // all processes; nothing: no limit, as where the product has none.
  std::optional<uint64_t> host_peer_memory;
  std::optional<uint64_t> backup_memory;  // what a backup may keep on the host; none: anything
  platform::LogChoice log;
  std::vector<FailureRule> failures;       // calls that fail on purpose
  std::optional<ScheduleChoice> schedule;  // in which order tasks run; nothing: as threads are free
  std::string call_sites;                  // the file that lists the program's calls; empty: none
  CheckChoice check;                       // what is looked for in the program
  RecordingChoice recording;               // what is written down of it
  // Physical numbers of the devices this process sees, in its own order.
  std::vector<int32_t> visible_devices;

  // Whether the CPU may follow device addresses: where it is told so, and where the program runs on
  // the device.
  bool cpu_sees_devices() const {
    return host_access == HostAccess::kAllow || product.run_mode == RunMode::kDevice;
  }
};

}  // namespace understudy
