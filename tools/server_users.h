// SPDX-License-Identifier: Apache-2.0
//
// Which processes use a server, or may begin to: those that its ledger names, and those whose
// environment names its directory.
#pragma once

#include <string>

#include "platform/unique_fd.h"

namespace understudy::command {

// A descriptor of one of them that becomes readable when it ends; not valid if there is none that
// can be waited for. Those of another pid namespace cannot.
platform::UniqueFd find_user_of(const std::string& directory);

}  // namespace understudy::command
