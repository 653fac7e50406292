// SPDX-License-Identifier: Apache-2.0
//
// The process that removes a private server's directory after its last user (private_server.h).
#pragma once

#include <string>

namespace understudy::command {

// Starts a janitor that waits for this process first, whatever program it executes, then for every
// other user of the directory. Where it cannot be started, the directory stays.
// REQUIRES: signals are blocked. They stay so in the janitor: what ends a whole group of processes
// ends the users too, and then the janitor has work.
void start_janitor(const std::string& directory);

}  // namespace understudy::command
