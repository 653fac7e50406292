// SPDX-License-Identifier: Apache-2.0
//
// understudy run --fail sweep: runs a program once to see where it calls the library, and then once
// for each of those places, with the first call of that place made to fail. Tells which failures
// the program does not survive: those that kill it, or after which it does not end.
#pragma once

#include <string>
#include <vector>

namespace understudy::command {

// The configuration is in the environment of this process. The exit status: 0 if the program
// survives every failure.
int sweep_failures(const std::vector<std::string>& program, bool joins_server);

}  // namespace understudy::command
