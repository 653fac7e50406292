// SPDX-License-Identifier: Apache-2.0
//
// Where memory is: on a device, on the host, or on one NUMA node of the host.
#pragma once

#include <cstdint>

namespace understudy {

enum class LocationKind : uint8_t { kDevice, kHost, kHostNuma };

struct Location {
  LocationKind kind = LocationKind::kDevice;
  uint32_t id = 0;  // device or NUMA node; 0 for the host

  bool on_device() const { return kind == LocationKind::kDevice; }
  friend bool operator==(const Location&, const Location&) = default;
};

}  // namespace understudy
