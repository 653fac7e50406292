// SPDX-License-Identifier: Apache-2.0
#include "tools/page_of_text.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <cstring>

#include "tools/text_table.h"

namespace understudy::command {

namespace {

constexpr size_t kNarrowest = 40;  // narrower ones break lines
constexpr size_t kWidest = 10'000;
constexpr size_t kLeastText = 24;  // columns that a text gets before figures do
constexpr const char* kPlain = "\x1b[0m";

size_t columns_of_variable() {
  const char* const variable = getenv("COLUMNS");
  return variable == nullptr ? 0 : strtoul(variable, nullptr, 10);
}

size_t columns_of_terminal() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool is_plain_terminal() {
  const char* const kind = getenv("TERM");
  return kind == nullptr || strcmp(kind, "dumb") == 0;
}

const char* start_of(Emphasis emphasis) {
  switch (emphasis) {
    case Emphasis::kTitle:
      return "\x1b[1m";
    case Emphasis::kFaint:
      return "\x1b[2m";
    case Emphasis::kAlarm:
      return "\x1b[31m";
  }
  return "";
}

// How many of the columns there is room for, and which.
std::vector<size_t> choose_columns(const std::vector<FigureColumn>& columns,
                                   const std::vector<PageOfText::Row>& rows, size_t room) {
  std::vector<size_t> widths;
  size_t width = 0;
  for (size_t column = 0; column < columns.size(); ++column) {
    size_t widest = strlen(columns[column].title);
    for (const auto& row : rows) widest = std::max(widest, row.figures[column].size());
    widths.push_back(widest + 2);
    width += widest + 2;
  }
  std::vector<size_t> chosen;
  for (size_t column = columns.size(); column-- > 0;) {
    if (columns[column].is_optional && width > room) {
      width -= widths[column];
    } else {
      chosen.insert(chosen.begin(), column);
    }
  }
  return chosen;
}

}  // namespace

PageStyle PageStyle::of_standard_output() {
  PageStyle style;
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  const char* const refusal = getenv("NO_COLOR");
  style.has_colors =
      is_terminal && (refusal == nullptr || *refusal == '\0') && !is_plain_terminal();
  // A terminal's own width: COLUMNS is often that of another moment.
  size_t columns = is_terminal ? columns_of_terminal() : 0;
  if (columns == 0) columns = columns_of_variable();
  if (columns != 0) style.columns = std::clamp(columns, kNarrowest, kWidest);
  setlocale(LC_CTYPE, "");
  if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0) style.letters = Letters::kUtf8;
  return style;
}

std::string PageOfText::emphasized(std::string_view text, Emphasis emphasis) const {
  if (!style_.has_colors) return std::string(text);
  return start_of(emphasis) + std::string(text) + kPlain;
}

void PageOfText::add_line(std::string_view line) {
  std::string rest = visible_text(line, style_.letters);
  // What follows stands below the first words of the line, a little to the right.
  const std::string indent(std::min<size_t>(rest.find_first_not_of(' '), 6) + 2, ' ');
  while (columns_of(rest) > style_.columns) {
    size_t end = columns_that_fit(rest, style_.columns);
    const size_t space = rest.rfind(' ', end);
    if (space != std::string::npos && rest.find_first_not_of(' ') < space) end = space;
    text_ += rest.substr(0, end) + "\n";
    rest = indent + rest.substr(std::min(rest.find_first_not_of(' ', end), rest.size()));
  }
  text_ += rest + "\n";
}

void PageOfText::add_title(std::string_view title) {
  if (!text_.empty()) text_ += "\n";
  add_emphasized(title, Emphasis::kTitle);
}

void PageOfText::add_emphasized(std::string_view line, Emphasis emphasis) {
  const size_t begin = text_.size();
  add_line(line);
  const std::string lines = text_.substr(begin, text_.size() - begin - 1);
  text_.resize(begin);
  text_ += emphasized(lines, emphasis) + "\n";
}

void PageOfText::add_foreign_line(std::string_view indent, std::string_view line) {
  const size_t room = style_.columns - std::min(style_.columns, indent.size());
  text_ += std::string(indent) + cut_to_columns(visible_text(line, style_.letters), room) + "\n";
}

void PageOfText::add_table(const std::vector<FigureColumn>& columns, const char* text_title,
                           const std::vector<Row>& rows) {
  const std::vector<size_t> chosen = choose_columns(columns, rows, style_.columns - kLeastText);
  std::vector<Column> titles;
  for (const size_t column : chosen) titles.push_back({columns[column].title, Align::kRight});
  TextTable table(titles);
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const size_t column : chosen) cells.push_back(row.figures[column]);
    table.add_row(std::move(cells));
  }
  // Figures are to the right: all lines of the table have one length.
  const std::string lines = table.text();
  const size_t length = lines.find('\n');
  for (size_t line = 0; line <= rows.size(); ++line) {
    const std::string figures = lines.substr(line * (length + 1), length);
    if (line == 0) {
      text_ += emphasized(cut_to_columns(figures + "  " + text_title, style_.columns),
                          Emphasis::kFaint) +
               "\n";
    } else {
      add_foreign_line(figures + "  ", rows[line - 1].text);
    }
  }
}

}  // namespace understudy::command
