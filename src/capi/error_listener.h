// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acl/acl_base.h"
#include "base/error.h"

namespace understudy::capi {

// Tells the listener of the process, if it has one, that a function failed.
void tell_listener(const char* function, aclError code, const Error& error) noexcept;

}  // namespace understudy::capi
