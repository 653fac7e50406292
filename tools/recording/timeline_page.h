// SPDX-License-Identifier: Apache-2.0
//
// The timeline page (page/README.md), which is part of the command, with a recording in it.
#pragma once

#include <string>
#include <string_view>

#include "tools/recording/recording.h"

namespace understudy::command {

// One HTML file that needs no network. Throws std::bad_alloc.
std::string timeline_page(const Recording& recording);
// The page that asks an address for its recording again and again (page_document.h). The address
// has no characters that HTML would take for its own.
std::string live_timeline_page(std::string_view address);

}  // namespace understudy::command
