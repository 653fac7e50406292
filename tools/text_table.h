// SPDX-License-Identifier: Apache-2.0
//
// A table for people: columns as wide as what is in them, two spaces apart, no control characters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace understudy::command {

enum class Align : uint8_t { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: as many cells as columns.
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // Lines with an end each, no spaces before it.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "1.25 GiB"; "-" for nothing.
std::string size_cell(uint64_t bytes);
// Cut or filled with spaces to a width.
std::string fit(const std::string& text, size_t width, Align align = Align::kLeft);

}  // namespace understudy::command
