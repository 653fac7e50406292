// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/valid_text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace understudy::command {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// How many bytes the letter at the front has; 0 if it is no UTF-8. REQUIRES: it is not empty.
size_t bytes_of_letter(std::string_view text) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t count = first >= 0xf0 ? 4 : (first >= 0xe0 ? 3 : 2);
  if (first < 0xc2 || first > 0xf4 || text.size() < count) return 0;
  for (size_t index = 1; index < count; ++index) {
    if ((byte(index) & 0xc0) != 0x80) return 0;
  }
  // Longer than need be, a half of a pair of UTF-16, or beyond the last letter.
  const bool is_bad = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return is_bad ? 0 : count;
}

bool is_plain(unsigned char byte) { return byte < 0x80; }

// Hands out the letters of a text, and the replacement for each byte that is part of none.
template <typename Take>
void for_each_letter(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const size_t count = bytes_of_letter(text);
    take(count == 0 ? kReplacement : text.substr(0, count));
    text.remove_prefix(std::max<size_t>(count, 1));
  }
}

void append_json_letter(std::string& out, std::string_view letter) {
  const auto byte = static_cast<unsigned char>(letter.front());
  if (byte == '"' || byte == '\\') {
    out += '\\';
    out += letter;
  } else if (byte == '\n') {
    out += "\\n";
  } else if (byte < ' ') {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += "\\u00";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  } else {
    out += letter;
  }
}

void append_xml_letter(std::string& out, std::string_view letter) {
  const auto byte = static_cast<unsigned char>(letter.front());
  if (byte == '&') {
    out += "&amp;";
  } else if (byte == '<') {
    out += "&lt;";
  } else if (byte == '>') {
    out += "&gt;";
  } else if (byte == '"') {
    out += "&quot;";
  } else if (byte == '\n' || byte == '\t') {
    out += byte == '\n' ? "&#10;" : "&#9;";
  } else if (byte < ' ' || letter == "\xef\xbf\xbe" || letter == "\xef\xbf\xbf") {
    out += kReplacement;
  } else {
    out += letter;
  }
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string out;
  for_each_letter(text, [&](std::string_view letter) { out += letter; });
  return out;
}

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  for_each_letter(text, [&](std::string_view letter) { append_json_letter(out, letter); });
  out += '"';
}

void append_xml_text(std::string& out, std::string_view text) {
  for_each_letter(text, [&](std::string_view letter) { append_xml_letter(out, letter); });
}

void append_number(std::string& out, uint64_t number) {
  std::array<char, 24> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_signed(std::string& out, int64_t number) {
  std::array<char, 24> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_hex(std::string& out, uint64_t number) {
  std::array<char, 24> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  out += "0x";
  out.append(digits.data(), end);
}

}  // namespace understudy::command
