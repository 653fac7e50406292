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

// There is nothing of that name.
bool means_absent(const Error& error);

// No process listens there, or none does any longer.
bool means_nobody_there(const Error& error);
// The place that a path names does not do: it is missing, full, read-only or not this user's.
bool means_unusable_place(const Error& error);

}  // namespace understudy::platform
