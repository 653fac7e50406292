// SPDX-License-Identifier: Apache-2.0
//
// A memory fence that costs the frequent side nothing: one thread pays for all of them. A thread
// that stores and then loads needs no fence of its own if the thread that it could miss calls
// heavy_fence() between its own store and load.
#pragma once

#include "base/result.h"

namespace understudy::platform {

// Whether the kernel offers it to this process. Where it does not, both sides need a full fence.
bool has_heavy_fence();

// Every thread of the process has passed a full fence between the call and its return. Fails where
// the kernel has refused after all.
Result<void> heavy_fence();

}  // namespace understudy::platform
