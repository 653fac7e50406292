// SPDX-License-Identifier: Apache-2.0
//
// What the configuration says about the log.
#pragma once

#include <optional>
#include <string_view>

#include "platform/log.h"

namespace understudy {

using platform::LogChoice;
using platform::LogLevel;
using platform::LogStream;

// off, error, warn or call.
std::optional<LogLevel> parse_log_level(std::string_view text);

// The variables that programs for the hardware know: a level (0 debug and 1 info, 2 warnings,
// 3 errors, 4 nothing), and whether lines are printed, to standard output. There the level alone
// leads to files of the driver's, so alone it asks for nothing here.
LogChoice ascend_log_choice();

// What the environment asks for by itself, where the configuration as a whole is wrong. A level
// that is wrong asks for errors: it is what they are about.
LogChoice environment_log_choice();

}  // namespace understudy
