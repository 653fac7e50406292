// SPDX-License-Identifier: Apache-2.0
//
// The kinds of values a configuration key takes, from text. Nothing if the text is not one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace understudy {

// "64G", "512M", "4096".
std::optional<uint64_t> parse_size(std::string_view text);
std::optional<uint64_t> parse_number(std::string_view text);

// A share of a whole, "1/16", or a size.
struct Share {
  uint64_t numerator = 0;
  uint64_t denominator = 0;  // 0: `numerator` is a size in bytes
  uint64_t of(uint64_t whole) const {
    return denominator == 0 ? numerator : whole / denominator * numerator;
  }
};
std::optional<Share> parse_share(std::string_view text);

// The parts of a list; one, if there is no separator.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace understudy
