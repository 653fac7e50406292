// SPDX-License-Identifier: Apache-2.0
//
// The header of the timeline page's document: the tables that columns point into, and the figures
// of the recording.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "tools/recording/recording.h"

namespace understudy::command {

// The page has numbers of 53 bits. What may be larger in a damaged recording is left out of the
// figures.
inline constexpr uint64_t kMostExactNumber = uint64_t{1} << 53;
// Kinds of objects are a byte in the page; the last stands for all others.
inline constexpr uint16_t kLastObjectKind = UINT8_MAX;

// Without the list of columns.
nlohmann::ordered_json page_header(const Recording& recording);

}  // namespace understudy::command
