// SPDX-License-Identifier: Apache-2.0
//
// Which server a subcommand is about, and what the command knows of its processes besides what the
// ledger says.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/server_view.h"

namespace understudy::command {

class OptionSet;

// Declares --runtime-dir.
void add_runtime_dir_option(OptionSet& options, std::string& directory);
// The directory that was asked for, else the one that the configuration names, else the default.
Result<std::string> chosen_directory(const std::string& asked);
// The default directory of this user and those of private servers, as far as they exist, and the
// configured one.
std::vector<std::string> directories_of_user();

// "Ascend910B3 (Atlas A2)", "product x" of a product that this version does not know.
std::string product_text(const ServerView& server);
// The name of a process's program, printable; "?" if it cannot be found out.
std::string program_name(const ProcessView& process);

}  // namespace understudy::command
