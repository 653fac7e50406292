// SPDX-License-Identifier: Apache-2.0
#include "tools/text_table.h"

#include <algorithm>

#include "base/size_text.h"

namespace understudy::command {

std::string fit(const std::string& text, size_t width, Align align) {
  if (text.size() >= width) return text.substr(0, width);
  const std::string space(width - text.size(), ' ');
  return align == Align::kLeft ? text + space : space + text;
}

std::string size_cell(uint64_t bytes) {
  return bytes == 0 ? std::string("-") : RoughSizeText(bytes).c_str();
}

std::string TextTable::text() const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    size_t width = columns_[i].title.size();
    for (const auto& row : rows_) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += "  ";
      line += fit(cells[i], widths[i], columns_[i].align);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_line(titles);
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace understudy::command
