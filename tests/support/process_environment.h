// SPDX-License-Identifier: Apache-2.0
//
// Environments and argument lists for processes that tests start.
#pragma once

#include <string>
#include <vector>

#include "support/fresh_process.h"

namespace understudy_test {

// The variables of this process, with some set anew. The test that a process is to run may be of
// another shard, so those are left out.
std::vector<std::string> environment_with(const std::vector<Variable>& variables);
// For execve and its kind, with the null at the end.
std::vector<char*> pointers_to(std::vector<std::string>& texts);

}  // namespace understudy_test
