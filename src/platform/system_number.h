// SPDX-License-Identifier: Apache-2.0
//
// What the number in a system Error means to those above, who do not know errno.
#pragma once

#include "base/error.h"

namespace understudy::platform {

// Something else lives at that address.
bool means_occupied(const Error& error);
// This kernel or this process can never do it.
bool means_impossible(const Error& error);

// Nobody listens there, or no longer.
bool means_nobody_there(const Error& error);

}  // namespace understudy::platform
