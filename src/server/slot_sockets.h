// SPDX-License-Identifier: Apache-2.0
//
// The sockets at which processes of a server listen, one per slot, as they lie in its directory.
// Whatever else is there is the user's, also if it has a similar name.
#pragma once

#include <string>

#include "platform/private_directory.h"

namespace understudy {

bool is_slot_socket(const platform::PrivateDirectory& directory, const std::string& name);
void remove_slot_sockets(const platform::PrivateDirectory& directory);

}  // namespace understudy
