// SPDX-License-Identifier: Apache-2.0
//
// What to tell people when a device has not enough memory left.
#pragma once

#include "base/error.h"
#include "server/capacity.h"

namespace understudy {

// The error of a charge that was just refused: what was asked for, what each pool has left, what
// has the rest. Reads the figures anew without waiting for other processes.
Error shortage(const Capacity& capacity, const Charge& charge);

}  // namespace understudy
