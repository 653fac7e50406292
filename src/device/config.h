// SPDX-License-Identifier: Apache-2.0
//
// Reads the configuration: defaults, then the TOML file named by UNDERSTUDY_CONFIG, then the
// variables UNDERSTUDY_<KEY>. One table of keys (config_keys.h)
// serves both. A wrong value is an error
// that names the key, the value and what is allowed.
#pragma once

#include "base/result.h"
#include "device/settings.h"

namespace understudy {

Result<Settings> read_settings();

}  // namespace understudy
