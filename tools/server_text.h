// SPDX-License-Identifier: Apache-2.0
//
// A server's view for people, as plain lines.
#pragma once

#include <string>

#include "server/server_view.h"

namespace understudy::command {

// "Server at DIR: 8 devices, Ascend910B3 (Atlas A2), 64 GiB each"
std::string headline(const ServerView& server);
std::string devices_text(const ServerView& server);
// What processes have of the devices, one line for each device that a process uses.
std::string uses_text(const ServerView& server);
// Host memory, streams and sharing, one line per process.
std::string processes_text(const ServerView& server);

}  // namespace understudy::command
