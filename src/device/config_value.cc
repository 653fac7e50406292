// SPDX-License-Identifier: Apache-2.0
#include "device/config_value.h"

#include <algorithm>
#include <charconv>

#include "base/sizes.h"

namespace understudy {

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  if (text.empty()) return std::nullopt;
  uint64_t unit = 1;
  switch (text.back()) {
    case 'K':
      unit = kKiB;
      break;
    case 'M':
      unit = kMiB;
      break;
    case 'G':
      unit = kGiB;
      break;
    case 'T':
      unit = kTiB;
      break;
    default:
      break;
  }
  if (unit != 1) text.remove_suffix(1);
  const std::optional<uint64_t> count = parse_number(text);
  uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, unit, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<Share> parse_share(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    const std::optional<uint64_t> bytes = parse_size(text);
    if (!bytes) return std::nullopt;
    return Share{*bytes, 0};
  }
  const std::optional<uint64_t> numerator = parse_number(text.substr(0, slash));
  const std::optional<uint64_t> denominator = parse_number(text.substr(slash + 1));
  if (!numerator || !denominator || *denominator == 0 || *numerator > *denominator) {
    return std::nullopt;
  }
  return Share{*numerator, *denominator};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace understudy
