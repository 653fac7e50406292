// SPDX-License-Identifier: Apache-2.0
//
// A server's view for programs. Sizes are bytes.
#pragma once

#include "server/server_view.h"
#include "tools/json_output.h"

namespace understudy::command {

// Null if the server is not live.
Json to_json(const ServerView& server);

}  // namespace understudy::command
