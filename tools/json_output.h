// SPDX-License-Identifier: Apache-2.0
//
// Facts for programs. Paths may be in no encoding; JSON has one.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace understudy::command {

using Json = nlohmann::ordered_json;

// Over several lines, or on one with kOneLine.
inline constexpr int kOneLine = -1;
inline void print_json(const Json& facts, int indent = 2) {
  puts(facts.dump(indent, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace understudy::command
