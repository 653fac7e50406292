// SPDX-License-Identifier: Apache-2.0
//
// The checks of a process, from the first call that reads the configuration to its end.
#pragma once

#include "base/result.h"
#include "observe/check.h"

namespace understudy {

// From now on they are made, until the process ends: then leaks, the summary and the report follow,
// and the exit status tells of findings. See Findings::begin.
Result<void> begin_checks(const CheckChoice& choice);

}  // namespace understudy
