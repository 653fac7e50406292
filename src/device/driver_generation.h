// SPDX-License-Identifier: Apache-2.0
//
// Generations of drivers, as data: what each is called and which features it lacks. A table
// (driver_generation.cc) that the configuration chooses from; code asks the product for a feature
// and never which driver it is.
#pragma once

#include <span>
#include <string_view>

#include "base/release_version.h"
#include "device/product_profile.h"

namespace understudy {

struct DriverGeneration {
  std::string_view name;  // as in the configuration, and as programs are told
  ReleaseVersion version;
  FeatureSet lacks{};  // of what products have with the newest one
};

// From the newest to the oldest.
std::span<const DriverGeneration> driver_generations();
inline const DriverGeneration& newest_driver() { return driver_generations().front(); }
// Null if there is none of that name.
const DriverGeneration* find_driver(std::string_view name);
// The oldest one from which on every driver has the feature.
const DriverGeneration& first_driver_with(Feature feature);

}  // namespace understudy
