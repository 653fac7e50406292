// SPDX-License-Identifier: Apache-2.0
//
// What a recording can be turned into: one option and one file each.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "tools/recording/recording.h"

namespace understudy::command {

class OptionSet;

// The files to make, by the names of their options.
using ExportFiles = std::map<std::string, std::string>;

// REQUIRES: `files` lives until the options are read.
void declare_exports(OptionSet& options, ExportFiles& files);
// Fails at the first file that cannot be written.
Result<void> write_exports(const Recording& recording, const ExportFiles& files);

}  // namespace understudy::command
