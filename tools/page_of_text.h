// SPDX-License-Identifier: Apache-2.0
//
// What is printed at once for people: how wide it may be, whether it may have colors and letters
// beyond ASCII, and the text so far.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/visible_text.h"

namespace understudy::command {

enum class Emphasis : uint8_t { kTitle, kFaint, kAlarm };

struct PageStyle {
  size_t columns = 100;
  bool has_colors = false;
  Letters letters = Letters::kAscii;

  // That of standard output: a terminal has its own width and colors, unless NO_COLOR says
  // otherwise; COLUMNS is the width of anything else. The locale tells about letters.
  static PageStyle of_standard_output();
};

// A column of figures. Optional ones are left out where a line has too few columns, the last first.
struct FigureColumn {
  const char* title;
  bool is_optional = false;
};

class PageOfText {
 public:
  explicit PageOfText(PageStyle style) : style_(style) {}

  const PageStyle& style() const { return style_; }
  const std::string& text() const { return text_; }

  // A line of ours, broken between words.
  void add_line(std::string_view line);
  // A heading, with an empty line above it if there is something.
  void add_title(std::string_view title);
  void add_emphasized(std::string_view line, Emphasis emphasis);
  // A text of any origin, cut to the width.
  void add_foreign_line(std::string_view indent, std::string_view line);
  // As it is.
  void add_raw(std::string_view text) { text_ += text; }
  // Emphasis for a part of a line, if there are colors.
  std::string emphasized(std::string_view text, Emphasis emphasis) const;

  struct Row {
    std::vector<std::string> figures;
    std::string text;  // of any origin
  };
  // Figures to the right, then a text to the left, cut to the width.
  void add_table(const std::vector<FigureColumn>& columns, const char* text_title,
                 const std::vector<Row>& rows);

 private:
  PageStyle style_;
  std::string text_;
};

}  // namespace understudy::command
