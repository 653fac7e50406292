// SPDX-License-Identifier: Apache-2.0
//
// What differs between two recordings, for people.
#pragma once

#include <string>

#include "tools/page_of_text.h"
#include "tools/recording/comparison.h"
#include "tools/trace_text.h"

namespace understudy::command {

std::string diff_text(const std::string& before, const std::string& after,
                      const Comparison& comparison, PageStyle style, TextLength length);

}  // namespace understudy::command
