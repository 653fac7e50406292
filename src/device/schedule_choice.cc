// SPDX-License-Identifier: Apache-2.0
#include "device/schedule_choice.h"

#include <algorithm>
#include <limits>

#include "device/config_value.h"

namespace understudy {

namespace {

constexpr uint64_t kMostSlow = 1000;

Error wrong_schedule(std::string_view text, const std::string& what) {
  return Error::format(ErrorCode::kInvalidArgument, "configuration key schedule: %.64s: %s",
                       std::string(text).c_str(), what.c_str());
}

// "3:4x".
std::optional<SlowStream> parse_slow(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !text.ends_with('x')) return std::nullopt;
  const auto stream = parse_number(text.substr(0, colon));
  const auto factor = parse_number(text.substr(colon + 1, text.size() - colon - 2));
  if (!stream || *stream > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  if (!factor || *factor == 0 || *factor > kMostSlow) return std::nullopt;
  return SlowStream{static_cast<uint32_t>(*stream), static_cast<uint32_t>(*factor)};
}

// The sentence about a part that is wrong; empty if it is right.
std::string read_part(ScheduleChoice& choice, std::optional<uint64_t>& seed,
                      std::string_view part) {
  const std::string shown = "\"" + std::string(part.substr(0, 64)) + "\"";
  const size_t equals = std::min(part.find('='), part.size());
  const std::string_view name = part.substr(0, equals);
  const std::string_view value = part.substr(std::min(equals + 1, part.size()));
  if (name == "seed") {
    if (seed) return "it has two seeds";
    seed = parse_number(value);
    return seed ? "" : shown + " is not seed=N with a number";
  }
  if (name == "slow") {
    const std::optional<SlowStream> slow = parse_slow(value);
    if (!slow) {
      return shown +
             " is not slow=STREAM:FACTORx with the number of a stream and a factor from 1 "
             "to 1000, such as slow=3:4x";
    }
    const bool is_named = std::ranges::count(choice.slow, slow->stream, &SlowStream::stream) != 0;
    if (is_named) return "stream " + std::to_string(slow->stream) + " is slow twice";
    choice.slow.push_back(*slow);
    return "";
  }
  if (name == "sweep") {
    return "a sweep of seeds is up to the command: understudy run --schedule sweep=100";
  }
  return shown + " is neither seed=N nor slow=STREAM:FACTORx";
}

}  // namespace

Result<std::optional<ScheduleChoice>> parse_schedule(std::string_view text) {
  if (text.empty()) return std::optional<ScheduleChoice>();
  ScheduleChoice choice;
  choice.text = text;
  std::optional<uint64_t> seed;
  for (const std::string_view part : split(text, ',')) {
    const std::string wrong = read_part(choice, seed, part);
    if (!wrong.empty()) return wrong_schedule(text, wrong);
  }
  if (!seed) return wrong_schedule(text, "a seed is missing, such as seed=1");
  choice.seed = *seed;
  return std::optional(std::move(choice));
}

}  // namespace understudy
