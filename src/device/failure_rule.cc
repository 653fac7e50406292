// SPDX-License-Identifier: Apache-2.0
#include "device/failure_rule.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/edit_distance.h"
#include "device/config_value.h"
#include "device/public_calls.h"

namespace understudy {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kAll = "all";
// What is shown of names, which come from files and environments.
constexpr size_t kShown = 64;

Error wrong_rule(const FailureRule& rule, const std::string& what) {
  return Error::format(ErrorCode::kInvalidArgument, "configuration key fail: %.64s: %s",
                       rule.text.c_str(), what.c_str());
}

std::string_view nearest_function(std::string_view name) {
  std::string_view nearest = kAll;
  size_t distance = std::numeric_limits<size_t>::max();
  const auto consider = [&](std::string_view candidate) {
    const size_t slips = edit_distance(name, candidate);
    if (slips >= distance) return;
    nearest = candidate;
    distance = slips;
  };
  for (const CallGroup& group : call_groups()) {
    consider(group.name);
    for (const std::string_view function : group.functions) consider(function);
  }
  return nearest;
}

Result<void> add_functions(FailureRule& rule, std::string_view names) {
  bool names_all = false;
  for (const std::string_view name : split(names, '|')) {
    const auto groups = call_groups();
    const auto group = std::ranges::find(groups, name, &CallGroup::name);
    if (name == kAll) {
      names_all = true;
    } else if (group != groups.end()) {
      rule.functions.insert(rule.functions.end(), group->functions.begin(), group->functions.end());
    } else if (group_of_call(name) != nullptr) {
      rule.functions.emplace_back(name);
    } else {
      const std::string shown(name.substr(0, kShown));
      return wrong_rule(rule, "there is no function or group \"" + shown + "\"; the nearest is " +
                                  std::string(nearest_function(shown)));
    }
  }
  if (names_all) rule.functions.clear();
  return {};
}

// From 1 on.
std::optional<uint64_t> parse_count(std::string_view text) {
  const std::optional<uint64_t> number = parse_number(text);
  return number && *number != 0 ? number : std::nullopt;
}

std::optional<double> parse_fraction(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "2s", "500ms", "20us".
std::optional<std::chrono::nanoseconds> parse_time(std::string_view text) {
  constexpr std::pair<std::string_view, std::chrono::nanoseconds> kUnits[] = {
      {"ms", 1ms}, {"us", 1us}, {"s", 1s}};
  for (const auto& [suffix, unit] : kUnits) {
    if (!text.ends_with(suffix)) continue;
    const std::optional<double> count = parse_fraction(text.substr(0, text.size() - suffix.size()));
    if (!count || !(*count >= 0 && *count <= 1e6)) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(*count * unit);
  }
  return std::nullopt;
}

std::optional<int32_t> parse_code(std::string_view text) {
  const std::optional<uint64_t> code = parse_count(text);
  if (!code || *code > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(*code);
}

// A rule in the making: which parts were there.
struct Parts {
  bool condition = false;
  std::optional<uint64_t> seed;
};

// What the part says of the rule; false if its value is wrong.
bool read_condition(FailureRule& rule, std::string_view name, std::string_view value) {
  if (name == "nth" || name == "every" || name == "from_size") {
    const auto number = name == "from_size" ? parse_size(value) : parse_count(value);
    if (!number) return false;
    if (name == "nth") rule.condition = NthCall{*number};
    if (name == "every") rule.condition = EveryCall{*number};
    if (name == "from_size") rule.condition = LargeCall{*number};
    return true;
  }
  if (name == "probability") {
    const std::optional<double> probability = parse_fraction(value);
    if (!probability || !(*probability >= 0 && *probability <= 1)) return false;
    rule.condition = RandomCall{static_cast<uint64_t>(*probability * RandomCall::kOften), 0};
    return true;
  }
  const std::optional<std::chrono::nanoseconds> time = parse_time(value);
  if (time) rule.condition = LateCall{*time};
  return time.has_value();
}

bool is_condition(std::string_view name) {
  constexpr std::string_view kConditions[] = {"nth", "every", "probability", "from_size", "after"};
  return std::ranges::find(kConditions, name) != std::end(kConditions);
}

Result<void> read_part(FailureRule& rule, Parts& parts, std::string_view part) {
  const size_t equals = std::min(part.find('='), part.size());
  const std::string_view name = part.substr(0, equals);
  const std::string_view value = part.substr(std::min(equals + 1, part.size()));
  bool is_right = true;
  if (is_condition(name)) {
    if (std::exchange(parts.condition, true)) return wrong_rule(rule, "it has two conditions");
    is_right = read_condition(rule, name, value);
  } else if (name == "seed") {
    parts.seed = parse_number(value);
    is_right = parts.seed.has_value();
  } else if (name == "code") {
    rule.code = parse_code(value);
    is_right = rule.code.has_value();
  } else if (part == "sticky") {
    rule.sticky = true;
  } else {
    return wrong_rule(rule, "\"" + std::string(part.substr(0, kShown)) +
                                "\" is none of nth=N, every=N, probability=P, seed=N, "
                                "from_size=SIZE, after=TIME, code=CODE and sticky");
  }
  if (is_right) return {};
  return wrong_rule(rule, "\"" + std::string(part.substr(0, kShown)) + "\" has a wrong value");
}

Result<FailureRule> parse_rule(std::string_view text) {
  FailureRule rule;
  rule.text = text;
  const size_t colon = std::min(text.find(':'), text.size());
  const size_t at = std::min(text.find('@'), colon);
  US_TRY(add_functions(rule, text.substr(0, at)));
  if (at != colon) {
    rule.site = text.substr(at + 1, colon - at - 1);
    if (rule.site.empty()) return wrong_rule(rule, "a place of the program is missing behind @");
  }
  if (colon == text.size()) {
    return wrong_rule(rule, "a colon and a condition are missing, such as :nth=1");
  }
  Parts parts;
  for (const std::string_view part : split(text.substr(colon + 1), ',')) {
    US_TRY(read_part(rule, parts, part));
  }
  if (!parts.condition) return wrong_rule(rule, "a condition is missing, such as nth=1");
  auto* const random = std::get_if<RandomCall>(&rule.condition);
  if (random != nullptr) random->seed = parts.seed.value_or(0);
  if (random == nullptr && parts.seed) return wrong_rule(rule, "a seed belongs to a probability");
  return rule;
}

}  // namespace

Result<std::vector<FailureRule>> parse_failure_rules(std::string_view text) {
  std::vector<FailureRule> rules;
  if (text.empty()) return rules;
  for (const std::string_view part : split(text, ';')) {
    US_TRY_ASSIGN(FailureRule rule, parse_rule(part));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace understudy
