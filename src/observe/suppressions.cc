// SPDX-License-Identifier: Apache-2.0
#include "observe/suppressions.h"

#include <algorithm>

#include "platform/pattern.h"

namespace understudy {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

Result<Suppressions> Suppressions::parse(std::string_view text) {
  Suppressions parsed;
  unsigned number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string_view name = line.substr(0, colon);
    const auto* const known = std::find(kCheckNames.begin(), kCheckNames.end(), name);
    if (colon + 1 >= line.size() || (known == kCheckNames.end() && name != "*")) {
      return Error::format(ErrorCode::kInvalidArgument,
                           "line %u of the suppressions is \"%.*s\" and must be CHECK:PATTERN",
                           number, static_cast<int>(std::min<size_t>(line.size(), 100)),
                           line.data());
    }
    std::optional<Check> check;
    if (name != "*") check = static_cast<Check>(known - kCheckNames.begin());
    parsed.lines_.push_back({check, std::string(trimmed(line.substr(colon + 1)))});
  }
  return parsed;
}

bool Suppressions::name(Check check, const std::vector<std::string>& texts) const {
  return std::ranges::any_of(lines_, [&](const Line& line) {
    return (!line.check || *line.check == check) &&
           std::ranges::any_of(texts, [&](const std::string& text) {
             return platform::matches_pattern(line.pattern, text);
           });
  });
}

}  // namespace understudy
