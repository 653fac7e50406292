// SPDX-License-Identifier: Apache-2.0
//
// The figures of a recording for people: one screen, or complete tables.
#pragma once

#include <string>

#include "tools/page_of_text.h"
#include "tools/recording/recording.h"
#include "tools/recording/summary.h"

namespace understudy::command {

enum class TextLength : unsigned char { kScreen, kComplete };

// What the summary is asked for, to be drawn in any terminal.
inline constexpr size_t kCurvePoints = 960;

std::string trace_text(const std::string& file, const Recording& recording, const Summary& summary,
                       PageStyle style, TextLength length);

}  // namespace understudy::command
