// SPDX-License-Identifier: Apache-2.0
#include "base/size_text.h"

#include <cinttypes>
#include <cstdio>

#include "base/sizes.h"

namespace understudy {

SizeText::SizeText(uint64_t bytes) {
  struct Unit {
    uint64_t bytes;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{kTiB, "TiB"}, {kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}};
  for (const Unit& unit : kUnits) {
    // A fraction is shown only where it is exact to one eighth; else the next smaller unit is.
    if (bytes < unit.bytes || bytes % (unit.bytes / 8) != 0) continue;
    if (bytes % unit.bytes == 0) {
      snprintf(text_, sizeof text_, "%" PRIu64 " %s", bytes / unit.bytes, unit.name);
    } else {
      snprintf(text_, sizeof text_, "%.12g %s",
               static_cast<double>(bytes) / static_cast<double>(unit.bytes), unit.name);
    }
    return;
  }
  snprintf(text_, sizeof text_, "%" PRIu64 " bytes", bytes);
}

}  // namespace understudy
