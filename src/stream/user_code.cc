// SPDX-License-Identifier: Apache-2.0
#include "stream/user_code.h"

namespace understudy {

namespace {

// A function may wait for reports, and so run others.
thread_local unsigned depth [[gnu::tls_model("initial-exec")]] = 0;

}  // namespace

UserCodeMark::UserCodeMark() { ++depth; }
UserCodeMark::~UserCodeMark() { --depth; }

bool runs_user_code() { return depth > 0; }

}  // namespace understudy
