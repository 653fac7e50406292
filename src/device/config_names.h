// SPDX-License-Identifier: Apache-2.0
//
// Names that are close to a key of the configuration without being one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/config_keys.h"

namespace understudy {

// The key whose name is nearest to this one, however far it is.
const ConfigKey& nearest_config_key(std::string_view name);
// The key that a name likely means; null if it is too far from all of them.
const ConfigKey* likely_config_key(std::string_view name);

// A sentence for each variable UNDERSTUDY_... of the environment that is no setting, nor one that
// names the configuration or belongs to the project's own tests.
std::vector<std::string> unknown_variables();

}  // namespace understudy
