// SPDX-License-Identifier: Apache-2.0
//
// `understudy run [options] [--] PROGRAM [arguments]`: where the program begins. CLI11 would look
// for options among the program's arguments as well, so that it never sees them.
#pragma once

#include <string>
#include <vector>

namespace understudy::command {

class OptionSet;

// `arguments` is the subcommand, its options, and the program, which is taken off. Words that look
// like options and are none stay: they are for CLI11 to complain about.
std::vector<std::string> split_off_program(const OptionSet& options,
                                           std::vector<std::string>& arguments);

// The same for a subcommand with words of its own: the program is what follows --.
std::vector<std::string> split_off_marked_program(std::vector<std::string>& arguments);

}  // namespace understudy::command
