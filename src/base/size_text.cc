// SPDX-License-Identifier: Apache-2.0
#include "base/size_text.h"

#include <cinttypes>
#include <cstdio>

#include "base/sizes.h"

namespace understudy {

namespace {

struct Unit {
  uint64_t bytes;
  const char* name;
};
constexpr Unit kUnits[] = {{kTiB, "TiB"}, {kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}};

}  // namespace

SizeText::SizeText(uint64_t bytes) {
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
  snprintf(text_, sizeof text_, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
}

RoughSizeText::RoughSizeText(uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes < unit.bytes) continue;
    const uint64_t whole = bytes / unit.bytes;
    const auto hundredths =
        static_cast<unsigned>(bytes % unit.bytes / (unit.bytes / 128) * 100 / 128);
    if (bytes % unit.bytes == 0) {
      snprintf(text_, sizeof text_, "%" PRIu64 " %s", whole, unit.name);
    } else {
      snprintf(text_, sizeof text_, "%" PRIu64 ".%02u %s", whole, hundredths, unit.name);
    }
    return;
  }
  snprintf(text_, sizeof text_, "%s", SizeText(bytes).c_str());
}

}  // namespace understudy
