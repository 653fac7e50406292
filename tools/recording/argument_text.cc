// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/argument_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "tools/recording/valid_text.h"

namespace understudy::command {

namespace {

int32_t low_half(uint64_t word) { return static_cast<int32_t>(static_cast<uint32_t>(word)); }
int32_t high_half(uint64_t word) { return static_cast<int32_t>(static_cast<uint32_t>(word >> 32)); }

// As aclrtMemLocationType counts them.
void append_location(std::string& out, int32_t type, uint64_t id) {
  constexpr std::array<std::string_view, 5> kTypes = {"host", "device", "unregistered", "managed",
                                                      "host NUMA node"};
  if (type >= 0 && static_cast<size_t>(type) < kTypes.size()) {
    out += kTypes.at(static_cast<size_t>(type));
  } else {
    out += "location type ";
    append_signed(out, type);
  }
  const bool has_id = type != 0 && type != 2;
  if (!has_id) return;
  out += ' ';
  append_number(out, id);
}

// See recorded_arguments.h of the library.
void append_properties(std::string& out, std::span<const uint64_t> words) {
  append_location(out, high_half(words[1]), words[2]);
  out += ", attribute ";
  append_signed(out, low_half(words[1]));
  out += ", handle type ";
  append_signed(out, low_half(words[0]));
  out += ", allocation type ";
  append_signed(out, high_half(words[0]));
}

void append_float(std::string& out, uint64_t word) {
  std::array<char, 32> digits;
  snprintf(digits.data(), digits.size(), "%g",
           static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(word))));
  out += digits.data();
}

}  // namespace

void append_argument(std::string& out, const Recording& recording, const Parameter& parameter,
                     std::span<const uint64_t> words, bool has_failed) {
  if (words.empty()) {
    out += "not recorded";
    return;
  }
  const uint64_t word = words[0];
  if (has_failed && parameter.is_out) return append_hex(out, word);
  switch (parameter.type) {
    case 'u':
      return append_number(out, word);
    case 'i':
      return append_signed(out, static_cast<int64_t>(word));
    case 'f':
      return append_float(out, word);
    case 't':
      out += word < recording.texts.size() ? recording.texts[word] : "none";
      return;
    case 'x':
      out += word == 0 ? "NULL" : "not NULL";
      return;
    case 'L':
      return append_location(out, high_half(word), static_cast<uint32_t>(word));
    case 'P':
      if (words.size() < 3) break;
      if (words[1] == UINT64_MAX) {  // they could not be read
        out += "none";
      } else {
        append_properties(out, words);
      }
      return;
    default:
      break;
  }
  append_hex(out, word);
}

std::span<const uint64_t> take_argument(std::span<const uint64_t>& words,
                                        const Parameter& parameter) {
  const std::span<const uint64_t> taken =
      words.first(std::min<size_t>(parameter.words, words.size()));
  words = words.subspan(taken.size());
  return taken;
}

std::span<const uint64_t> argument_named(const Recording& recording, const RecordedCall& call,
                                         std::string_view name) {
  std::span<const uint64_t> words = recording.arguments(call);
  for (const Parameter& parameter : recording.functions[call.function].parameters) {
    const std::span<const uint64_t> taken = take_argument(words, parameter);
    if (parameter.name == name) return taken;
  }
  return {};
}

}  // namespace understudy::command
