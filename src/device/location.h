// SPDX-License-Identifier: Apache-2.0
//
// Where memory is: on a device, on the host, on one NUMA node of the host, or wherever it is used.
#pragma once

#include <cstdint>

namespace understudy {

enum class LocationKind : uint8_t { kDevice, kHost, kHostNuma, kManaged };

struct Location {
  LocationKind kind = LocationKind::kDevice;
  uint32_t id = 0;  // device or NUMA node; 0 for the host; the device that managed memory ends with

  bool on_device() const { return kind == LocationKind::kDevice; }
  friend bool operator==(const Location&, const Location&) = default;
};

}  // namespace understudy
