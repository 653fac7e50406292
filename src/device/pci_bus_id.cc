// SPDX-License-Identifier: Apache-2.0
#include "device/pci_bus_id.h"

#include <cstdio>

#include "device/settings.h"

namespace understudy {

namespace {

// Devices of a machine are some buses apart, as bridges are between them.
constexpr int32_t kBusesPerDevice = 8;
static_assert(kMaxDevices * kBusesPerDevice <= 256);

constexpr std::string_view kForm = "hhhh:hh:hh.h";
static_assert(kForm.size() + 1 == PciBusId::kTextSize);

std::optional<unsigned> digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return std::nullopt;
}

}  // namespace

PciBusId PciBusId::of_device(int32_t physical_number) {
  return {.bus = static_cast<uint8_t>(physical_number * kBusesPerDevice + 1)};
}

std::optional<PciBusId> PciBusId::parse(std::string_view text) {
  if (text.size() != kForm.size()) return std::nullopt;
  std::array<unsigned, 4> numbers{};
  size_t number = 0;
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != 'h') {
      if (text[i] != kForm[i]) return std::nullopt;
      ++number;
      continue;
    }
    const std::optional<unsigned> digit = digit_of(text[i]);
    if (!digit) return std::nullopt;
    numbers[number] = numbers[number] * 16 + *digit;
  }
  return PciBusId{static_cast<uint16_t>(numbers[0]), static_cast<uint8_t>(numbers[1]),
                  static_cast<uint8_t>(numbers[2]), static_cast<uint8_t>(numbers[3])};
}

std::array<char, PciBusId::kTextSize> PciBusId::text() const {
  std::array<char, kTextSize> text{};
  snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", domain, bus, device, function & 0xFU);
  return text;
}

}  // namespace understudy
