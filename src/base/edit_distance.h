// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace understudy {

// How many slips of the keyboard lie between two words: letters that are missing, too many or
// wrong, and neighbors that changed places. Takes time and memory in the product of their lengths.
size_t edit_distance(std::string_view one, std::string_view other);

// Whether `wrong` is likely meant to be `right`: one slip in three letters. Beyond that it is
// another word.
bool is_likely(std::string_view wrong, std::string_view right);
// The nearest of those words that are likely. Of a wrong word, no more than the first 64 letters
// are looked at.
std::optional<std::string_view> likely_word(std::string_view wrong,
                                            std::span<const std::string_view> words);

}  // namespace understudy
