// SPDX-License-Identifier: Apache-2.0
//
// How a running server fares: how full it is, who has most of it, and what host memory it takes.
#pragma once

#include <string>
#include <vector>

#include "server/server_view.h"
#include "tools/json_output.h"

namespace understudy::command {

struct ServerFitness {
  std::vector<std::string> sentences;  // for people
  Json facts;
};

// `host_memory` is what the machine has.
ServerFitness fitness_of(const ServerView& server, uint64_t host_memory);

}  // namespace understudy::command
