// SPDX-License-Identifier: Apache-2.0
//
// Memory over time as lines of text: blocks of eight heights, or letters of ASCII.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/visible_text.h"

namespace understudy::command {

// `rows` lines of `columns` columns, the highest first. The highest point of all fills them.
std::vector<std::string> chart_lines(std::span<const uint64_t> points, size_t columns, size_t rows,
                                     Letters letters);

}  // namespace understudy::command
