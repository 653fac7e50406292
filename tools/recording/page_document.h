// SPDX-License-Identifier: Apache-2.0
//
// A recording as the timeline page reads it (page/README.md): a header as JSON with the figures
// that the page compares with its own, and columns of numbers, compressed as one zlib stream.
// Columns are compressed as they are made, so that it takes little more memory than its result.
#pragma once

#include <string>

#include "tools/recording/recording.h"

namespace understudy::command {

// Throws std::bad_alloc.
std::string page_document(const Recording& recording);

}  // namespace understudy::command
