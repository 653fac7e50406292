// SPDX-License-Identifier: Apache-2.0
#include "tools/visible_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace understudy::command {

namespace {

struct Letter {
  uint32_t code;  // 0xfffd: not UTF-8
  size_t bytes;
};

constexpr uint32_t kBroken = 0xfffd;

Letter first_letter(std::string_view text) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char head = byte(0);
  if (head < 0x80) return {head, 1};
  size_t bytes = 0;
  uint32_t code = 0;
  if (head >= 0xc2 && head <= 0xdf) {
    bytes = 2;
    code = head & 0x1f;
  } else if (head >= 0xe0 && head <= 0xef) {
    bytes = 3;
    code = head & 0x0f;
  } else if (head >= 0xf0 && head <= 0xf4) {
    bytes = 4;
    code = head & 0x07;
  }
  if (bytes == 0 || bytes > text.size()) return {kBroken, 1};
  for (size_t index = 1; index < bytes; ++index) {
    if ((byte(index) & 0xc0) != 0x80) return {kBroken, 1};
    code = code << 6 | (byte(index) & 0x3f);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || is_surrogate) return {kBroken, 1};
  return {code, bytes};
}

struct Codes {
  uint32_t first;
  uint32_t last;
};

template <size_t Count>
bool is_in(const std::array<Codes, Count>& ranges, uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Codes& range) { return code >= range.first && code <= range.last; });
}

// What moves the cursor, turns the direction of writing, or takes no column of its own.
bool is_obeyed(uint32_t code) {
  constexpr std::array<Codes, 10> kObeyed = {{{0, 0x1f},
                                              {0x7f, 0x9f},
                                              {0xad, 0xad},
                                              {0x300, 0x36f},
                                              {0x61c, 0x61c},
                                              {0x200b, 0x200f},
                                              {0x2028, 0x202e},
                                              {0x2060, 0x206f},
                                              {0xfe00, 0xfe0f},
                                              {0xfeff, 0xfeff}}};
  return is_in(kObeyed, code) || code >= 0xe0000 || code == kBroken;
}

// East Asian letters and pictures, which take two columns.
bool is_wide(uint32_t code) {
  constexpr std::array<Codes, 9> kWideCharacters = {{{0x1100, 0x115f},
                                                     {0x2e80, 0x303e},
                                                     {0x3041, 0x33ff},
                                                     {0x3400, 0x4dbf},
                                                     {0x4e00, 0x9fff},
                                                     {0xac00, 0xd7a3},
                                                     {0xf900, 0xfaff},
                                                     {0xff00, 0xff60},
                                                     {0x1f300, 0x3fffd}}};
  return is_in(kWideCharacters, code);
}

size_t width_of(uint32_t code) { return is_wide(code) ? 2 : 1; }

}  // namespace

std::string visible_text(std::string_view text, Letters letters) {
  std::string visible;
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    const bool is_shown =
        !is_obeyed(letter.code) && (letters == Letters::kUtf8 || letter.code < 0x80);
    visible += is_shown ? text.substr(0, letter.bytes) : "?";
    text.remove_prefix(letter.bytes);
  }
  return visible;
}

size_t columns_of(std::string_view visible) {
  size_t columns = 0;
  while (!visible.empty()) {
    const Letter letter = first_letter(visible);
    columns += width_of(letter.code);
    visible.remove_prefix(letter.bytes);
  }
  return columns;
}

size_t columns_that_fit(std::string_view visible, size_t columns) {
  size_t used = 0;
  size_t end = 0;
  while (end < visible.size()) {
    const Letter letter = first_letter(visible.substr(end));
    used += width_of(letter.code);
    if (used > columns) break;
    end += letter.bytes;
  }
  return end;
}

std::string cut_to_columns(const std::string& visible, size_t columns) {
  constexpr std::string_view kDots = "..";
  if (columns_of(visible) <= columns) return visible;
  if (columns <= kDots.size()) return std::string(columns, '.');
  const size_t end = columns_that_fit(visible, columns - kDots.size());
  return visible.substr(0, end) + std::string(kDots);
}

}  // namespace understudy::command
