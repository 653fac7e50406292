// SPDX-License-Identifier: Apache-2.0
#include "device/driver_generation.h"

#include <array>

namespace understudy {

namespace {

// What is published to need 26.0.RC1 (RETAIN-07). Nothing is published that tells the older ones
// apart.
constexpr FeatureSet kSince26 = {Feature::kRetainHandle};

// Those that go with the release whose functions the headers have.
constexpr std::array kGenerations = {
    DriverGeneration{"26.0.RC1", {26, 0, 0, 1}},
    DriverGeneration{"25.5.0", {25, 5, 0, 0}, kSince26},
    DriverGeneration{"25.3.RC1", {25, 3, 0, 1}, kSince26},
    DriverGeneration{"25.2.0", {25, 2, 0, 0}, kSince26},
    DriverGeneration{"25.0.RC1", {25, 0, 0, 1}, kSince26},
};

}  // namespace

std::span<const DriverGeneration> driver_generations() { return kGenerations; }

const DriverGeneration* find_driver(std::string_view name) {
  for (const DriverGeneration& driver : kGenerations) {
    if (driver.name == name) return &driver;
  }
  return nullptr;
}

const DriverGeneration& first_driver_with(Feature feature) {
  const DriverGeneration* first = &kGenerations.front();
  for (const DriverGeneration& driver : kGenerations) {
    if (driver.lacks.has(feature)) break;
    first = &driver;
  }
  return *first;
}

}  // namespace understudy
