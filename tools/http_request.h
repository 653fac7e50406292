// SPDX-License-Identifier: Apache-2.0
//
// The head of an HTTP/1.1 request, read from bytes that anybody may have sent.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace understudy::command {

struct HttpRequest {
  std::string method;
  std::string path;  // as it was sent, with its query
  std::string host;  // of the Host header
  std::string if_none_match;
};

// Longer heads are refused.
inline constexpr size_t kMostRequestBytes = size_t{8} << 10;

enum class RequestState : unsigned char { kIncomplete, kComplete, kWrong };

// Reads what was received so far. `request` is filled in if it is complete.
RequestState parse_request(std::string_view received, HttpRequest& request);

}  // namespace understudy::command
