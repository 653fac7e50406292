// SPDX-License-Identifier: Apache-2.0
#include "observe/check.h"

#include <algorithm>

namespace understudy {

constinit std::atomic<uint8_t> chosen_checks{0};

std::optional<CheckSet> CheckSet::parse(std::string_view text) {
  if (text == "off") return CheckSet();
  if (text == "on") return mistakes();
  CheckSet checks;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto* const name =
        std::find(kCheckNames.begin(), kCheckNames.end(), text.substr(begin, end - begin));
    if (name == kCheckNames.end()) return std::nullopt;
    checks.add(static_cast<Check>(name - kCheckNames.begin()));
    begin = end + 1;
  }
  return checks;
}

std::string CheckSet::allowed() {
  std::string text = "off, on (all but advice), or a comma list of ";
  for (const std::string_view name : kCheckNames) {
    if (name != kCheckNames.front()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace understudy
