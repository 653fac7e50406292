// SPDX-License-Identifier: Apache-2.0
//
// A configuration file, as names and texts: the only place that knows TOML, whose parser takes
// longer to compile than the rest of this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace understudy {

struct ConfigEntry {
  std::string name;
  std::optional<std::string> value;  // nothing: neither text nor a whole number
};

// The entries of a TOML file, in the order of their names. Refuses one that is too large or nested
// too deep before it is parsed.
Result<std::vector<ConfigEntry>> read_config_file(const std::string& path);

}  // namespace understudy
