// SPDX-License-Identifier: Apache-2.0
//
// What differs between two recordings, for programs: each figure as before, after and growth.
#pragma once

#include <string>

#include "tools/json_output.h"
#include "tools/recording/comparison.h"

namespace understudy::command {

Json diff_json(const std::string& before, const std::string& after, const Comparison& comparison);

}  // namespace understudy::command
