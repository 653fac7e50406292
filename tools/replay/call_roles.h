// SPDX-License-Identifier: Apache-2.0
//
// Roles of parameters (call_table.h) as values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace understudy::command {

struct ParameterRole {
  char letter = '.';
  bool is_written = false;
  bool ends = false;
  bool is_alike = false;  // as large as what parameter `size` names
  // Parameters that say how many bytes there are; -1: none.
  int8_t size = -1;
  int8_t factor = -1;

  // A handle that is a value of its own.
  bool is_handle() const {
    return std::string_view("secnkblo").find(letter) != std::string_view::npos;
  }
  // A thing that other processes know by bytes: a token, an event's handle, a key.
  bool is_public() const { return std::string_view("oOji").find(letter) != std::string_view::npos; }
};

std::vector<ParameterRole> parse_roles(std::string_view roles);

}  // namespace understudy::command
