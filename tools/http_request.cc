// SPDX-License-Identifier: Apache-2.0
#include "tools/http_request.h"

#include <algorithm>
#include <cctype>

namespace understudy::command {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

// The text in front of an end, which is taken off with it. Nothing if the end is not there.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view end) {
  const size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return taken;
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char letter) { return letter == ' ' || letter == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_name(std::string_view name, std::string_view lower_case) {
  return std::equal(name.begin(), name.end(), lower_case.begin(), lower_case.end(),
                    [](unsigned char left, char right) { return tolower(left) == right; });
}

bool has_control_characters(std::string_view line) {
  return std::any_of(line.begin(), line.end(), [](unsigned char letter) {
    return (letter < ' ' && letter != '\t') || letter == 0x7f;
  });
}

// "GET /path HTTP/1.1"
bool read_first_line(std::string_view line, HttpRequest& request) {
  const auto method = take_until(line, " ");
  const auto path = take_until(line, " ");
  if (!method || !path || method->empty() || !path->starts_with('/')) return false;
  request.method = *method;
  request.path = *path;
  return line == "HTTP/1.1" || line == "HTTP/1.0";
}

bool read_header(std::string_view line, HttpRequest& request) {
  const auto name = take_until(line, ":");
  if (!name || name->empty() || name->find_first_of(" \t") != std::string_view::npos) return false;
  if (is_name(*name, "if-none-match")) request.if_none_match = trimmed(line);
  if (!is_name(*name, "host")) return true;
  // Two would mean what each reader likes.
  if (!request.host.empty()) return false;
  request.host = trimmed(line);
  return true;
}

}  // namespace

RequestState parse_request(std::string_view received, HttpRequest& request) {
  auto head = take_until(received, "\r\n\r\n");
  if (!head) {
    const bool is_long = received.size() > kMostRequestBytes;
    return is_long ? RequestState::kWrong : RequestState::kIncomplete;
  }
  if (head->size() > kMostRequestBytes) return RequestState::kWrong;
  HttpRequest read;
  bool is_first = true;
  while (!head->empty()) {
    std::string_view line = *head;
    if (const auto taken = take_until(*head, kLineEnd)) {
      line = *taken;
    } else {
      *head = {};
    }
    if (has_control_characters(line)) return RequestState::kWrong;
    if (!(is_first ? read_first_line(line, read) : read_header(line, read))) {
      return RequestState::kWrong;
    }
    is_first = false;
  }
  if (is_first) return RequestState::kWrong;
  request = std::move(read);
  return RequestState::kComplete;
}

}  // namespace understudy::command
