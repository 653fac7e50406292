// SPDX-License-Identifier: Apache-2.0
#include "device/config_nesting.h"

#include <algorithm>

namespace understudy {

namespace {

// The end of the string that starts at `at`, past its last quote. One that does not end is wrong,
// and ends with its line or with the text.
size_t end_of_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const std::string_view three = text.substr(at, 3);
  const bool many_lines = three.size() == 3 && three[1] == quote && three[2] == quote;
  const size_t width = many_lines ? 3 : 1;
  for (at += width; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text[at] == '\n' && !many_lines) {
      return at;
    } else if (text.substr(at, width) == three.substr(0, width)) {
      return at + width;
    }
  }
  return text.size();
}

}  // namespace

unsigned toml_nesting(std::string_view text) {
  unsigned deepest = 0;
  unsigned brackets = 0;
  unsigned dots = 0;  // since something that no key contains
  for (size_t at = 0; at < text.size();) {
    switch (text[at]) {
      case '"':
      case '\'':
        at = end_of_string(text, at);
        continue;
      case '#':
        at = std::min(text.find('\n', at), text.size());
        continue;
      case '[':
      case '{':
        ++brackets;
        dots = 0;
        break;
      case ']':
      case '}':
        if (brackets > 0) --brackets;
        dots = 0;
        break;
      case '.':
        ++dots;
        break;
      case '=':
      case ',':
      case '\n':
        dots = 0;
        break;
      default:
        break;
    }
    deepest = std::max({deepest, brackets, dots});
    ++at;
  }
  return deepest;
}

}  // namespace understudy
