// SPDX-License-Identifier: Apache-2.0
//
// Where a device is on the PCIe bus of its machine: "0000:3d:00.0". A device of this library has
// a bus of its own, by its physical number. Rules: PCI.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace understudy {

struct PciBusId {
  // With the zero at its end.
  static constexpr size_t kTextSize = 13;

  uint16_t domain = 0;
  uint8_t bus = 0;
  uint8_t device = 0;
  uint8_t function = 0;

  static PciBusId of_device(int32_t physical_number);
  // Nothing if the text has another form.
  static std::optional<PciBusId> parse(std::string_view text);
  std::array<char, kTextSize> text() const;

  friend bool operator==(const PciBusId&, const PciBusId&) = default;
};

}  // namespace understudy
