// SPDX-License-Identifier: Apache-2.0
//
// The keys of the configuration: one table for the TOML file, the variables and the options of the
// command. Each key reads its value from text into a draft.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/config_value.h"
#include "device/settings.h"

namespace understudy {

// What was said, before the parts that depend on each other are put together.
struct ConfigDraft {
  Settings settings;
  const ProductProfile* product = nullptr;
  std::string soc;
  std::optional<uint64_t> memory;
  Share normal_memory{1, 16};
  std::string normal_memory_text;
  uint64_t idle_usage = 0;
  std::string idle_usage_text;
  std::string slice;                               // empty: none
  std::vector<std::pair<Feature, bool>> features;  // added or taken away, in order
  std::optional<platform::LogLevel> log;
  std::string fail;
  std::string schedule;
};

struct ConfigKey {
  std::string name;
  std::string allowed;                                         // for people
  std::function<bool(ConfigDraft&, const std::string&)> read;  // false: not an allowed value
  bool is_file = false;                                        // the value is a path of a file
};

const std::vector<ConfigKey>& config_keys();
// Null if there is no such key.
const ConfigKey* find_config_key(std::string_view name);
// The variable of a key: UNDERSTUDY_NORMAL_MEMORY.
inline constexpr std::string_view kVariablePrefix = "UNDERSTUDY_";
std::string config_variable(std::string_view key);
// `where` says where the value stands.
Error wrong_config_value(const ConfigKey& key, const std::string& value, const std::string& where);

// "a, b, c", for people.
template <typename Names>
std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace understudy
