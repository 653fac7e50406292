// SPDX-License-Identifier: Apache-2.0
//
// What all imports do about the device that memory of another process is on.
#pragma once

#include "capi/call.h"

namespace understudy::capi {

// Refuses memory of another device where the product cannot reach it (SHARE-37).
Result<void> check_link(Runtime& runtime, ShareToken token, unsigned device);
// Lets a device reach the one that imported memory is on, if this process sees that one.
void enable_link(Runtime& runtime, ShareToken token, unsigned device);

}  // namespace understudy::capi
