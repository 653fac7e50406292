// SPDX-License-Identifier: Apache-2.0
#include "tools/memory_chart.h"

#include <algorithm>
#include <array>

namespace understudy::command {

namespace {

constexpr size_t kHeights = 8;  // of a line
constexpr std::array<const char*, kHeights + 1> kBlocks = {
    " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr std::array<const char*, kHeights + 1> kLetters = {" ", "_", "_", ".", "-",
                                                            "-", "=", "=", "#"};

// The largest of the points that a column stands for.
uint64_t column_value(std::span<const uint64_t> points, size_t column, size_t columns) {
  const size_t begin = column * points.size() / columns;
  const size_t end = std::max(begin + 1, (column + 1) * points.size() / columns);
  return *std::max_element(points.begin() + static_cast<ptrdiff_t>(begin),
                           points.begin() + static_cast<ptrdiff_t>(end));
}

// Eighths of lines; what is there shows at least one.
size_t height_of(uint64_t value, uint64_t highest, size_t rows) {
  if (value == 0) return 0;
  const double part = static_cast<double>(value) / static_cast<double>(highest);
  const auto height = static_cast<size_t>(part * static_cast<double>(rows * kHeights) + 0.5);
  return std::clamp<size_t>(height, 1, rows * kHeights);
}

}  // namespace

std::vector<std::string> chart_lines(std::span<const uint64_t> points, size_t columns, size_t rows,
                                     Letters letters) {
  std::vector<std::string> lines(rows);
  if (points.empty()) return lines;
  const uint64_t highest = *std::max_element(points.begin(), points.end());
  const auto& marks = letters == Letters::kUtf8 ? kBlocks : kLetters;
  for (size_t column = 0; column < columns; ++column) {
    const size_t height = height_of(column_value(points, column, columns), highest, rows);
    for (size_t row = 0; row < rows; ++row) {
      const size_t below = (rows - 1 - row) * kHeights;
      lines[row] += marks[std::min(height - std::min(height, below), kHeights)];
    }
  }
  return lines;
}

}  // namespace understudy::command
