// SPDX-License-Identifier: Apache-2.0
#include "device/config_file.h"

#include <toml++/toml.h>

#include "base/sizes.h"
#include "device/config_nesting.h"
#include "platform/text_file.h"

namespace understudy {

namespace {

// No configuration needs more, and a parser that is given it needs a stack and memory to match.
constexpr size_t kMaxFile = kMiB;
constexpr unsigned kMaxNesting = 16;

// Values may be written as text or as a number.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value<std::string>(); text && node.is_string()) return *text;
  if (const auto number = node.value<int64_t>(); number && node.is_integer()) {
    return std::to_string(*number);
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<ConfigEntry>> read_config_file(const std::string& path) {
  const std::optional<std::string> text = platform::read_text_file(path);
  if (!text) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "the configuration file %s (UNDERSTUDY_CONFIG) cannot be read",
                         path.c_str());
  }
  if (text->size() > kMaxFile) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "the configuration file %s has %zu bytes; at most %zu are read",
                         path.c_str(), text->size(), kMaxFile);
  }
  if (const unsigned nesting = toml_nesting(*text); nesting > kMaxNesting) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "the configuration file %s is nested %u deep; at most %u are read",
                         path.c_str(), nesting, kMaxNesting);
  }
  try {
    std::vector<ConfigEntry> entries;
    for (const auto& [name, node] : toml::parse(*text, path)) {
      entries.push_back({std::string(name.str()), text_of(node)});
    }
    return entries;
  } catch (const toml::parse_error& error) {
    return Error::format(ErrorCode::kInvalidArgument, "%s is not TOML: line %u: %s", path.c_str(),
                         error.source().begin.line, std::string(error.description()).c_str());
  }
}

}  // namespace understudy
