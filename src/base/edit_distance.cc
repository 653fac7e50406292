// SPDX-License-Identifier: Apache-2.0
#include "base/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace understudy {

size_t edit_distance(std::string_view one, std::string_view other) {
  // Of the beginnings of `one`, a row each, to all beginnings of `other`; three rows are needed.
  std::vector<size_t> before_last(other.size() + 1);
  std::vector<size_t> last(other.size() + 1);
  std::vector<size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= one.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= other.size(); ++j) {
      const size_t changed = last[j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      const bool is_swap =
          i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (is_swap) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

bool is_likely(std::string_view wrong, std::string_view right) {
  return edit_distance(wrong, right) * 3 <= right.size();
}

std::optional<std::string_view> likely_word(std::string_view wrong,
                                            std::span<const std::string_view> words) {
  wrong = wrong.substr(0, 64);
  std::optional<std::string_view> nearest;
  for (const std::string_view word : words) {
    const bool is_nearer = !nearest || edit_distance(wrong, word) < edit_distance(wrong, *nearest);
    if (is_nearer && is_likely(wrong, word)) nearest = word;
  }
  return nearest;
}

}  // namespace understudy
