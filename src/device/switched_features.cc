// SPDX-License-Identifier: Apache-2.0
#include "device/switched_features.h"

#include <new>
#include <string>

#include "platform/log.h"

namespace understudy {

void advise_if_switched_on(const Settings& settings, Feature feature) noexcept {
  if (!settings.switched_on.has(feature)) return;
  try {
    const std::string lacking = "product " + std::string(settings.product.key) + " (" +
                                settings.soc_name + ") with driver " +
                                std::string(settings.driver->name);
    for (const FeatureName& each : configurable_features()) {
      if (each.feature == feature) advise_switched_on(each.name, lacking);
    }
  } catch (const std::bad_alloc&) {
    platform::say("no memory for advice");
  }
}

}  // namespace understudy
