// SPDX-License-Identifier: Apache-2.0
#include "device/config_names.h"

#include <algorithm>
#include <array>

#include "base/edit_distance.h"
#include "platform/text_file.h"

namespace understudy {

namespace {

// What has the prefix and is no key: the file with the keys, and what the project's tests use.
constexpr std::array<std::string_view, 1> kOtherVariables = {"UNDERSTUDY_CONFIG"};
constexpr std::array<std::string_view, 2> kOtherPrefixes = {"UNDERSTUDY_TEST_",
                                                            "UNDERSTUDY_STORM_"};

// No key is longer by far, and names come from files and environments.
std::string_view beginning_of(std::string_view name) { return name.substr(0, 64); }

std::string lower_case(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return lower;
}

// What a terminal would take for a command is not shown.
std::string shown(std::string_view name) {
  std::string text(beginning_of(name));
  std::ranges::replace_if(
      text, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return text;
}

bool is_known(const std::string& variable) {
  if (std::ranges::find(kOtherVariables, variable) != kOtherVariables.end()) return true;
  if (std::ranges::any_of(kOtherPrefixes,
                          [&](std::string_view each) { return variable.starts_with(each); })) {
    return true;
  }
  return std::ranges::any_of(
      config_keys(), [&](const ConfigKey& key) { return config_variable(key.name) == variable; });
}

}  // namespace

const ConfigKey& nearest_config_key(std::string_view name) {
  const std::string wrong = lower_case(beginning_of(name));
  return *std::ranges::min_element(
      config_keys(), {}, [&](const ConfigKey& key) { return edit_distance(wrong, key.name); });
}

const ConfigKey* likely_config_key(std::string_view name) {
  const ConfigKey& nearest = nearest_config_key(name);
  return is_likely(lower_case(beginning_of(name)), nearest.name) ? &nearest : nullptr;
}

std::vector<std::string> unknown_variables() {
  std::vector<std::string> sentences;
  for (const std::string& variable : platform::environment_names(kVariablePrefix)) {
    if (is_known(variable)) continue;
    std::string sentence = shown(variable) + " is not a setting";
    if (const ConfigKey* key =
            likely_config_key(std::string_view(variable).substr(kVariablePrefix.size()))) {
      sentence += "; did you mean " + config_variable(key->name) + "?";
    }
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace understudy
