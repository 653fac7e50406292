// SPDX-License-Identifier: Apache-2.0
#include "observe/place_text.h"

#include <cinttypes>
#include <cstdio>

#include "base/size_text.h"
#include "observe/stack_text.h"

namespace understudy {

std::string call_at(const ProgramPlace& place) {
  return std::string(place.function == nullptr ? "a call" : place.function) + " at " +
         place_of(place.stack);
}

std::string by_call(const ProgramPlace& place) {
  return place.function == nullptr ? "" : std::string(" by ") + place.function;
}

std::string hex(VirtualAddress address) {
  char text[32];
  snprintf(text, sizeof text, "0x%" PRIx64, address);
  return text;
}

std::string text_of(VirtualRange range) {
  return std::string(SizeText(range.size).c_str()) + " at " + hex(range.base);
}

}  // namespace understudy
