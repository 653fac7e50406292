// SPDX-License-Identifier: Apache-2.0
#include "platform/pattern.h"

#include <fnmatch.h>

namespace understudy::platform {

bool matches_pattern(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace understudy::platform
