// SPDX-License-Identifier: Apache-2.0
//
// The public functions that answer a code, by group: what the configuration may name. A table;
// scripts/check_calls.py compares it with the headers.
#pragma once

#include <span>
#include <string_view>

namespace understudy {

struct CallGroup {
  std::string_view name;
  bool takes_memory;  // its functions fail for want of memory
  std::span<const std::string_view> functions;
};

std::span<const CallGroup> call_groups();
// Null if there is no such function.
const CallGroup* group_of_call(std::string_view function);

}  // namespace understudy
